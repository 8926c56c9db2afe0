//! Transactions that are drawn at random, and every set of them that may be there: an image is
//! right if one of these sets left it.

use super::*;
use crate::units::mix;

const CORES: u8 = 3;
/// Words of four lines, and what they hold: small numbers, so that values come again.
const WORDS: [Word; 5] = [Word(1), Word(2), Word(9), Word(17), Word(25)];
const VALUES: u64 = 3;

fn zeros() -> Contents {
    Contents::new(0, 4096).expect("room")
}

type Values = [u64; WORDS.len()];

/// A transaction whose end was asked for; an aborted one stored nothing.
struct Tx {
    core: CoreId,
    id: TxId,
    writes: Vec<(usize, u64)>,
    /// The places among all of the transactions that it depends on.
    after: Vec<usize>,
    /// Its place in the serial order, once it has one.
    serial: u64,
    is_promised: bool,
}

/// A transaction that is open.
#[derive(Default)]
struct Running {
    words: Vec<usize>,
    writes: Vec<(usize, u64)>,
    after: Vec<usize>,
    /// Its place among all, once the program asked for its end.
    asked: Option<usize>,
}

/// Does what programs do, to the oracle and to a list of transactions.
struct Bench {
    oracle: Oracle,
    durability: Durability,
    drawn: u64,
    all: Vec<Tx>,
    running: Vec<Option<Running>>,
    /// The last transaction that each core began.
    ids: Vec<u64>,
    /// The last transaction that stored to each word and was acknowledged.
    writers: [Option<usize>; WORDS.len()],
    serial: u64,
}

impl Bench {
    fn new(seed: u64, durability: Durability) -> Bench {
        Bench {
            oracle: Oracle::new(&zeros(), CORES, 2048, durability).expect("room"),
            durability,
            drawn: seed,
            all: Vec::new(),
            running: (0..CORES).map(|_| None).collect(),
            ids: vec![0; usize::from(CORES)],
            writers: [None; WORDS.len()],
            serial: 0,
        }
    }

    fn below(&mut self, most: usize) -> usize {
        self.drawn = mix(self.drawn);
        (self.drawn % most as u64) as usize
    }

    /// Has a core do its next step.
    fn act(&mut self) {
        let core = self.below(usize::from(CORES));
        let id = CoreId(core as u8);
        let Some(mut running) = self.running[core].take() else {
            self.ids[core] += 1;
            self.oracle.begin(id, TxId(self.ids[core]));
            // The transaction locks words that no other has locked.
            let of_others: Vec<usize> =
                self.running.iter().flatten().flat_map(|other| other.words.clone()).collect();
            let free = (0..WORDS.len()).filter(|word| !of_others.contains(word));
            let words = free.collect::<Vec<_>>().into_iter().filter(|_| self.below(2) == 0);
            self.running[core] = Some(Running { words: words.collect(), ..Running::default() });
            return;
        };
        match running.asked {
            Some(place) => {
                if self.below(3) > 0 {
                    self.oracle.acknowledge(id);
                    self.ends(place);
                    return;
                }
                // Only an asynchronous design announces a transaction before it is acknowledged.
                if self.durability == Durability::Asynchronous && self.below(2) == 0 {
                    self.announce(place);
                }
            }
            None if self.below(5) == 0 => self.ask(id, &mut running),
            None if !running.words.is_empty() => {
                let word = running.words[self.below(running.words.len())];
                running.after.extend(self.writers[word]);
                if self.below(2) == 0 {
                    let value = self.below(VALUES as usize) as u64;
                    self.oracle.store(id, WORDS[word], value, u64::MAX);
                    running.writes.push((word, value));
                } else {
                    self.oracle.load(id, WORDS[word]);
                }
            }
            None => (),
        }
        self.running[core] = Some(running);
    }

    fn ask(&mut self, core: CoreId, running: &mut Running) {
        let mut after = std::mem::take(&mut running.after);
        after.extend(self.all.iter().rposition(|tx| tx.core == core));
        let is_aborted = self.below(6) == 0;
        match is_aborted {
            true => self.oracle.aborting(core),
            false => self.oracle.committing(core),
        }
        let id = TxId(self.ids[usize::from(core.0)]);
        let writes = if is_aborted { Vec::new() } else { running.writes.clone() };
        running.asked = Some(self.all.len());
        let (serial, is_promised) = (u64::MAX, false);
        self.all.push(Tx { core, id, writes, after, serial, is_promised });
    }

    /// Acknowledges a transaction.
    fn ends(&mut self, place: usize) {
        let tx = &mut self.all[place];
        if tx.serial == u64::MAX {
            self.serial += 1;
            tx.serial = self.serial;
        }
        for &(word, _) in &tx.writes {
            self.writers[word] = Some(place);
        }
        if self.durability == Durability::Synchronous {
            self.announce(place);
        }
    }

    fn announce(&mut self, place: usize) {
        let tx = &mut self.all[place];
        self.oracle.announce(tx.core, tx.id, &zeros()).expect("it was asked for");
        if tx.serial == u64::MAX {
            self.serial += 1;
            tx.serial = self.serial;
        }
        tx.is_promised = true;
    }

    /// Returns what each set that may be there leaves in the words.
    fn may_be(&self) -> Vec<Values> {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|place| self.all[*place].serial);
        let mut left = Vec::new();
        for set in 0..1_u64 << self.all.len() {
            let has = |place: usize| set >> place & 1 == 1;
            let is_right = self.all.iter().enumerate().all(|(place, tx)| match has(place) {
                true => tx.after.iter().all(|before| has(*before)),
                false => !tx.is_promised,
            });
            if is_right {
                let mut values = [0; WORDS.len()];
                let there = order.iter().filter(|place| has(**place));
                for &(word, value) in there.flat_map(|place| &self.all[*place].writes) {
                    values[word] = value;
                }
                left.push(values);
            }
        }
        left
    }

    fn accepts(&mut self, values: Values) -> bool {
        let mut durable = zeros();
        for (word, value) in WORDS.into_iter().zip(values) {
            durable.set_word(word, value);
        }
        WORDS.iter().for_each(|word| self.oracle.compare(word.line(), &durable));
        let is_right = self.oracle.check(&Image::over(&durable)).is_ok();
        WORDS.iter().for_each(|word| self.oracle.compare(word.line(), &zeros()));
        is_right
    }
}

#[test]
fn an_image_is_right_if_a_set_that_may_be_there_left_it() {
    let mut counts = [0, 0];
    for seed in 0..120 {
        let durability = match seed & 3 {
            0 => Durability::Synchronous,
            _ => Durability::Asynchronous,
        };
        let mut bench = Bench::new(mix(seed), durability);
        while bench.all.len() < 8 {
            bench.act();
            if bench.durability == Durability::Asynchronous && bench.below(16) == 0 {
                let acknowledged = bench.all.iter().rposition(|tx| tx.serial < u64::MAX);
                acknowledged.into_iter().for_each(|place| bench.announce(place));
            }
        }
        let may_be = bench.may_be();
        assert!(may_be.iter().all(|values| bench.accepts(*values)), "seed {seed}");
        for image in 0..VALUES.pow(WORDS.len() as u32) {
            let of = |word: usize| image / VALUES.pow(word as u32) % VALUES;
            let values = std::array::from_fn(of);
            let is_right = may_be.contains(&values);
            assert_eq!(bench.accepts(values), is_right, "seed {seed}: {values:?}");
            counts[usize::from(is_right)] += 1;
        }
    }
    assert!(counts.iter().all(|count| *count > 200), "{counts:?}");
}
