//! Finds which of the transactions survived that may and need not: the largest set that an image
//! allows.
//!
//! If a closed set has any of the transactions that stored to a word, it has the first few of them
//! in serial order. So the word's value says how many of them are there at most, and takes the
//! others, with everything that depends on them, out of every set that the image allows. The
//! largest such set is left when no word takes out any more. If a word then has a value that no
//! transaction of that set explains, there is no such set.

use rustc_hash::FxHashMap;

use super::Serial;
use crate::contents::Contents;
use crate::image::Image;
use crate::units::{CoreId, TxId, Word};

/// A transaction that may be there.
pub struct Candidate<'a> {
    pub serial: Serial,
    pub core: CoreId,
    pub id: TxId,
    pub writes: &'a [(Word, u64)],
    /// The transactions that it depends on; those of them that are not candidates are there.
    pub after: &'a [Serial],
}

/// Why no set explains an image.
pub struct Lost {
    /// A word with a value that nothing explains, and the value.
    pub word: Word,
    pub is: u64,
    /// The candidate that stored the value, the candidate whose absence excludes it, and the word
    /// that lacks that one's store; nothing if no candidate stored the value.
    pub because: Option<(usize, usize, Word)>,
}

/// The stores to one word, in serial order: each candidate with the last value that it stored.
type Chain = Vec<(usize, u64)>;

/// What the candidates stored, in the order of the words. It is the same for every image.
pub struct Chains(Vec<(Word, Chain)>);

