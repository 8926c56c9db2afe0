//! What becomes of bytes that were stored outside of transactions, under designs that keep two
//! copies of a line.

use crate::common::{play, resolve};
use model::crash::{Campaign, Check, Crashes, Points};
use model::image::Image;
use model::units::{CoreId, Word};
use model::workload::{Pm, Program, Ptr, Step, Workload};

/// A program that stores to a word outside of transactions. The caches alone have that word when a
/// transaction stores to another word of its line.
#[derive(Clone, Copy, Debug)]
struct Outside;

/// The two words.
const WORDS: [Word; 2] = [Word(8), Word(9)];

impl Workload for Outside {
    fn populate(&mut self, _pm: &mut Pm<'_>) -> Step {
        Ok(())
    }

    fn program(&self, _core: CoreId) -> Step<Box<dyn Program>> {
        Ok(Box::new(*self))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        match WORDS.map(|word| image.word(word)) {
            [7, 0 | 8] => Ok(()),
            [outside, inside] => Err(format!("outside {outside}, inside {inside}")),
        }
    }
}

impl Program for Outside {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        pm.store(Ptr::to(WORDS[0].address()), 7);
        pm.begin()?;
        pm.store(Ptr::to(WORDS[1].address()), 8);
        pm.commit();
        Ok(())
    }
}

/// Before the first store of a transaction to a line makes another copy of it the newest, the bytes
/// that the line has by then are written to the copy that it leaves. They are durable before the
/// commit is, so a power failure that revokes the transaction leaves them.
#[test]
fn a_changed_line_is_written_back_to_the_copy_that_it_leaves() {
    for name in ["ssp", "shadow-paging"] {
        let cut = |points: Points| -> Crashes {
            let resolved = resolve(&format!("{name} scribble cores=1"));
            let campaign = Campaign {
                points,
                nested: false,
                reorders: 0,
                violations_max: 1,
                seed: 1,
                keep: 0,
                check: Check::Transactions,
            };
            let (design, config) = (resolved.design, &resolved.machine.config);
            let outcome = play(design, config, 1, Box::new(Outside), 1, Some(campaign));
            outcome.crashes.expect("a campaign")
        };
        let all = cut(Points::Count).passed;
        let wrong = |point: u64| !cut(Points::These(vec![point])).violations.is_empty();
        let wrong: Vec<u64> = (1..=all).filter(|&point| wrong(point)).collect();
        // Before the second store to the line, and before the line is written back.
        assert_eq!(wrong, [1, 2], "{name}: of {all} points");
    }
}
