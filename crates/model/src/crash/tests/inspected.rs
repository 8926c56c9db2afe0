//! When a workload inspects its own data.

use std::cell::RefCell;

use super::*;
use crate::oracle::{Left, LeftOpen, Promises};

/// A workload that remembers what it was to inspect.
#[derive(Default)]
struct Inspects {
    images: RefCell<Vec<[u64; 2]>>,
}

impl Workload for Inspects {
    fn populate(&mut self, _pm: &mut Pm<'_>) -> Step {
        Ok(())
    }

    fn program(&self, _core: CoreId) -> Step<Box<dyn Program>> {
        unreachable!("it does not run")
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        self.images.borrow_mut().push(DATA.map(|word| image.word(word)));
        Ok(())
    }
}

/// A campaign at whose power failures only the words of data may be other than 0.
struct Cuts {
    probe: Probe,
    workload: Rc<Inspects>,
}

impl Cuts {
    fn begin() -> Cuts {
        let workload = Rc::new(Inspects::default());
        let mut probe = of_transactions::<CAREFUL>(1, false);
        probe.workload = Rc::clone(&workload) as Rc<dyn Workload>;
        Cuts { probe, workload }
    }

    fn commit(&mut self, id: u64, stores: &[(Word, u64)]) {
        let oracle = &mut self.probe.oracle;
        oracle.begin(CoreId(0), TxId(id));
        stores.iter().for_each(|&(word, value)| oracle.store(CoreId(0), word, value, u64::MAX));
        oracle.committing(CoreId(0));
    }

    /// Cuts the power, and returns what the workload inspects then.
    fn cut(&mut self, words: [u64; 2]) -> Vec<[u64; 2]> {
        let mut durable = Contents::new(0, 4096).expect("room");
        for (word, value) in DATA.into_iter().zip(words) {
            durable.set_word(word, value);
            self.probe.oracle.compare(word.line(), &durable);
        }
        self.probe.found.points += 1;
        self.probe.recover(Cycle(0), Image::over(&durable));
        assert!(self.probe.found.violations.is_empty(), "{:?}", self.probe.found.violations);
        self.workload.images.take()
    }

    /// Cuts the power, and returns what is told of that.
    fn left(&mut self, words: [u64; 2]) -> Vec<Left> {
        self.cut(words);
        self.probe.found.left.clone()
    }
}

#[test]
fn a_workload_inspects_each_set_of_transactions_that_survives() {
    let mut cuts = Cuts::begin();
    assert_eq!(cuts.cut([0, 0]), [[0, 0]]);
    cuts.commit(1, &[(DATA[0], 1), (DATA[1], 1)]);
    assert!(cuts.cut([0, 0]).is_empty(), "the same set");
    assert_eq!(cuts.cut([1, 1]), [[1, 1]], "its commit is in flight");
    assert_eq!(cuts.cut([0, 0]), [[0, 0]]);
    assert_eq!(cuts.cut([1, 1]), [[1, 1]]);
    cuts.probe.oracle.acknowledge(CoreId(0));
    let zeros = Contents::new(0, 4096).expect("room");
    cuts.probe.oracle.announce(CoreId(0), TxId(1), &zeros).expect("it was asked for");
    assert!(cuts.cut([1, 1]).is_empty(), "it is the set that was there before");
    // Another set may leave the same bytes.
    cuts.commit(2, &[(DATA[1], 1)]);
    assert_eq!(cuts.cut([1, 1]), [[1, 1]]);
}

/// To walk through large data takes long, so that some failures pass, whatever they leave.
#[test]
fn of_large_data_a_workload_inspects_some_sets_of_transactions() {
    let large = Contents::new(0, 4 << 20).expect("room");
    let probe = |pages: u64| {
        let mut populated = large.copy().expect("room");
        for page in 0..pages {
            populated.set_word(Word(512 * page), 1);
        }
        let oracle = Oracle::new(&populated, 1, 3 << 20, Durability::Synchronous).expect("room");
        let campaign = of_transactions::<CAREFUL>(1, false).campaign;
        begin(campaign, oracle, fixed::<Recovers<CAREFUL>>(&Config::default()))
    };
    // What is behind the beginning of the logs is no data.
    let inspects_at = [0, 1, 255, 256, 600, 768, 1024].map(|pages| probe(pages).inspects_at);
    assert_eq!(inspects_at, [1, 1, 1, 2, 3, 4, 4]);
    let mut cuts = Cuts::begin();
    cuts.probe.inspects_at = 3;
    cuts.commit(1, &[(DATA[0], 1), (DATA[1], 1)]);
    let left = [[1, 1], [0, 0], [1, 1], [0, 0], [1, 1], [0, 0]];
    // What the first failure left is inspected in any case, and what the third left that differs.
    assert_eq!(left.map(|words| cuts.cut(words).len()), [1, 0, 0, 0, 0, 1]);
    assert_eq!([[0, 0], [1, 1], [1, 1]].map(|words| cuts.cut(words).len()), [0; 3]);
    assert_eq!(cuts.cut([1, 1]).len(), 1, "from there on, too");
}

/// What is stored outside of transactions changes unseen.
#[test]
fn a_workload_inspects_at_some_failures_whatever_they_leave() {
    let mut cuts = Cuts::begin();
    let times = (0..3 * INSPECT_EVERY).map(|_| cuts.cut([0, 0]).len()).sum::<usize>();
    assert_eq!(times, 3);
}

#[test]
fn the_only_power_failure_tells_what_it_left() {
    let mut cuts = Cuts::begin();
    cuts.commit(1, &[(DATA[0], 1), (DATA[1], 1)]);
    cuts.cut([1, 1]);
    assert_eq!(cuts.probe.found.left, [], "there may be others");
    cuts.probe.campaign.points = Points::One(1);
    let is = |there, promised, open| {
        let promises = Promises { acknowledged: promised, announced: promised };
        Left { there, promises, open }
    };
    let open = |stores, committing| Some(LeftOpen { stores, committing });
    assert_eq!(cuts.left([0, 0]), [is(0, 0, open(2, true))]);
    assert_eq!(cuts.left([1, 1]), [is(1, 0, open(2, true))]);
    cuts.probe.oracle.acknowledge(CoreId(0));
    let zeros = Contents::new(0, 4096).expect("room");
    cuts.probe.oracle.announce(CoreId(0), TxId(1), &zeros).expect("it was asked for");
    assert_eq!(cuts.left([1, 1]), [is(1, 1, None)]);
    cuts.probe.oracle.begin(CoreId(0), TxId(2));
    assert_eq!(cuts.left([1, 1]), [is(1, 1, None)], "it has stored nothing");
    cuts.probe.oracle.store(CoreId(0), DATA[0], 5, u64::MAX);
    assert_eq!(cuts.left([1, 1]), [is(1, 1, open(1, false))]);
}