impl Chains {
    /// Collects what candidates stored to the words that are `known`.
    pub fn new(candidates: &[Candidate<'_>], known: impl Fn(Word) -> bool) -> Chains {
        let mut chains: FxHashMap<Word, Chain> = FxHashMap::default();
        for (index, tx) in candidates.iter().enumerate() {
            for &(word, value) in tx.writes.iter().filter(|(word, _)| known(*word)) {
                let chain = chains.entry(word).or_default();
                match chain.last_mut() {
                    Some((last, old)) if *last == index => *old = value,
                    _ => chain.push((index, value)),
                }
            }
        }
        let mut chains: Vec<_> = chains.into_iter().collect();
        chains.sort_unstable_by_key(|(word, _)| *word);
        Chains(chains)
    }

    /// Whether a candidate stored to a word.
    pub fn have(&self, word: Word) -> bool {
        self.0.binary_search_by_key(&word, |(word, _)| *word).is_ok()
    }
}

/// Returns which candidates are there: the largest set that explains the words that they stored to.
///
/// # Errors
/// A word that no set explains.
pub fn explain(
    candidates: &[Candidate<'_>],
    chains: &Chains,
    base: &Contents,
    image: &Image<'_>,
) -> Result<Vec<bool>, Lost> {
    // For each candidate that was taken out: the candidate and the word because of which it was.
    let mut out: Vec<Option<(usize, Word)>> = vec![None; candidates.len()];
    loop {
        let mut changed = false;
        for (word, chain) in &chains.0 {
            let (word, is) = (*word, image.word(*word));
            let left = chain.iter().take_while(|(tx, _)| out[*tx].is_none()).count();
            let value = |stores: usize| match stores {
                0 => base.word(word),
                _ => chain[stores - 1].1,
            };
            match (0..=left).rev().find(|&stores| value(stores) == is) {
                Some(stores) if stores == left => (),
                Some(stores) => {
                    take_out(candidates, chain[stores].0, word, &mut out);
                    changed = true;
                }
                None => {
                    let stored =
                        chain.iter().find(|(tx, value)| *value == is && out[*tx].is_some());
                    let because = stored.and_then(|&(tx, _)| {
                        let (missing, lacks) = out[tx]?;
                        Some((tx, missing, lacks))
                    });
                    return Err(Lost { word, is, because });
                }
            }
        }
        if !changed {
            return Ok(out.iter().map(Option::is_none).collect());
        }
    }
}

/// Takes out a candidate, and what depends on it.
fn take_out(
    candidates: &[Candidate<'_>],
    first: usize,
    lacks: Word,
    out: &mut [Option<(usize, Word)>],
) {
    let gone = |tx: usize, out: &[Option<(usize, Word)>]| {
        candidates[tx].after.iter().any(|serial| {
            let found = candidates.binary_search_by_key(serial, |candidate| candidate.serial);
            found.is_ok_and(|before| out[before].is_some())
        })
    };
    out[first] = Some((first, lacks));
    for later in first + 1..candidates.len() {
        if out[later].is_none() && gone(later, out) {
            out[later] = Some((first, lacks));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::design::Durability;
    use crate::oracle::Oracle;

    use super::*;

    const A: CoreId = CoreId(0);
    const B: CoreId = CoreId(1);
    /// Words of four lines.
    const W: [Word; 4] = [Word(1), Word(9), Word(17), Word(25)];

    fn zeros() -> Contents {
        Contents::new(0, 4096).expect("room")
    }

    fn asynchronous() -> Oracle {
        Oracle::new(&zeros(), 2, 2048, Durability::Asynchronous).expect("room")
    }

    fn running(oracle: &mut Oracle, core: CoreId, id: u64, stores: &[(Word, u64)]) {
        oracle.begin(core, TxId(id));
        for &(word, value) in stores {
            oracle.store(core, word, value, u64::MAX);
        }
    }

    fn acknowledged(oracle: &mut Oracle, core: CoreId, id: u64, stores: &[(Word, u64)]) {
        running(oracle, core, id, stores);
        oracle.committing(core);
        oracle.acknowledge(core);
    }

    /// Returns what the oracle says of an image in which only these words are not 0.
    fn verdict(oracle: &mut Oracle, words: &[(Word, u64)]) -> String {
        let mut durable = zeros();
        for &(word, value) in words {
            durable.set_word(word, value);
            oracle.compare(word.line(), &durable);
        }
        let text = oracle.check(&Image::over(&durable)).err().map(|(_, text)| text);
        // The next image does not hold these words.
        words.iter().for_each(|(word, _)| oracle.compare(word.line(), &zeros()));
        text.unwrap_or_default()
    }

    #[test]
    fn any_prefix_of_what_was_not_announced_may_survive() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1), (W[1], 1)]);
        acknowledged(&mut oracle, A, 2, &[(W[1], 2), (W[2], 2)]);
        for image in [&[][..], &[(W[0], 1), (W[1], 1)], &[(W[0], 1), (W[1], 2), (W[2], 2)]] {
            assert_eq!(verdict(&mut oracle, image), "", "{image:?}");
        }
    }

    /// What is known of the candidates is kept from one image to the next, until a step changes it.
    #[test]
    fn each_step_of_a_transaction_changes_what_may_be_there() {
        let mut oracle = asynchronous();
        let whole = [(W[0], 1), (W[1], 1)];
        let may = |oracle: &mut Oracle| {
            [&[][..], &whole[..1], &whole].map(|image| verdict(oracle, image).is_empty())
        };
        assert_eq!(may(&mut oracle), [true, false, false]);
        running(&mut oracle, A, 1, &whole);
        assert_eq!(may(&mut oracle), [true, false, false]);
        oracle.committing(A);
        assert_eq!(may(&mut oracle), [true, false, true]);
        running(&mut oracle, B, 1, &[(W[2], 1)]);
        oracle.committing(B);
        let both = [whole[0], whole[1], (W[2], 1)];
        assert_eq!(verdict(&mut oracle, &both), "");
        oracle.acknowledge(B);
        let text = verdict(&mut oracle, &both[1..]);
        assert!(text.contains("transaction 1 of core 0, whose commit was in flight"), "{text}");
        oracle.acknowledge(A);
        assert_eq!(may(&mut oracle), [true, false, true]);
        oracle.store_outside(A, W[1]);
        assert_eq!(may(&mut oracle), [true, true, true], "nothing is promised of that word");
        oracle.announce(A, TxId(1), &zeros()).expect("it was asked for");
        assert_eq!(may(&mut oracle), [false, true, true]);
    }

    /// A transaction that stored nothing, or was aborted, is in every image, and in none.
    #[test]
    fn an_image_holds_so_many_transactions_of_each_core() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1)]);
        oracle.announce(A, TxId(1), &zeros()).expect("it was asked for");
        acknowledged(&mut oracle, A, 2, &[]);
        acknowledged(&mut oracle, A, 3, &[(W[0], 3)]);
        acknowledged(&mut oracle, B, 1, &[(W[1], 1)]);
        running(&mut oracle, B, 2, &[(W[2], 2)]);
        let mut held = |words: [u64; 3]| {
            let mut durable = zeros();
            for (word, value) in W.into_iter().zip(words) {
                durable.set_word(word, value);
                oracle.compare(word.line(), &durable);
            }
            oracle.check(&Image::over(&durable)).map_err(|(_, text)| text)
        };
        assert_eq!(held([1, 0, 0]), Ok(vec![1, 0]));
        assert_eq!(held([3, 0, 0]), Ok(vec![2, 0]));
        assert_eq!(held([1, 1, 0]), Ok(vec![1, 1]));
        assert_eq!(held([3, 1, 0]), Ok(vec![2, 1]));
    }

    #[test]
    fn an_announced_transaction_that_is_lost_is_found() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1)]);
        acknowledged(&mut oracle, A, 2, &[(W[1], 2)]);
        oracle.announce(A, TxId(2), &zeros()).expect("it was asked for");
        assert_eq!(verdict(&mut oracle, &[(W[0], 1), (W[1], 2)]), "");
        for image in [&[][..], &[(W[0], 1)], &[(W[1], 2)]] {
            assert!(verdict(&mut oracle, image).starts_with("durability"), "{image:?}");
        }
    }

    #[test]
    fn an_announcement_before_the_acknowledgement_holds() {
        let mut oracle = asynchronous();
        running(&mut oracle, A, 1, &[(W[0], 1)]);
        oracle.committing(A);
        oracle.announce(A, TxId(1), &zeros()).expect("it was asked for");
        assert!(verdict(&mut oracle, &[]).starts_with("durability"));
        assert_eq!(verdict(&mut oracle, &[(W[0], 1)]), "");
        oracle.acknowledge(A);
        assert!(verdict(&mut oracle, &[]).starts_with("durability"));
        acknowledged(&mut oracle, A, 2, &[(W[0], 2)]);
        assert_eq!(verdict(&mut oracle, &[(W[0], 1)]), "");
        assert_eq!(verdict(&mut oracle, &[(W[0], 2)]), "");
    }

    /// The same holds for what the core had acknowledged before, and for what it loaded.
    #[test]
    fn an_announcement_before_the_acknowledgement_holds_for_what_it_depends_on() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1)]);
        acknowledged(&mut oracle, B, 1, &[(W[1], 1)]);
        acknowledged(&mut oracle, B, 2, &[(W[3], 2)]);
        running(&mut oracle, A, 2, &[(W[2], 2)]);
        oracle.load(A, W[1]);
        oracle.committing(A);
        oracle.announce(A, TxId(2), &zeros()).expect("it was asked for");
        let all = [(W[0], 1), (W[1], 1), (W[2], 2)];
        assert_eq!(verdict(&mut oracle, &all), "");
        for lost in 0..all.len() {
            let image: Vec<_> = all.iter().copied().filter(|word| *word != all[lost]).collect();
            assert!(verdict(&mut oracle, &image).starts_with("durability"), "{image:?}");
        }
    }

    #[test]
    fn what_has_not_asked_to_commit_is_not_announced() {
        let mut oracle = asynchronous();
        let announce = |oracle: &mut Oracle, id| oracle.announce(A, TxId(id), &zeros());
        assert!(announce(&mut oracle, 1).is_err(), "it has not begun");
        running(&mut oracle, A, 1, &[(W[0], 1)]);
        assert_eq!(
            announce(&mut oracle, 1).expect_err("it may store more"),
            "announcement: transaction 1 of core 0 was announced as durable, and its program has \
             not asked for it to be committed"
        );
        assert_eq!(verdict(&mut oracle, &[]), "");
        oracle.committing(A);
        assert!(announce(&mut oracle, 2).is_err());
        assert_eq!(verdict(&mut oracle, &[]), "", "nothing was promised");
        assert_eq!(announce(&mut oracle, 1), Ok(()));
        assert_eq!(announce(&mut oracle, 1), Ok(()), "it is no more than once");
        assert!(verdict(&mut oracle, &[]).starts_with("durability"));
    }

    #[test]
    fn an_announcement_of_an_older_transaction_is_none_of_the_one_that_runs() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1)]);
        running(&mut oracle, A, 2, &[(W[1], 2)]);
        oracle.announce(A, TxId(1), &zeros()).expect("it was asked for");
        oracle.committing(A);
        assert!(verdict(&mut oracle, &[]).starts_with("durability"));
        oracle.acknowledge(A);
        assert_eq!(verdict(&mut oracle, &[(W[0], 1)]), "");
    }

    #[test]
    fn a_hole_is_found() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1)]);
        acknowledged(&mut oracle, A, 2, &[(W[1], 2)]);
        let text = verdict(&mut oracle, &[(W[1], 2)]);
        assert_eq!(
            text,
            "order: the image holds 0x2 at 0x48, stored by transaction 2 of core 0, and at 0x8 not \
             what transaction 1 of core 0 stored, which that one depends on"
        );
    }

    #[test]
    fn a_torn_transaction_is_found() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1), (W[1], 1)]);
        assert!(verdict(&mut oracle, &[(W[0], 1)]).starts_with("atomicity"));
        assert_eq!(
            verdict(&mut oracle, &[(W[1], 1)]),
            "atomicity: of transaction 1 of core 0, whose durability was not announced, the image \
             holds the store to 0x48 and not the one to 0x8"
        );
        // The second transaction stores over half of the first, so the other half alone is torn.
        acknowledged(&mut oracle, A, 2, &[(W[0], 2), (W[2], 2)]);
        assert_eq!(verdict(&mut oracle, &[(W[0], 2), (W[1], 1), (W[2], 2)]), "");
        assert!(!verdict(&mut oracle, &[(W[0], 2), (W[2], 2)]).is_empty());
        assert!(!verdict(&mut oracle, &[(W[0], 2), (W[1], 1)]).is_empty());
    }

    #[test]
    fn cores_are_independent_until_one_sees_what_the_other_stored() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1)]);
        acknowledged(&mut oracle, B, 1, &[(W[1], 1)]);
        assert_eq!(verdict(&mut oracle, &[(W[1], 1)]), "");
        assert_eq!(verdict(&mut oracle, &[(W[0], 1)]), "");
        oracle.load(B, W[0]);
        acknowledged(&mut oracle, B, 2, &[(W[2], 2)]);
        assert_eq!(verdict(&mut oracle, &[(W[0], 1), (W[1], 1), (W[2], 2)]), "");
        let text = verdict(&mut oracle, &[(W[1], 1), (W[2], 2)]);
        assert!(text.starts_with("order"), "{text}");
        // To announce this transaction is to announce what it saw.
        oracle.announce(B, TxId(2), &zeros()).expect("it was asked for");
        assert!(verdict(&mut oracle, &[(W[1], 1), (W[2], 2)]).starts_with("durability"));
    }

    #[test]
    fn a_store_over_another_cores_depends_on_it() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1), (W[1], 1)]);
        acknowledged(&mut oracle, B, 1, &[(W[0], 2), (W[2], 2)]);
        assert!(!verdict(&mut oracle, &[(W[0], 2), (W[2], 2)]).is_empty());
        assert!(!verdict(&mut oracle, &[(W[2], 2)]).is_empty(), "what else it stored is not there");
        assert_eq!(verdict(&mut oracle, &[(W[0], 2), (W[1], 1), (W[2], 2)]), "");
        oracle.announce(B, TxId(1), &zeros()).expect("it was asked for");
        assert!(verdict(&mut oracle, &[(W[0], 2), (W[2], 2)]).starts_with("durability"));
    }

    #[test]
    fn who_saw_the_newest_store_depends_on_it_though_an_older_one_is_durable() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1)]);
        acknowledged(&mut oracle, A, 2, &[(W[0], 2)]);
        oracle.announce(A, TxId(1), &zeros()).expect("it was asked for");
        oracle.load(B, W[0]);
        acknowledged(&mut oracle, B, 1, &[(W[1], 1)]);
        assert_eq!(verdict(&mut oracle, &[(W[0], 2), (W[1], 1)]), "");
        assert!(verdict(&mut oracle, &[(W[0], 1), (W[1], 1)]).starts_with("order"));
    }

    /// The rest of a word is what the transaction sees there: its own last store, or what was
    /// acknowledged last, announced or not.
    #[test]
    fn a_store_to_some_bytes_keeps_the_others() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 0x11_1111), (W[0], 0x22_2222)]);
        oracle.begin(B, TxId(1));
        oracle.store(B, W[0], 0x33, 0xff);
        oracle.store(B, W[0], 0x4400, 0xff00);
        oracle.store(B, W[0], 0x55, 0xff);
        oracle.committing(B);
        oracle.acknowledge(B);
        for (value, is_right) in [(0x22_2222, true), (0x22_4455, true), (0x22_4433, false)] {
            assert_eq!(verdict(&mut oracle, &[(W[0], value)]).is_empty(), is_right, "{value:#x}");
        }
        oracle.announce(B, TxId(1), &zeros()).expect("it was asked for");
        oracle.begin(A, TxId(2));
        oracle.store(A, W[0], 0x66, 0xff);
        oracle.committing(A);
        assert_eq!(verdict(&mut oracle, &[(W[0], 0x22_4466)]), "");
    }

    #[test]
    fn a_plain_store_over_another_cores_has_its_next_transaction_depend_on_it() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1), (W[1], 1)]);
        oracle.store_outside(B, W[0]);
        acknowledged(&mut oracle, B, 1, &[(W[2], 2)]);
        assert!(verdict(&mut oracle, &[(W[0], 5), (W[2], 2)]).starts_with("order"));
        assert_eq!(verdict(&mut oracle, &[(W[0], 5), (W[1], 1), (W[2], 2)]), "");
        assert_eq!(verdict(&mut oracle, &[(W[0], 5), (W[1], 1)]), "");
    }

    #[test]
    fn what_comes_after_an_aborted_transaction_follows_from_what_that_loaded() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1)]);
        oracle.begin(B, TxId(1));
        oracle.load(B, W[0]);
        oracle.store(B, W[1], 1, u64::MAX);
        oracle.aborting(B);
        oracle.acknowledge(B);
        acknowledged(&mut oracle, B, 2, &[(W[2], 2)]);
        assert!(verdict(&mut oracle, &[(W[2], 2)]).starts_with("order"));
        assert_eq!(verdict(&mut oracle, &[(W[0], 1), (W[2], 2)]), "");
        assert!(verdict(&mut oracle, &[(W[0], 1), (W[1], 1)]).starts_with("atomicity"));
        oracle.announce(B, TxId(1), &zeros()).expect("it was asked for");
        assert!(verdict(&mut oracle, &[]).starts_with("durability"), "what it loaded is promised");
        oracle.announce(B, TxId(2), &zeros()).expect("it was asked for");
        assert!(verdict(&mut oracle, &[(W[2], 2)]).starts_with("durability"));
    }

    #[test]
    fn a_value_that_comes_again_is_taken_as_it_suits() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1)]);
        acknowledged(&mut oracle, A, 2, &[(W[0], 0)]);
        acknowledged(&mut oracle, A, 3, &[(W[1], 3)]);
        assert_eq!(verdict(&mut oracle, &[]), "");
        assert_eq!(verdict(&mut oracle, &[(W[0], 1)]), "");
        assert_eq!(verdict(&mut oracle, &[(W[1], 3)]), "");
        assert!(verdict(&mut oracle, &[(W[0], 1), (W[1], 3)]).starts_with("order"));
    }

    #[test]
    fn a_running_transaction_is_not_there() {
        let mut oracle = asynchronous();
        acknowledged(&mut oracle, A, 1, &[(W[0], 1)]);
        running(&mut oracle, A, 2, &[(W[0], 2)]);
        assert!(verdict(&mut oracle, &[(W[0], 2)]).starts_with("atomicity"));
        oracle.committing(A);
        assert_eq!(verdict(&mut oracle, &[(W[0], 2)]), "");
    }
}
