//! The points at which a campaign cuts the power, and the saving by batteries in it.

use std::cell::Cell;

use crate::common::{at, campaign, card, config, each, on, try_campaign, try_on_design};
use model::control::Control;
use model::crash::{Campaign, Crashes, Points};
use model::design::{
    Bare, Below, Card, Design, Gasp, KeptBy, Location, NoParams, NoRules, Progress, Setup,
    Structure, Tx,
};
use model::engine::{Run, run as run_design};
use model::image::{Image, PowerLoss};
use model::params::Rules;
use model::units::Word;

#[test]
fn the_power_is_cut_after_each_acknowledgement_and_at_the_end() {
    for transactions in [0, 1, 5] {
        let outcome = on(&config(|_| ()), 1, Some(Points::All), move |pm| {
            for _ in 0..transactions {
                pm.begin()?;
                pm.work(10);
                pm.commit();
            }
            Ok(())
        });
        let crashes = outcome.crashes.expect("there was a campaign");
        assert_eq!((crashes.passed, crashes.points), (transactions + 1, transactions + 1));
    }
}

/// A design whose battery keeps 8 bytes, and that saves `SAVES`.
struct Greedy<const SAVES: usize>;

impl<const SAVES: usize> Design for Greedy<SAVES> {
    const CARD: Card = card("greedy", "saves more than it declares");
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Self>) -> Self {
        Greedy
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        // Zeros, so that there is no other violation.
        gasp.save(0, &[0; SAVES])
    }

    fn hardware(_setup: &Setup<'_, Self>) -> Vec<Structure> {
        let location = Location::AtCore("core");
        let structure = |bits, kept_by| Structure::new("buffer", bits, 1, location).kept(kept_by);
        vec![structure(64, KeptBy::Battery), structure(512, KeptBy::Nothing)]
    }
}

/// Returns the violations that a campaign on it finds at its only crash point.
fn found<const SAVES: usize>() -> Vec<String> {
    let run = try_on_design::<Greedy<SAVES>>(&config(|_| ()), 1, Some(Points::All), (0, 1), |pm| {
        pm.load(at(1, 0));
        Ok(())
    });
    let crashes = run.expect("the run ends").crashes.expect("there was a campaign");
    crashes.violations.into_iter().map(|violation| violation.text).collect()
}

#[test]
fn a_design_that_saves_more_than_it_declares_is_caught() {
    assert_eq!(found::<8>(), [""; 0]);
    for text in [found::<9>(), found::<16>(), found::<64>()].concat() {
        assert!(text.starts_with("energy: ") && text.contains("the 8 bytes"), "{text}");
    }
    assert_eq!([found::<9>().len(), found::<16>().len(), found::<64>().len()], [1; 3]);
}

model::rules! {
    /// The rule of [`Bounded`].
    struct BoundedRules {
        /// A rule that changes nothing.
        idle,
    }
}

/// A design that says of itself that there are never three transactions.
struct Bounded {
    ended: u64,
}

impl Design for Bounded {
    const CARD: Card = card("bounded", "does not count to three");
    type Params = NoParams;
    type Rules = BoundedRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Self>) -> Self {
        Bounded { ended: 0 }
    }

    fn commit(&mut self, tx: &Tx, _below: &mut Below<()>) -> Progress {
        self.ended += 1;
        Progress::Done(tx.at)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("ended", self.ended)]
    }

    fn invariants(&self) -> Result<(), String> {
        ASKED.set(ASKED.get() + 1);
        if self.ended == 3 { Err("there are three transactions".into()) } else { Ok(()) }
    }
}

thread_local!(static ASKED: Cell<u64> = const { Cell::new(0) });

