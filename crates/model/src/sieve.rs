//! A quick answer to whether a short list may hold a key: most searches of a queue find nothing.

/// The number of a list's keys in each of a fixed number of classes. A key whose class is empty is
/// not in the list; for any other key the caller has to search the list.
#[derive(Clone, Debug)]
pub struct Sieve {
    counts: [u32; CLASSES],
}

/// The number of classes. Lists have up to about 64 keys, so a key that is not in the list is
/// searched for in at most one of sixteen cases.
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

    /// Returns how many of the list's keys are in the class of this key, which is at least as many
    /// as equal it.
    #[inline]
    pub fn count(&self, key: u64) -> u32 {
        self.counts[Sieve::class(key)]
    }

    /// Notes that a key was added to the list.
    #[inline]
    pub fn add(&mut self, key: u64) {
        self.counts[Sieve::class(key)] += 1;
    }

    /// Notes that a key was removed from the list.
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
