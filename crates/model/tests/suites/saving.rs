//! Which lines of the caches are saved where they survive, and where to.

use crate::common::{Seen, Watcher, at, campaign, card, config, seen, try_campaign};
use model::config::{Config, Domain};
use model::controller::Notify;
use model::crash::{Campaign, Points};
use model::design::{Bare, Below, Card, Design, NoParams, NoRules, Progress, Setup, Store};
use model::device::Write;
use model::image::{Image, PowerLoss};
use model::meters::Class;
use model::units::Line;
use model::workload::Pm;

/// The value that a program stores to make the design send the line.
const SENT: u64 = 0x5e47;

/// A design that maps line 1 to the place of line 2. It brings stores to memory itself if `BRINGS`,
/// or else leaves line 3 behind.
struct Mover<const BRINGS: bool>;

impl<const BRINGS: bool> Design for Mover<BRINGS> {
    const CARD: Card = card("mover", "has a line elsewhere");
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Self>) -> Self {
        Mover
    }

    fn store(&mut self, store: &Store, below: &mut Below<()>) -> Progress {
        if store.new == SENT {
            let line = store.word.line();
            let write = Write::whole(line, below.line(line), Class::Data);
            below.send(store.at, write, Notify::Nobody);
        }
        Progress::Done(store.at)
    }

    fn locate(&self, line: Line) -> Line {
        if line == Line(1) { Line(2) } else { line }
    }

    fn leaves_behind(&self, line: Line) -> bool {
        !BRINGS && line == Line(3)
    }

    fn brings_stores(&self) -> bool {
        BRINGS
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        let Setup { params, rules, shape } = *setup;
        Watcher::recover(image, &Setup { params, rules, shape })
    }
}

fn eadr(flush_bytes: u64) -> Config {
    config(|config| {
        config.controller.domain = Domain::Eadr;
        config.controller.flush_bytes = flush_bytes;
        // Writes are under way for long.
        config.controller.path = 500_000;
    })
}

/// Returns the first word of lines 1 to 3 in each image that power failures left of a program.
fn images<D: Design<Params = NoParams, Rules = NoRules>>(
    config: &Config,
    reorders: u64,
    body: impl Fn(&mut Pm<'_>) + 'static,
) -> Vec<[u64; 3]> {
    let campaign = Campaign { reorders, ..campaign(Points::All) };
    seen();
    let run = try_campaign::<D>(config, 1, Some(campaign), (0, 1), move |pm| {
        body(pm);
        pm.begin()?;
        pm.commit();
        Ok(())
    });
    run.expect("the run ends");
    let lines = |seen| match seen {
        Seen::Recover(lines) => Some([lines[1][0], lines[2][0], lines[3][0]]),
        _ => None,
    };
    seen().into_iter().filter_map(lines).collect()
}

#[test]
fn a_line_that_is_under_way_and_dirty_is_saved_once_with_its_newest_bytes() {
    let left = images::<Mover<true>>(&eadr(128), 0, |pm| {
        pm.store(at(2, 0), SENT);
        pm.store(at(2, 0), 2);
        pm.store(at(3, 0), 3);
    });
    // Before and after each of the stores.
    assert_eq!(left[..4], [[0, 0, 0], [0, SENT, 0], [0, 2, 0], [0, 2, 3]]);
}

#[test]
fn a_line_is_saved_to_where_it_lies_unless_it_is_left_behind() {
    let left = images::<Mover<false>>(&eadr(1 << 20), 0, |pm| {
        pm.store(at(1, 0), 1);
        pm.store(at(3, 0), 3);
    });
    assert_eq!(left.last(), Some(&[0, 1, 0]), "{left:?}");
}

#[test]
fn what_write_combining_buffers_hold_may_be_there_unless_the_design_brings_stores_itself() {
    let body = |pm: &mut Pm<'_>| pm.store_past_caches(at(1, 0), 1);
    let left = images::<Mover<false>>(&config(|_| ()), 16, body);
    assert!(left.contains(&[0, 1, 0]) && left.contains(&[0; 3]), "{left:?}");
    assert!(left.iter().all(|lines| lines[0] == 0), "it lies elsewhere: {left:?}");
    let left = images::<Mover<true>>(&config(|_| ()), 16, body);
    assert!(left.iter().all(|lines| *lines == [0; 3]), "{left:?}");
}
