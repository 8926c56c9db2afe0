//! Which orders a campaign tries, and where it interrupts recovery.

use super::*;
use crate::config::Config;
use crate::design::{Bare, Card, Durability, Granularity, Model, Needs, NoParams, NoRules, Shape};
use crate::meters::Class;
use crate::units::TxId;
use crate::workload::{Pm, Program, Step};

/// Every image that writes to the first words of lines, in their order, can leave if some arrive
/// early: what each of the lines holds.
fn arrivals<const LINES: usize>(writes: &[(u64, u64)]) -> Vec<[u64; LINES]> {
    let durable = Contents::new(0, 4096).expect("room");
    let write = |&(line, value): &(u64, u64)| {
        let mut data = [0; 64];
        data[..8].copy_from_slice(&value.to_le_bytes());
        Write { line: Line(line), data, mask: 0xff, class: Class::Data }
    };
    let writes: Vec<Write> = writes.iter().map(write).collect();
    let (mut choices, mut images) = (Choices::every(), Vec::new());
    loop {
        let mut image = Image::over(&durable);
        arrive_early(writes.iter().collect(), &mut image, &mut choices);
        images.push(std::array::from_fn(|line| image.word(Line(line as u64).first_word())));
        if choices.next(0) {
            images.sort_unstable();
            return images;
        }
    }
}

#[test]
fn a_write_may_arrive_before_those_of_other_lines_that_were_sent_before_it() {
    assert_eq!(arrivals(&[(0, 1), (1, 1)]), [[0, 0], [0, 1], [1, 0], [1, 1]]);
    assert_eq!(arrivals::<3>(&[(0, 1), (1, 1), (2, 1)]).len(), 8);
}

#[test]
fn the_writes_of_one_line_arrive_in_order() {
    assert_eq!(arrivals(&[(0, 1), (0, 2)]), [[0], [1], [2]]);
    let both = arrivals(&[(0, 1), (1, 1), (0, 2)]);
    assert_eq!(both, [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]);
}

#[test]
fn by_chance_one_write_arrives_without_another_that_was_sent_before_it() {
    let mut choices = Choices::none();
    let mut answers = |seed| {
        choices.at_random(seed);
        [choices.arrived(), choices.arrived()]
    };
    let seen: Vec<[bool; 2]> = (0..64).map(|seed| answers(mix(seed))).collect();
    for both in [[false, false], [false, true], [true, false], [true, true]] {
        assert!(seen.contains(&both), "{both:?}");
    }
}

/// A design whose recovery stores two words of data and, too early, erases what it knew them from:
/// whoever fails after that write has lost the second.
struct Hasty;

/// Says that the two words are to be stored. Logs begin there.
const MARK: Word = Word(256);
const DATA: [Word; 2] = [Word(1), Word(9)];

impl Design for Hasty {
    const CARD: Card = Card {
        name: "hasty",
        paper: "none",
        family: "test",
        summary: "forgets first",
        file: file!(),
        durability: Durability::Synchronous,
        granularity: Granularity::Word,
        needs: Needs::Nothing,
    };
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Hasty>) -> Hasty {
        Hasty
    }

    fn recover(image: &mut Image<'_>, _setup: &Setup<'_, Hasty>) -> Result<(), PowerLoss> {
        if image.word(MARK) == 1 {
            image.set_word(DATA[0], 7)?;
            image.set_word(MARK, 0)?;
            image.set_word(DATA[1], 7)?;
        }
        Ok(())
    }
}

/// A workload of which nothing is asked.
struct Nothing;

impl Workload for Nothing {
    fn populate(&mut self, _pm: &mut Pm<'_>) -> Step {
        Ok(())
    }

    fn program(&self, _core: CoreId) -> Step<Box<dyn Program>> {
        unreachable!("it does not run")
    }
}

#[test]
fn recovery_is_interrupted_at_each_of_its_writes() {
    let zeros = Contents::new(0, 4096).expect("room");
    let mut durable = Contents::new(0, 4096).expect("room");
    let oracle = Oracle::new(&zeros, 1, MARK.address(), Durability::Synchronous);
    let mut oracle = oracle.expect("room");
    oracle.begin(CoreId(0), TxId(1));
    for word in DATA {
        oracle.store(CoreId(0), word, 7, u64::MAX);
    }
    oracle.committing(CoreId(0));
    oracle.acknowledge(CoreId(0), &durable);
    oracle.announce(CoreId(0), TxId(1), &durable);
    durable.set_word(MARK, 1);
    let campaign = Campaign {
        points: Points::All,
        nested: true,
        reorders: 0,
        violations_max: usize::MAX,
        seed: 1,
        keep: 0,
        check: Check::Transactions,
    };
    let order = Persistency::new(Model::Unordered, 1);
    let mut probe = Probe::new(campaign, oracle, order, None, Rc::new(Nothing));
    let shape = Shape::new(&Config::default(), 1);
    let setup = Setup { params: &NoParams {}, rules: &NoRules {}, shape: &shape };
    probe.recover::<Hasty>(Cycle(0), Image::over(&durable), &setup);
    let found: Vec<_> = probe.violations.iter().map(|found| (found.nested, found.word)).collect();
    assert_eq!((probe.nested_points, found), (3, vec![(Some(2), Some(DATA[1]))]));
}