/// Runs five transactions on it, and returns what its campaign found.
fn of_bounded(campaign: Option<Campaign>, rules: BoundedRules) -> Option<Crashes> {
    let (config, control) = (config(|_| ()), Control::default());
    let workload = each(|pm| {
        pm.begin()?;
        pm.work(10);
        pm.commit();
        Ok(())
    });
    let run = Run { transactions: 5, campaign, ..Run::new(&config, 1, workload, &control) };
    let outcome = run_design::<Bounded>(Bounded::CARD, NoParams {}, rules, run);
    outcome.expect("the run ends").crashes
}

/// The points and texts of violations, and how often the design was asked.
fn bounded(campaign: Option<Campaign>, rules: BoundedRules) -> (Vec<(u64, String)>, u64) {
    ASKED.set(0);
    let found = of_bounded(campaign, rules).map_or(Vec::new(), |found| found.violations);
    assert!(found.iter().all(|found| found.order == 0 && found.nested.is_none()));
    (found.into_iter().map(|found| (found.point, found.text)).collect(), ASKED.get())
}

/// The power is cut behind each of five transactions and at the end.
#[test]
fn what_a_design_says_of_itself_is_asked_where_the_power_is_cut() {
    let on = BoundedRules::default;
    let broken = |point| vec![(point, "invariant: there are three transactions".to_owned())];
    assert_eq!(bounded(Some(campaign(Points::All)), on()), (broken(3), 6));
    let points = |points: &[u64]| Some(campaign(Points::These(points.to_vec())));
    assert_eq!(bounded(points(&[3, 4]), on()), (broken(3), 2));
    assert_eq!(bounded(points(&[1, 4]), on()), (vec![], 2));
    // It is asked once, however many images there are.
    let orders = Campaign { reorders: 5, nested: true, ..campaign(Points::One(3)) };
    assert_eq!(bounded(Some(orders), on()), (broken(3), 1));
    assert_eq!(bounded(Some(campaign(Points::Count)), on()), (vec![], 0));
    assert_eq!(bounded(None, on()), (vec![], 0));
}

#[test]
fn a_mutant_is_not_asked() {
    let rules = BoundedRules::default().without("idle");
    assert_eq!(bounded(Some(campaign(Points::All)), rules), (vec![], 0));
}

/// A campaign that ends at a violation does not know what the rest of the run would have counted.
#[test]
fn what_a_design_counted_is_told_of_a_run_that_came_to_its_end() {
    let counted = |campaign| {
        let found = of_bounded(Some(campaign), BoundedRules::default());
        found.expect("a campaign").counted
    };
    assert_eq!(counted(campaign(Points::All)), Some(vec![("ended", 5)]));
    let stops = Campaign { violations_max: 1, ..campaign(Points::All) };
    assert_eq!(counted(stops), None);
}

/// A design whose every third recovery writes nothing.
struct Forgetful;

impl Design for Forgetful {
    const CARD: Card = card("forgetful", "recovers two times out of three");
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Self>) -> Self {
        Forgetful
    }

    fn recover(image: &mut Image<'_>, _setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        thread_local!(static TIMES: Cell<u64> = const { Cell::new(0) });
        TIMES.set(TIMES.get() + 1);
        if TIMES.get().is_multiple_of(3) { Ok(()) } else { image.set_word(Word(0), 0) }
    }
}

/// An image for a later life is recovered once more, which may fail where nothing else did.
#[test]
fn what_goes_wrong_when_an_image_is_kept_is_told() {
    let campaign = Campaign { nested: true, keep: 64, ..campaign(Points::All) };
    let run = try_campaign::<Forgetful>(&config(|_| ()), 1, Some(campaign), (0, 40), |pm| {
        pm.begin()?;
        pm.commit();
        Ok(())
    });
    let found = run.expect("the run ends").crashes.expect("there was a campaign").violations;
    // The same is reported for an interrupted recovery, with the number of the interruption.
    let text = "determinism: `recover` depends on something besides the image";
    assert!(found.iter().all(|found| found.text == text), "{found:?}");
    assert!(found.iter().any(|found| found.nested.is_none()), "{found:?}");
}
