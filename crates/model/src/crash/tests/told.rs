//! What is told of an image that a checker or a design's hook does not accept, or that is wrong.

use crate::checker::{Account, Reached, Shown};

use super::*;

/// A workload whose checker wants the second word of data.
struct Wants;

impl Checker for Wants {
    fn check(&self, image: &Image<'_>, _: &Reached, _: &[u64]) -> Result<(), Refusal> {
        if image.word(DATA[1]) == 7 { Ok(()) } else { Err("the checker".to_owned().into()) }
    }

    fn shown(&self) -> Shown {
        Shown { images: 0, refused: 0, accepts_garbage: false, has_enough: false }
    }

    fn alike(&self, _account: &Account) -> u64 {
        0
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn has_enough(&self) -> bool {
        false
    }
}

impl Workload for Wants {
    fn populate(&mut self, _pm: &mut Pm<'_>) -> Step {
        Ok(())
    }

    fn program(&self, _core: CoreId) -> Step<Box<dyn Program>> {
        unreachable!("it does not run")
    }

    fn checker(&self) -> Option<&dyn Checker> {
        Some(self)
    }
}

/// The word is missing after two of recovery's writes alone.
#[test]
fn a_checker_refuses_what_an_interruption_of_recovery_left() {
    let mut durable = Contents::new(0, 4096).expect("room");
    durable.set_word(MARK, 1);
    let mut config = Config::default();
    config.controller.domain = Domain::Eadr;
    let mut probe = of_transactions::<HASTY>(1, true);
    probe.firmware = fixed::<Recovers<HASTY>>(&config);
    // The oracle leaves what is stored outside of transactions to the checker.
    DATA.into_iter().for_each(|word| probe.oracle.store_outside(CoreId(0), word));
    (probe.workload, probe.order, probe.found.passed) = (Rc::new(Wants), 5, 9);
    let Probe { campaign, workload, firmware, oracle, .. } = &probe;
    probe.judge = Judge::new(&campaign.check, workload, &**firmware, oracle);
    probe.recover(Cycle(3), Image::over(&durable));
    let [found] = &probe.found.violations[..] else { panic!("{:?}", probe.found.violations) };
    assert_eq!((&*found.text, found.nested, found.nested_order), ("the checker", Some(2), 0));
    assert_eq!((found.point, found.order, found.at), (9, 5, Cycle(3)));
}

#[test]
fn where_the_order_of_stores_is_checked_a_recovery_that_does_not_end_is_told() {
    let durable = Contents::new(0, 4096).expect("room");
    let mut probe = of_stores::<ENDLESS>(&[]);
    probe.check_stores(Cycle(0), Image::over(&durable));
    let texts: Vec<&str> = probe.found.violations.iter().map(|found| &*found.text).collect();
    assert_eq!(texts, ["liveness: recovery does not end: `recover` makes 4 million writes"]);
}

/// The wrong word is in the line of a word that was stored to, in another line, or one that
/// recovery alone wrote.
#[test]
fn hardware_that_writes_where_nobody_has_stored_is_found() {
    let view = View::new(4096, 4096).expect("room");
    let texts = |durable: &Contents, stored: &[Word]| {
        let mut probe = of_stores::<CAREFUL>(&[]);
        for &word in stored {
            probe.stored(CoreId(0), word, (0, 7), false, &view);
        }
        (0..512).for_each(|word| probe.oracle.compare(Word(word).line(), durable));
        probe.check_stores(Cycle(0), Image::over(durable));
        let text = |found: &Violation| found.text.clone();
        probe.found.violations.iter().map(text).collect::<Vec<String>>()
    };
    for word in [Word(0), Word(2), Word(7), Word(64)] {
        let mut durable = Contents::new(0, 4096).expect("room");
        durable.set_word(DATA[0], 7);
        assert_eq!(texts(&durable, &DATA), [""; 0]);
        durable.set_word(word, 5);
        let address = word.address();
        let told = format!(
            "order: the image holds 0x5 at {address:#x}, where nobody has stored and 0x0 was"
        );
        assert_eq!(texts(&durable, &DATA), [told]);
        durable.set_word(word, 0);
        durable.set_word(Word(MARK.0 + 1), 5);
        assert_eq!(texts(&durable, &DATA), [""; 0], "logs are not data");
        durable.set_word(MARK, 1);
        assert_eq!(texts(&durable, &DATA), [""; 0], "recovery stores what was stored");
        assert_eq!(texts(&durable, &DATA[..1]).len(), 1, "to one word more than the program");
    }
}

#[test]
fn a_design_that_cannot_say_where_lines_are_is_wrong() {
    let found = recovered::<Recovers<LOST>>(&Config::default(), 1, false).found.violations;
    let texts: Vec<&str> = found.iter().map(|found| &*found.text).collect();
    assert_eq!(texts, ["placement: two pages have one frame"]);
}

/// No image shows that a transaction that was announced may store more.
#[test]
fn an_announcement_of_what_may_store_more_is_told() {
    let memory = Contents::new(0, 4096).expect("room");
    let oracle = Oracle::new(&memory, 1, MARK.address(), Durability::Asynchronous).expect("room");
    let firmware = fixed::<Recovers<CAREFUL>>(&Config::default());
    let mut probe = begin(campaign(1, false), oracle, firmware);
    probe.oracle.begin(CoreId(0), TxId(1));
    (probe.order, probe.found.passed) = (2, 9);
    probe.announced(Cycle(3), CoreId(0), TxId(1), &memory);
    let [found] = &probe.found.violations[..] else { panic!("{:?}", probe.found.violations) };
    assert!(found.text.starts_with("announcement: transaction 1 of core 0"), "{}", found.text);
    assert_eq!((found.point, found.order, found.at), (10, 0, Cycle(3)), "the one that follows");
    // A campaign that only counts is not ended by what it finds.
    probe.found.violations.clear();
    probe.campaign.points = Points::Count;
    probe.oracle.begin(CoreId(0), TxId(2));
    probe.announced(Cycle(4), CoreId(0), TxId(2), &memory);
    assert!(probe.found.violations.is_empty());
}

/// The images of one crash point may take longer than the caller that cancelled the campaign waits.
#[test]
fn a_campaign_that_is_cancelled_tells_nothing_more() {
    let mut probe = of_transactions::<HASTY>(1, true);
    assert!(probe.comes_to_cut());
    probe.cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(!probe.comes_to_cut() && probe.is_done());
    probe.report(Cycle(0), None, "wrong".to_owned(), None);
    let durable = Contents::new(0, 4096).expect("room");
    probe.recover(Cycle(0), Image::over(&durable));
    assert_eq!((probe.found.nested_points, probe.found.violations.len()), (0, 0));
}
