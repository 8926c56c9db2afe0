//! Which orders a campaign tries, and where it interrupts recovery.

use rustc_hash::FxHashSet;

use super::*;
use crate::config::{Config, Domain};
use crate::design::{
    Bare, Card, Design, Durability, Granularity, KeptBy, Location, Model, Needs, NoParams, NoRules,
    Ordering, Setup, Shape, Structure,
};
use crate::firmware::Fixed;
use crate::image::{Cut, Placement, PowerLoss};
use crate::units::{Line, TxId};
use crate::workload::{Pm, Program, Step};

mod arrivals;
mod inspected;
mod overtaken;
mod told;

/// A design whose recovery is the one of that number in [`RECOVERIES`], and whose stores are
/// durable when they are visible if `VISIBLE`, and in the order of epochs otherwise.
struct Recovers<const HOW: usize, const VISIBLE: bool = false>;

type Recovery = fn(&mut Image<'_>) -> Result<(), PowerLoss>;

const RECOVERIES: [Recovery; 12] = [
    hasty, careless, careful, rash, wrong, moody, endless, trusting, fickle, tiring, careful,
    hopeful,
];
const HASTY: usize = 0;
const CARELESS: usize = 1;
const CAREFUL: usize = 2;
const RASH: usize = 3;
const WRONG: usize = 4;
const MOODY: usize = 5;
const ENDLESS: usize = 6;
const TRUSTING: usize = 7;
const FICKLE: usize = 8;
const TIRING: usize = 9;
/// Recovers as `CAREFUL` does, and cannot say where the lines of pages are.
const LOST: usize = 10;
const HOPEFUL: usize = 11;

/// The word that says that the two words of data are to be stored. Logs begin there.
const MARK: Word = Word(256);
const DATA: [Word; 2] = [Word(1), Word(9)];

/// Stores two words of data and erases the mark too early: a power failure after that write loses
/// the second word.
fn hasty(image: &mut Image<'_>) -> Result<(), PowerLoss> {
    if image.word(MARK) == 1 {
        image.set_word(DATA[0], 7)?;
        image.set_word(MARK, 0)?;
        image.set_word(DATA[1], 7)?;
    }
    Ok(())
}

/// Erases the mark last, and without a fence.
fn careless(image: &mut Image<'_>) -> Result<(), PowerLoss> {
    if image.word(MARK) == 1 {
        DATA.into_iter().try_for_each(|word| image.set_word(word, 7))?;
        image.set_word(MARK, 0)?;
    }
    Ok(())
}

/// Erases the mark last, behind a fence.
fn careful(image: &mut Image<'_>) -> Result<(), PowerLoss> {
    if image.word(MARK) == 1 {
        DATA.into_iter().try_for_each(|word| image.set_word(word, 7))?;
        image.fence();
        image.set_word(MARK, 0)?;
    }
    Ok(())
}

/// Erases the mark first, with a fence.
fn rash(image: &mut Image<'_>) -> Result<(), PowerLoss> {
    if image.word(MARK) == 1 {
        image.set_word(MARK, 0)?;
        image.fence();
        DATA.into_iter().try_for_each(|word| image.set_word(word, 7))?;
    }
    Ok(())
}

/// Stores another value than it should, whether it is interrupted or not.
fn wrong(image: &mut Image<'_>) -> Result<(), PowerLoss> {
    image.set_word(DATA[0], 7)?;
    image.set_word(DATA[1], 8)
}

/// Returns how often it was called on this thread.
fn times() -> u64 {
    thread_local!(static TIMES: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
    TIMES.set(TIMES.get() + 1);
    TIMES.get()
}

/// Writes something else each time.
fn moody(image: &mut Image<'_>) -> Result<(), PowerLoss> {
    DATA.into_iter().try_for_each(|word| image.set_word(word, 7))?;
    image.set_word(Word(MARK.0 + 8), times())
}

/// Writes something else each time, first of all and into a word that it reads, so that nothing is
/// known of what follows.
fn fickle(image: &mut Image<'_>) -> Result<(), PowerLoss> {
    let counter = Word(MARK.0 + 8);
    image.word(counter);
    image.set_word(counter, times())?;
    DATA.into_iter().try_for_each(|word| image.set_word(word, 7))
}

/// Recovers with care at every second call, and writes nothing at the others.
fn tiring(image: &mut Image<'_>) -> Result<(), PowerLoss> {
    if times() % 2 == 1 { careful(image) } else { Ok(()) }
}

/// Writes again and again.
fn endless(image: &mut Image<'_>) -> Result<(), PowerLoss> {
    loop {
        image.set_word(DATA[0], 7)?;
    }
}

/// Notes the value that it is about to store in one line with the mark that says so, and relies on
/// having both or neither.
fn trusting(image: &mut Image<'_>) -> Result<(), PowerLoss> {
    let value = Word(MARK.0 + 1);
    if image.word(MARK) == 1 {
        let mut note = [0; 64];
        (note[0], note[8]) = (2, 7);
        image.set_line(MARK.line(), &note, u64::MAX)?;
        image.fence();
    }
    store_noted(image, value)
}

/// Stores the value that a word notes, if the mark says that there is one.
fn store_noted(image: &mut Image<'_>, note: Word) -> Result<(), PowerLoss> {
    if image.word(MARK) == 2 {
        let value = image.word(note);
        DATA.into_iter().try_for_each(|word| image.set_word(word, value))?;
        image.fence();
        image.set_word(MARK, 0)?;
    }
    Ok(())
}

/// Notes the value in another line than the mark, without a fence in between. It sees by one word
/// of the note whether the note arrived with the mark, and relies on having the other word then.
fn hopeful(image: &mut Image<'_>) -> Result<(), PowerLoss> {
    let (value, is_there) = (Word(MARK.0 + 8), Word(MARK.0 + 9));
    if image.word(MARK) == 1 || image.word(MARK) == 2 && image.word(is_there) == 0 {
        let mut note = [0; 64];
        (note[0], note[8]) = (7, 1);
        image.set_line(value.line(), &note, u64::MAX)?;
        image.set_word(MARK, 2)?;
        image.fence();
    }
    store_noted(image, value)
}

impl<const HOW: usize, const VISIBLE: bool> Design for Recovers<HOW, VISIBLE> {
    const CARD: Card = Card {
        name: "recovers",
        paper: "none",
        family: "test",
        summary: "does nothing but recover",
        file: file!(),
        durability: Durability::Synchronous,
        granularity: Granularity::Word,
        needs: Needs::Nothing,
    };
    const ORDERING: Ordering = Ordering {
        model: Some(if VISIBLE { Model::Visible } else { Model::Epoch }),
        ..Ordering::NONE
    };
    const TRANSLATES: bool = HOW == LOST;
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Self>) -> Self {
        Recovers
    }

    fn recover(image: &mut Image<'_>, _setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        RECOVERIES[HOW](image)
    }

    fn resolve(_image: &Image<'_>, _setup: &Setup<'_, Self>) -> Result<Placement, String> {
        Err("two pages have one frame".into())
    }

    fn hardware(_setup: &Setup<'_, Self>) -> Vec<Structure> {
        let location = Location::AtCore("core");
        let structure =
            |bytes: u64, kept_by| Structure::new("buffer", 8 * bytes, 1, location).kept(kept_by);
        vec![
            structure(100, KeptBy::Battery),
            structure(20, KeptBy::Adr),
            structure(5, KeptBy::Cells),
            structure(1000, KeptBy::Nothing),
        ]
    }
}

/// A workload that stores nothing and does not run.
struct Nothing;

impl Workload for Nothing {
    fn populate(&mut self, _pm: &mut Pm<'_>) -> Step {
        Ok(())
    }

    fn program(&self, _core: CoreId) -> Step<Box<dyn Program>> {
        unreachable!("it does not run")
    }
}

/// Where and in which order recovery was interrupted, as a violation has it, and the wrong word.
type Caught = (Option<u64>, u64, Option<Word>);

/// Returns how often recovery was interrupted in a campaign of that seed, and what was wrong then.
fn interrupted<D: Design<Params = NoParams, Rules = NoRules>>(
    config: &Config,
    seed: u64,
) -> (u64, Vec<Caught>) {
    let probe = recovered::<D>(config, seed, true);
    let violations = probe.found.violations.iter();
    let found = violations.map(|found| (found.nested, found.nested_order, found.word));
    (probe.found.nested_points, found.collect())
}

fn campaign(seed: u64, nested: bool) -> Campaign {
    Campaign {
        points: Points::All,
        nested,
        reorders: 0,
        violations_max: usize::MAX,
        seed,
        keep: 0,
        check: Check::Transactions,
    }
}

/// A design on a machine of one core.
fn fixed<D: Design<Params = NoParams, Rules = NoRules>>(config: &Config) -> Rc<Fixed<D>> {
    Rc::new(Fixed { params: NoParams {}, rules: NoRules {}, shape: Shape::new(config, 1) })
}

/// A campaign without a workload.
fn begin(campaign: Campaign, oracle: Oracle, firmware: Rc<dyn Firmware>) -> Probe {
    Probe::new(campaign, oracle, Rc::new(Nothing), firmware, Arc::default())
}

/// A campaign of that seed that cuts the power once, and again during recovery if that is asked.
fn recovered<D: Design<Params = NoParams, Rules = NoRules>>(
    config: &Config,
    seed: u64,
    nested: bool,
) -> Probe {
    let zeros = Contents::new(0, 4096).expect("room");
    let mut durable = Contents::new(0, 4096).expect("room");
    let oracle = Oracle::new(&zeros, 1, MARK.address(), Durability::Synchronous);
    let mut oracle = oracle.expect("room");
    oracle.begin(CoreId(0), TxId(1));
    for word in DATA {
        oracle.store(CoreId(0), word, 7, u64::MAX);
    }
    oracle.committing(CoreId(0));
    oracle.acknowledge(CoreId(0));
    oracle.announce(CoreId(0), TxId(1), &durable).expect("it was asked for");
    durable.set_word(MARK, 1);
    let mut probe = begin(campaign(seed, nested), oracle, fixed::<D>(config));
    probe.recover(Cycle(0), Image::over(&durable));
    probe
}

/// A campaign that checks the order of stores and is asked about images.
fn of_stores<const HOW: usize>(asked: &[&[(Word, u64)]]) -> Probe {
    let zeros = Contents::new(0, 4096).expect("room");
    let oracle = Oracle::new(&zeros, 1, MARK.address(), Durability::None).expect("room");
    let asked = asked.iter().map(|words| words.to_vec()).collect();
    let campaign = Campaign { check: Check::Stores(asked), ..campaign(1, false) };
    begin(campaign, oracle, fixed::<Recovers<HOW>>(&Config::default()))
}

/// A campaign that checks transactions, of which there are none.
fn of_transactions<const HOW: usize>(seed: u64, nested: bool) -> Probe {
    let zeros = Contents::new(0, 4096).expect("room");
    let oracle = Oracle::new(&zeros, 1, MARK.address(), Durability::Synchronous).expect("room");
    begin(campaign(seed, nested), oracle, fixed::<Recovers<HOW>>(&Config::default()))
}

/// No crash point comes between the store to the second word and the fence.
#[test]
fn what_a_fence_forbids_was_allowed_before_it() {
    let view = View::new(4096, 4096).expect("room");
    let mut probe = of_stores::<CAREFUL>(&[&[(DATA[0], 0), (DATA[1], 1)]]);
    for word in DATA {
        probe.stored(CoreId(0), word, (0, 1), false, &view);
    }
    probe.fence(CoreId(0), FenceKind::Durable);
    probe.fenced(CoreId(0));
    assert_eq!(probe.finish().asked, [Answer { allowed: true, seen: None }]);
}

#[test]
fn the_order_of_stores_is_checked_in_what_recovery_leaves() {
    let view = View::new(4096, 4096).expect("room");
    let mut durable = Contents::new(0, 4096).expect("room");
    durable.set_word(MARK, 1);
    let mut probe = of_stores::<CAREFUL>(&[]);
    probe.stored(CoreId(0), DATA[0], (0, 1), false, &view);
    probe.check_stores(Cycle(0), Image::over(&durable));
    let texts: Vec<&str> = probe.found.violations.iter().map(|found| &*found.text).collect();
    assert_eq!(texts, ["order: the image holds 0x7 at 0x8, which nobody stored"]);
}

#[test]
fn what_recovery_takes_is_counted_in_lines() {
    for nested in [true, false] {
        let took = recovered::<Recovers<CAREFUL>>(&Config::default(), 1, nested).found.recovery;
        let lines: FxHashSet<Line> = DATA.iter().chain([&MARK]).map(|word| word.line()).collect();
        assert_eq!((took.count, took.read, took.read_most), (1, 1, 1), "the mark");
        let written = lines.len() as u64;
        assert_eq!((took.written, took.written_most), (written, written));
    }
}

#[test]
fn of_all_recoveries_the_most_is_told() {
    let mut took = super::Recovery::default();
    took.add(3, 5);
    took.add(1, 2);
    assert_eq!((took.count, took.read, took.read_most), (2, 4, 3));
    assert_eq!((took.written, took.written_most), (7, 5));
}

#[test]
fn a_campaign_finds_so_much_and_no_more() {
    let mut probe = of_transactions::<CAREFUL>(1, true);
    probe.campaign.violations_max = 2;
    (0..3).for_each(|_| probe.report(Cycle(0), None, "wrong".to_owned(), None));
    assert_eq!(probe.found.violations.len(), 2);
}

/// What was announced too early convicts the point behind it, where the power may not be cut.
#[test]
fn a_point_with_a_violation_is_one_that_was_tried() {
    let durable = Contents::new(0, 4096).expect("room");
    let mut probe = of_transactions::<CAREFUL>(1, false);
    probe.campaign.points = Points::These(vec![1, 3]);
    let cut = |_: &mut Saved, _: u64, _: Arrivals<'_>| Ok(Image::over(&durable));
    for point in 1..=4 {
        // Twice at the second and at the third point, where the power is cut, too.
        for _ in 0..2 * u64::from(point == 2 || point == 3) {
            probe.announced(Cycle(point), CoreId(0), TxId(point), &durable);
        }
        probe.pass(Cycle(point), &|| Ok(()), &cut);
    }
    let points: Vec<u64> = probe.found.violations.iter().map(|found| found.point).collect();
    assert_eq!((points, probe.found.points), (vec![2, 2, 3, 3], 3));
}

#[test]
fn recovery_is_interrupted_at_each_of_its_writes() {
    let mut config = Config::default();
    config.controller.domain = Domain::Eadr;
    let found = interrupted::<Recovers<HASTY>>(&config, 1);
    assert_eq!(found, (3, vec![(Some(2), 0, Some(DATA[1]))]));
}

/// If its writes arrive in their order, all is well.
#[test]
fn a_recovery_that_forgets_a_fence_is_caught_by_what_was_overtaken() {
    let seeds = 0..64;
    let (mut orders, mut words) = (FxHashSet::default(), FxHashSet::default());
    for seed in seeds.clone() {
        let (points, found) = interrupted::<Recovers<CARELESS>>(&Config::default(), seed);
        assert_eq!(points, 3 + 2);
        for (nested, order, word) in found {
            assert_eq!(nested, Some(3), "all of the epoch were issued");
            orders.insert(order);
            words.insert(word);
        }
    }
    assert_eq!(orders, FxHashSet::from_iter([1, 2]));
    assert_eq!(words, FxHashSet::from_iter(DATA.map(Some)));
    for seed in seeds {
        // The two words may overtake each other, and the mark none of them.
        let found = interrupted::<Recovers<CAREFUL>>(&Config::default(), seed);
        assert_eq!(found, (3 + 2, vec![]));
    }
}

/// The lines that recovery writes are torn where those of the run are.
#[test]
fn a_recovery_that_relies_on_a_whole_line_is_caught_under_media() {
    let caught = |domain: Domain| {
        let mut config = Config::default();
        config.controller.domain = domain;
        let found: Vec<_> =
            (0..16).map(|seed| interrupted::<Recovers<TRUSTING>>(&config, seed)).collect();
        let points = if domain == Domain::Media { 4 + 2 + 1 } else { 4 + 2 };
        assert!(found.iter().all(|(count, _)| *count == points), "{found:?}");
        found.into_iter().flat_map(|(_, found)| found).collect::<Vec<_>>()
    };
    assert_eq!(caught(Domain::Adr), []);
    let found = caught(Domain::Media);
    assert!(found.contains(&(Some(0), nested::TORN, Some(DATA[0]))), "{found:?}");
    assert!(found.iter().all(|(nested, order, _)| (*nested, *order) == (Some(0), nested::TORN)));
}

/// A part of the line does no harm if all earlier writes are there.
#[test]
fn a_part_of_a_line_may_be_there_with_what_overtook_it_under_media() {
    let caught = |domain: Domain| {
        let mut config = Config::default();
        config.controller.domain = domain;
        let found = (0..512).map(|seed| interrupted::<Recovers<HOPEFUL>>(&config, seed).1);
        found.flatten().collect::<FxHashSet<_>>()
    };
    assert_eq!(caught(Domain::Adr), FxHashSet::default());
    assert_eq!(caught(Domain::Media), FxHashSet::from_iter([(Some(2), 2, Some(DATA[0]))]));
}

#[test]
fn where_stores_are_durable_when_they_are_visible_recovery_needs_no_fence() {
    for domain in [Domain::Eadr, Domain::Gpf] {
        let mut config = Config::default();
        config.controller.domain = domain;
        assert_eq!(interrupted::<Recovers<CARELESS>>(&config, 1), (3, vec![]));
    }
    assert_eq!(interrupted::<Recovers<CARELESS, true>>(&Config::default(), 1), (3, vec![]));
}

/// A write that recovery sees may be of an earlier epoch than those that arrived out of order.
#[test]
fn what_an_earlier_epoch_left_is_seen() {
    for seed in 0..16 {
        let (points, found) = interrupted::<Recovers<RASH>>(&Config::default(), seed);
        assert_eq!(points, 3 + 2);
        let found: Vec<_> = found.iter().map(|&(nested, order, _)| (nested, order)).collect();
        assert!(found.starts_with(&[(Some(1), 0), (Some(2), 0), (Some(3), 1)]), "{found:?}");
    }
}

#[test]
fn what_was_wrong_without_an_interruption_is_looked_at_each_time() {
    let mut config = Config::default();
    config.controller.domain = Domain::Eadr;
    let found = interrupted::<Recovers<WRONG>>(&config, 1);
    let each = [None, Some(0), Some(1)].map(|nested| (nested, 0, Some(DATA[1])));
    assert_eq!(found, (2, each.to_vec()));
}

#[test]
fn a_recovery_that_does_something_else_each_time_is_noticed() {
    for domain in [Domain::Adr, Domain::Eadr] {
        let mut config = Config::default();
        config.controller.domain = domain;
        let of = |seed| recovered::<Recovers<MOODY>>(&config, seed, true).found.violations;
        let texts: FxHashSet<String> = (0..64).flat_map(of).map(|found| found.text).collect();
        assert_eq!(texts, FxHashSet::from_iter([nested::depends("recover")]), "{domain:?}");
    }
}

/// Whatever it writes, what was written before the interruption is compared.
#[test]
fn a_recovery_that_is_another_until_it_is_interrupted_is_noticed() {
    let mut config = Config::default();
    config.controller.domain = Domain::Eadr;
    let of = |seed| recovered::<Recovers<FICKLE>>(&config, seed, true).found.violations;
    let found: Vec<Violation> = (0..64).flat_map(of).collect();
    assert!(found.iter().all(|found| found.text == nested::depends("recover")), "{found:?}");
    let nested: FxHashSet<_> = found.iter().map(|found| found.nested).collect();
    assert_eq!(nested, FxHashSet::from_iter([0, 1, 2].map(Some)));
}

#[test]
fn a_machine_that_booted_has_changed_no_data_and_does_so_again() {
    let texts = |damaged, writes: &[Word]| {
        let zeros = Contents::new(0, 4096).expect("room");
        let mut image = Image::over(&zeros).remembering();
        writes.iter().for_each(|&word| image.set_word(word, 1).expect("power"));
        let writes = image.take_remembered();
        let before = Contents::new(0, 4096).expect("room");
        let mut probe = of_transactions::<CAREFUL>(1, true);
        probe.boot(&Booted { before, writes, damaged });
        probe.found.violations.into_iter().map(|found| found.text).collect::<Vec<_>>()
    };
    assert_eq!(texts(None, &[]), [""; 0]);
    assert_eq!(texts(Some(DATA[0]), &[]), ["booting changed the word at 0x8, which is data"]);
    // The design writes nothing when it boots.
    let again = "determinism: `boot` depends on something besides the image";
    assert_eq!(texts(None, &[MARK]), [again]);
}

#[test]
fn what_cells_keep_needs_no_energy() {
    for (percent, energy) in [(100, 125), (50, 65), (0, 5)] {
        let mut config = Config::default();
        config.controller.battery = percent;
        let mut saved = Saved::default();
        saved.budget(&*fixed::<Recovers<CAREFUL>>(&config));
        assert_eq!((saved.declared, saved.energy), (125, energy), "{percent} %");
    }
}

/// Returns which images of 60 crash points, of three orders each, a keeper of `most` images has
/// kept.
fn kept<const HOW: usize>(most: usize, seed: u64) -> Result<Vec<Cut>, String> {
    let mut durable = Contents::new(0, 4096).expect("room");
    durable.set_word(MARK, 1);
    let firmware = fixed::<Recovers<HOW>>(&Config::default());
    let mut keeper = Keeper::new(most, seed, true);
    for point in 1..=60 {
        let Some(chosen) = keeper.choose(point, 3) else { continue };
        assert!(chosen.may_be(0), "there may be no other");
        let order = (0..3).rfind(|order| chosen.may_be(*order)).expect("the first");
        keeper.keep(chosen, order, &Image::over(&durable), &*firmware)?;
    }
    let remains = keeper.kept();
    for remains in &remains {
        let memory = remains.memory().expect("room");
        assert_eq!(DATA.map(|word| memory.word(word)), [7; 2], "it was recovered");
    }
    Ok(remains.iter().map(|remains| remains.cut).collect())
}

#[test]
fn images_are_kept_from_everywhere_in_a_run() {
    let mut seen: Vec<Cut> = Vec::new();
    for seed in 0..64 {
        let [few, more] = [3, 6].map(|most| kept::<CAREFUL>(most, seed).expect("it is right"));
        assert_eq!((few.len(), more.len()), (3, 6));
        assert!(more.is_sorted_by_key(|cut| cut.point), "{more:?}");
        assert!(few.iter().all(|cut| more.contains(cut)), "{few:?} {more:?}");
        seen.extend(few);
    }
    let different = |of: fn(&Cut) -> u64| seen.iter().map(of).collect::<FxHashSet<_>>().len();
    assert!(different(|cut| cut.point) > 50, "{seen:?}");
    assert_eq!(different(|cut| cut.order), 3);
    // Recovery was cut short after none, one or two of its three writes, or not at all.
    assert_eq!(different(|cut| cut.nested.unwrap_or(u64::MAX)), 1 + 3);
}

#[test]
fn a_recovery_that_does_less_the_second_time_is_not_kept() {
    assert_eq!(kept::<TIRING>(8, 1), Err(nested::depends("recover")));
}

#[test]
fn a_recovery_that_does_not_end_is_noticed() {
    for nested in [true, false] {
        let probe = recovered::<Recovers<ENDLESS>>(&Config::default(), 1, nested);
        let texts: Vec<&str> = probe.found.violations.iter().map(|found| &*found.text).collect();
        assert_eq!(texts, ["liveness: recovery does not end: `recover` makes 4 million writes"]);
        assert_eq!(probe.found.nested_points, 0, "there is nothing to interrupt");
    }
}
