//! Writes under way that may have arrived before those that were sent earlier.

use std::cell::Cell;

use crate::common::{at, campaign, card, config, try_campaign};
use model::config::Domain;
use model::controller::Notify;
use model::crash::{Campaign, Crashes, Points};
use model::design::{
    Bare, Below, Card, Design, Gasp, KeptBy, Location, NoParams, NoRules, Progress, Setup, Store,
    Structure,
};
use model::device::Write;
use model::image::{Image, PowerLoss};
use model::meters::Class;
use model::units::Word;

thread_local! {
    /// Whether recovery saw the write that was sent second without the one that was sent first.
    static OVERTAKEN: Cell<bool> = const { Cell::new(false) };
}

/// A design that sends the line of each store, and is told when that is durable if it `TELLS`.
/// `SURVIVES` says whether some of its state survives, and `BESIDE` whether the part that is told
/// is beside the controller.
struct Sender<const TELLS: bool, const SURVIVES: bool, const BESIDE: bool>;

impl<const TELLS: bool, const SURVIVES: bool, const BESIDE: bool> Design
    for Sender<TELLS, SURVIVES, BESIDE>
{
    const CARD: Card = card("sender", "sends what is stored");
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Self>) -> Self {
        Sender
    }

    fn store(&mut self, store: &Store, below: &mut Below<()>) -> Progress {
        let line = store.word.line();
        let write = Write::whole(line, below.line(line), Class::Data);
        below.send(store.at, write, if TELLS { Notify::Design(()) } else { Notify::Nobody });
        Progress::Done(store.at)
    }

    fn hears_at_once(&self, _event: &()) -> bool {
        BESIDE
    }

    fn hardware(_setup: &Setup<'_, Self>) -> Vec<Structure> {
        let kept_by = if SURVIVES { KeptBy::Battery } else { KeptBy::Nothing };
        let location = Location::Elsewhere("beside the controller");
        vec![Structure::new("buffer", 64, 1, location).kept(kept_by)]
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        // The old contents, so that there is no violation.
        if SURVIVES { gasp.save(0, &[0; 8]) } else { Ok(()) }
    }

    fn recover(image: &mut Image<'_>, _setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        let [first, second] = [8, 16].map(|word| image.word(Word(word)));
        OVERTAKEN.set(OVERTAKEN.get() || (first, second) == (0, 1));
        Ok(())
    }
}

/// Cuts the power while two lines are under way, and with some orders that timing did not produce.
fn sent<D: Design<Params = NoParams, Rules = NoRules>>(battery: u64, keep: usize) -> Crashes {
    let config = config(|config| {
        // Both are under way for long.
        config.controller.path = 500_000;
        config.controller.battery = battery;
    });
    let campaign = Campaign { reorders: 16, keep, ..campaign(Points::All) };
    let run = try_campaign::<D>(&config, 1, Some(campaign), (0, 1), |pm| {
        for line in [1, 2] {
            pm.load(at(line, 0));
        }
        for line in [1, 2] {
            pm.store(at(line, 0), 1);
        }
        Ok(())
    });
    run.expect("the run ends").crashes.expect("there was a campaign")
}

fn is_overtaken<D: Design<Params = NoParams, Rules = NoRules>>() -> bool {
    OVERTAKEN.set(false);
    sent::<D>(100, 0);
    OVERTAKEN.get()
}

#[test]
fn a_write_overtakes_another_unless_a_part_of_the_design_that_survives_hears_of_it_at_once() {
    assert!(is_overtaken::<Sender<false, true, true>>(), "the design is not told");
    assert!(is_overtaken::<Sender<true, false, true>>(), "nothing of the design survives");
    assert!(is_overtaken::<Sender<true, true, false>>(), "it is told later");
    assert!(!is_overtaken::<Sender<true, true, true>>(), "it would have acted");
}

#[test]
fn it_is_counted_which_writes_come_in_the_order_of_timing_alone() {
    assert_eq!(sent::<Sender<false, true, true>>(100, 0).untried, 0);
    assert_eq!(sent::<Sender<true, false, true>>(100, 0).untried, 0);
    assert_eq!(sent::<Sender<true, true, false>>(100, 0).untried, 0);
    let crashes = sent::<Sender<true, true, true>>(100, 0);
    assert!((2..=2 * crashes.points).contains(&crashes.untried), "{crashes:?}");
}

/// A power failure with many images counts once.
#[test]
fn energy_ends_once_at_each_power_failure() {
    let crashes = sent::<Sender<false, true, true>>(0, 0);
    assert_eq!((crashes.saved.short, crashes.saved.most), (crashes.points, 0));
    assert_eq!(sent::<Sender<false, true, true>>(100, 0).saved.short, 0);
}

#[test]
fn an_image_of_another_order_is_kept_as_that() {
    let kept = sent::<Sender<false, true, true>>(100, 64).kept;
    assert!(kept.iter().any(|remains| remains.cut.order > 0), "{:?}", kept[0].cut);
}

thread_local! {
    /// Whether recovery saw a part of the write that was sent second without the one sent first.
    static TORN: Cell<bool> = const { Cell::new(false) };
}

/// A design that sends the line of each store of 1.
struct Chooser;

impl Design for Chooser {
    const CARD: Card = card("chooser", "sends what is stored last to a line");
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Self>) -> Self {
        Chooser
    }

    fn store(&mut self, store: &Store, below: &mut Below<()>) -> Progress {
        if store.new == 1 {
            let line = store.word.line();
            below.send(store.at, Write::whole(line, below.line(line), Class::Data), Notify::Nobody);
        }
        Progress::Done(store.at)
    }

    fn recover(image: &mut Image<'_>, _setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        let is_there = [8, 16, 17].map(|word| image.word(Word(word)) > 0);
        TORN.set(TORN.get() || matches!(is_there, [false, true, false] | [false, false, true]));
        Ok(())
    }
}

/// The cells have one bank here, which in the order of timing writes one line after the other.
#[test]
fn what_overtakes_another_may_be_torn_where_the_cells_have_to_hold_it() {
    for (domain, is_torn) in [(Domain::Media, true), (Domain::Adr, false)] {
        TORN.set(false);
        let campaign = Campaign { reorders: 400, ..campaign(Points::All) };
        let config = config(|config| config.controller.domain = domain);
        let run = try_campaign::<Chooser>(&config, 1, Some(campaign), (0, 1), |pm| {
            pm.store(at(1, 0), 1);
            pm.store(at(2, 0), 2);
            pm.store(at(2, 1), 1);
            pm.work(40);
            Ok(())
        });
        run.expect("the run ends");
        assert_eq!(TORN.get(), is_torn, "domain {domain:?}");
    }
}
