//! The numbers of the keys in a store to which keys are added and from which none is deleted: first
//! the initial keys, and then, interleaved, those of each core that shares the store.

use model::units::CoreId;

use crate::keyed::Plan;

/// The numbers of the keys that a core knows of: the initial ones, then those it added.
#[derive(Clone, Debug)]
pub struct Numbers {
    initial: u64,
    added: u64,
    /// The offset of its first number behind the initial ones, and the distance of its numbers.
    first: u64,
    step: u64,
}

impl Numbers {
    /// Returns the numbers that a core knows of after it has added so many keys.
    pub fn of(plan: &Plan, core: CoreId, added: u64) -> Numbers {
        let first = if plan.structures == 1 { u64::from(core.0) } else { 0 };
        Numbers { initial: plan.items, added, first, step: sharers(plan) }
    }

    /// Returns how many numbers the core knows of.
    pub fn known(&self) -> u64 {
        self.initial + self.added
    }

    /// Returns the number with an index; the index [`Numbers::known`] has the next one to be added.
    pub fn number(&self, index: u64) -> u64 {
        if index < self.initial {
            index
        } else {
            self.initial + self.first + (index - self.initial) * self.step
        }
    }

    /// Adds the next number, and returns it.
    pub fn add(&mut self) -> u64 {
        self.added += 1;
        self.number(self.known() - 1)
    }

    /// Checks the numbers found in a store: none is there twice, all initial ones are, and those
    /// of each core have no gap. Counts in `added` how many each core has added.
    ///
    /// # Errors
    /// A sentence that says what is wrong; `what` names the things with these numbers.
    pub fn check(
        plan: &Plan,
        store: usize,
        what: &str,
        mut found: Vec<u64>,
        added: &mut [u64],
    ) -> Result<(), String> {
        found.sort_unstable();
        if let Some(pair) = found.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("{what} {} is there twice", pair[0]));
        }
        let initial = found.partition_point(|&number| number < plan.items);
        if (initial as u64) < plan.items {
            return Err(format!("{initial} of the {} first {what}s are there", plan.items));
        }
        let step = sharers(plan);
        for number in &found[initial..] {
            let (nth, rank) = ((number - plan.items) / step, (number - plan.items) % step);
            let core = store + rank as usize;
            if nth != added[core] {
                let missing = plan.items + rank + added[core] * step;
                let text = format!("{what} {number} is there, and {missing}, added before it, not");
                return Err(text);
            }
            added[core] += 1;
        }
        Ok(())
    }
}

/// How many cores use one store.
fn sharers(plan: &Plan) -> u64 {
    u64::from(plan.site.cores / plan.structures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::Sharing;
    use model::workload::Site;

    fn plan(sharing: Sharing) -> Plan {
        let site =
            Site { cores: 3, seed: 1, heap: 0..1 << 20, items: 12, script: None, checker: None };
        Plan::new(0, sharing, &site)
    }

    #[test]
    fn cores_add_numbers_that_no_other_core_adds() {
        let plan = plan(Sharing::Shared);
        let mut all: Vec<u64> = (0..12).collect();
        for (core, count) in [(0, 2), (1, 5), (2, 0)] {
            let mut numbers = Numbers::of(&plan, CoreId(core), 0);
            all.extend((0..count).map(|_| numbers.add()));
            assert_eq!(numbers.known(), 12 + count);
        }
        let mut added = vec![0; 3];
        Numbers::check(&plan, 0, "key", all, &mut added).expect("all of them");
        assert_eq!(added, [2, 5, 0]);
        assert_eq!(Numbers::of(&plan, CoreId(1), 5).add(), 12 + 1 + 5 * 3);
    }

    #[test]
    fn what_is_wrong_with_the_numbers_of_a_store_is_said() {
        let cases: [(&[u64], &str); 3] = [
            (&[0, 1, 2, 3, 3], "key 3 is there twice"),
            (&[0, 1, 3, 4], "3 of the 4 first keys are there"),
            (&[0, 1, 2, 3, 4, 6], "key 6 is there, and 5, added before it, not"),
        ];
        for (found, expect) in cases {
            let mut added = vec![0; 3];
            let error =
                Numbers::check(&plan(Sharing::Private), 1, "key", found.to_vec(), &mut added);
            assert_eq!(error.expect_err("wrong"), expect);
        }
    }
}
