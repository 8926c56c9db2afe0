//! A quick answer to whether a short list may hold a key: most searches of a queue find nothing.

/// The number of a list's keys in each of a few classes. A key whose class is empty is not in the
/// list; for any other key the caller has to search the list.
#[derive(Clone, Debug)]
pub struct Sieve {
    counts: [u32; CLASSES],
}

/// Lists have up to some 64 keys: one in sixteen of the keys that a list does not hold is searched
/// for.
const CLASSES: usize = 1024;

impl Default for Sieve {
    fn default() -> Sieve {
        Sieve { counts: [0; CLASSES] }
    }
}

impl Sieve {
    #[inline]
    fn class(key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - CLASSES.ilog2())) as usize
    }

    /// Whether the list may hold a key.
    #[inline]
    pub fn may_hold(&self, key: u64) -> bool {
        self.count(key) > 0
    }

    /// The number of the list's keys in the class of this key: at least those that equal it.
    #[inline]
    pub fn count(&self, key: u64) -> u32 {
        self.counts[Sieve::class(key)]
    }

    /// Notes that a key was added to the list.
    #[inline]
    pub fn add(&mut self, key: u64) {
        self.counts[Sieve::class(key)] += 1;
    }

    /// Notes that a key was taken from the list.
    #[inline]
    pub fn remove(&mut self, key: u64) {
        self.counts[Sieve::class(key)] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_list_is_never_denied() {
        let mut sieve = Sieve::default();
        (0..1000).for_each(|key| sieve.add(key));
        (0..500).for_each(|key| sieve.remove(key));
        assert!((500..1000).all(|key| sieve.may_hold(key)));
        (500..1000).for_each(|key| sieve.remove(key));
        assert!((0..1000).all(|key| !sieve.may_hold(key)));
    }
}
