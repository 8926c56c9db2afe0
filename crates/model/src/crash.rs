//! Cutting the power: what survives, what recovery makes of it, and whether that is right.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::checker::{Checker, Refusal};
use crate::config::Domain;
use crate::contents::{Contents, View};
use crate::design::FenceKind;
use crate::firmware::Firmware;
use crate::image::{Image, Remembered};
use crate::oracle::{Early, Moment, Oracle, Violation};
use crate::units::{CoreId, Cycle, TxId, Word, mix};
use crate::workload::Workload;

mod choices;
pub(crate) mod failure;
mod found;
mod judge;
mod keeper;
mod nested;
mod program;
mod stores;
pub mod versions;

use choices::Choices;
use failure::Arrivals;
pub use found::{Answer, Crashes, Recovery, Saved};
use judge::Judge;
use keeper::Keeper;
use nested::{Again, recover_to_the_end};
use versions::Versions;

/// At which of a run's crash points the power is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Points {
    /// At none: they are counted.
    Count,
    /// At every one.
    All,
    /// At these, in ascending order, counted from 1.
    These(Vec<u64>),
    /// At this one, counted from 1, of which is also told what recovery left ([`Crashes::left`]).
    One(u64),
}

/// What a crash campaign does at the crash points of a run. A crash point is just before
/// persistent state changes (before a write becomes durable, before an event of the design, and,
/// where caches survive, before a store), and just after the oracle has become stricter: when a
/// transaction is acknowledged or announced as durable, or, if the order of stores is checked, a
/// fence is done. A workload with a checker has one before every store, and one behind every mark.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Where the power is cut.
    pub points: Points,
    /// Whether recovery is crashed at each of its own writes, too, and with those since its last
    /// fence in other orders.
    pub nested: bool,
    /// How many more images are made at each point. In each of them some of the writes that were
    /// under way, or that could have been, have arrived early: an order that timing did not produce
    /// and the hardware allows. If the order of stores is checked, or the workload has a checker,
    /// every such image is made if there are no more than these; otherwise that many are made in
    /// turn, and as many again at random. Where [`Versions`] says what lines may hold, it says how
    /// many images there are, too.
    pub reorders: u64,
    /// The number of violations after which the run ends.
    pub violations_max: usize,
    /// The seed of all that is drawn: what torn writes leave, which writes arrive early or out of
    /// order, and which images are kept.
    pub seed: u64,
    /// How many of the recovered images are kept, each of another crash point, for machines to boot
    /// from.
    pub keep: usize,
    /// What is checked.
    pub check: Check,
}

/// What a crash campaign checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Transactions: after recovery, every one that was acknowledged is there, and no other in
    /// part.
    Transactions,
    /// The order of stores ([`crate::design::Ordering::model`]), in what the power failure left and
    /// the hardware's own recovery made of it. The campaign is asked about images, in each of which
    /// some words hold these values ([`Crashes::asked`]).
    Stores(Vec<Vec<(Word, u64)>>),
}

/// What a machine booted from, and what booting wrote.
pub struct Booted {
    /// The memory before booting.
    pub before: Contents,
    /// The writes of booting, before programs run.
    pub writes: Vec<Remembered>,
    /// A word of data that does not hold what recovery had left, if there is one.
    pub damaged: Option<Word>,
}

/// A campaign under way.
pub struct Probe {
    /// What the image may hold.
    pub oracle: Oracle,
    /// By what else images are judged.
    judge: Judge,
    /// The images that are kept.
    keeper: Keeper,
    campaign: Campaign,
    workload: Rc<dyn Workload>,
    firmware: Rc<dyn Firmware>,
    obeys_every_rule: bool,
    /// Set by a caller that wants no more of the campaign.
    cancelled: Arc<AtomicBool>,
    next: usize,
    /// The last crash point that is counted among [`Crashes::points`].
    counted: u64,
    /// The number of the image of the present crash point that is being looked at.
    order: u64,
    /// The writes that have arrived early in that image.
    early: Vec<Early>,
    /// The transactions of each core that the last image held whose data the workload inspected.
    inspected: Vec<u64>,
    /// How many images have held others since.
    uninspected: u64,
    /// The number of such images at which the workload inspects its data again.
    inspects_at: u64,
    /// What was found so far; [`Probe::finish`] adds what is known only at the end.
    pub found: Crashes,
}

/// What a power failure leaves of a machine before recovery: [`failure::fail`] of that machine.
pub(crate) type Fails<'f, 'i> =
    dyn Fn(&mut Saved, u64, Arrivals<'_>) -> Result<Image<'i>, String> + 'f;

/// What a machine's design says of itself: [`crate::design::Design::invariants`].
pub(crate) type Holds<'f> = dyn Fn() -> Result<(), String> + 'f;

/// At one in so many power failures the workload inspects its own data whatever they left: what it
/// stored outside of transactions is known to nobody else.
const INSPECT_EVERY: u64 = 97;

/// For each so many pages of data, one more failure that left other transactions passes before the
/// workload inspects its data again (ours: to walk so many, 1 MiB, takes as long as some failures).
const INSPECT_PAGES: u64 = 256;

impl Probe {
    /// A campaign that begins. It makes no more images once `cancelled` is set: those of one crash
    /// point may take seconds.
    pub fn new(
        campaign: Campaign,
        oracle: Oracle,
        workload: Rc<dyn Workload>,
        firmware: Rc<dyn Firmware>,
        cancelled: Arc<AtomicBool>,
    ) -> Probe {
        Probe {
            judge: Judge::new(&campaign.check, &workload, &*firmware, &oracle),
            inspected: Vec::new(),
            uninspected: 0,
            inspects_at: 1 + oracle.pages() / INSPECT_PAGES,
            oracle,
            keeper: Keeper::new(campaign.keep, campaign.seed, campaign.nested),
            campaign,
            workload,
            obeys_every_rule: firmware.obeys_every_rule(),
            firmware,
            cancelled,
            next: 0,
            counted: 0,
            order: 0,
            early: Vec::new(),
            found: Crashes::default(),
        }
    }

    /// Whether enough was found for the run to end, or the campaign or its checker was cancelled.
    pub fn is_done(&self) -> bool {
        let is_done = |checker: &dyn Checker| checker.is_cancelled() || checker.has_enough();
        self.found.violations.len() >= self.campaign.violations_max
            || self.cancelled.load(Ordering::Relaxed)
            || self.workload.checker().is_some_and(is_done)
    }

    /// Notes that a core stored to a word of persistent memory, which held `values.0` and now holds
    /// `values.1`; with `combining`, the store is in a write-combining buffer. The word's line is
    /// then as in `view`.
    pub fn stored(
        &mut self,
        core: CoreId,
        word: Word,
        values: (u64, u64),
        combining: bool,
        view: &View,
    ) {
        self.judge.stored(core, word, values, combining, view);
    }

    /// Notes that a core loaded a word of persistent memory.
    pub fn loaded(&mut self, core: CoreId, word: Word) {
        match &mut self.judge {
            Judge::Order(stores) => stores.order.load(core, word),
            Judge::Transactions | Judge::Program(_) => self.oracle.load(core, word),
        }
    }

    /// Notes that a core asks for a fence or a flush.
    pub fn fence(&mut self, core: CoreId, kind: FenceKind) {
        self.judge.fence(core, kind);
    }

    /// Notes that a core makes a locked operation, which is a fence, too.
    pub fn locked(&mut self, core: CoreId) {
        if let Judge::Program(program) = &mut self.judge {
            program.fence(core, FenceKind::Order);
            program.fenced(core);
        }
    }

    /// Whether what could be durable is examined between any two stores, and not only where what
    /// survives changes: a program's own checker may refuse what was stored in between.
    pub fn asks_between_stores(&self) -> bool {
        matches!(self.judge, Judge::Program(_))
    }

    /// Whether the campaign needs to know when fences are done.
    pub fn follows_fences(&self) -> bool {
        self.judge.follows_fences()
    }

    /// Notes that the fence or flush that a core asked for is done. Returns whether a crash point
    /// follows.
    pub fn fenced(&mut self, core: CoreId) -> bool {
        // The fence allows fewer images from now on.
        self.judge.ask();
        self.judge.fenced(core);
        self.judge.is_stricter_behind_fences()
    }

    /// Notes a mark: the program of a core told the world how far it has come.
    pub fn marked(&mut self, core: CoreId) {
        if let Judge::Program(program) = &mut self.judge {
            program.reached.marked(core);
        }
    }

    /// Notes that the design announced a transaction of a core, and those before it, as durable.
    pub fn announced(&mut self, at: Cycle, core: CoreId, tx: TxId, durable: &Contents) {
        let announced = self.oracle.announce(core, tx, durable);
        if let Err(text) = announced
            && !matches!(self.campaign.points, Points::Count)
        {
            // No image shows this violation. It is told of the crash point that follows at once,
            // and convicts the design there whether the power is cut or not.
            let point = self.found.passed + 1;
            self.order = 0;
            self.early.clear();
            if !self.is_done() {
                self.count(point);
            }
            self.report_of(point, at, None, text, None);
        }
    }

    /// A crash point: cuts the power if the campaign says so, and checks what the design says of
    /// itself and what is left.
    pub(crate) fn pass<'i>(&mut self, at: Cycle, holds: &Holds<'_>, fail: &Fails<'_, 'i>) {
        if !self.comes_to_cut() {
            return;
        }
        self.count(self.found.passed);
        self.check_invariants(at, holds);
        let short = self.found.saved.short;
        self.judge.ask();
        let seed = mix(self.campaign.seed ^ self.found.passed);
        let tries_every = self.judge.tries_every();
        let mut choices = if tries_every { Choices::every() } else { Choices::none() };
        let is_chance = matches!(self.judge, Judge::Transactions) && self.is_all_chosen();
        let chosen = self.keeper.choose(self.found.passed, 1 + self.campaign.reorders);
        let (mut candidate, mut untried) = (None, 0);
        for order in 0_u64.. {
            self.order = order;
            let torn = mix(seed ^ order << 48);
            self.early.clear();
            let early = &mut self.early;
            let arrivals = Arrivals { choices: &mut choices, early, untried: &mut untried };
            match fail(&mut self.found.saved, torn, arrivals) {
                Ok(image) if matches!(self.judge, Judge::Order(_)) => self.check_stores(at, image),
                Ok(mut image) => {
                    if let Some(versions) = self.judge.versions()
                        && order > 0
                        && !versions.lay(order, torn, &mut image)
                    {
                        break;
                    }
                    if chosen.is_some_and(|chosen| chosen.may_be(order)) {
                        candidate = Some((order, self.early.clone(), image.clone()));
                    }
                    if !(is_chance && choices.are_repeated()) {
                        self.recover(at, image);
                    }
                }
                Err(text) => self.report(at, None, text, None),
            }
            if tries_every && order == self.campaign.reorders {
                self.found.sampled += u64::from(!choices.are_all_made());
            }
            let next = mix(seed ^ (order + 1) << 48);
            if self.ends_with(order, next, &mut choices) || self.is_done() {
                break;
            }
        }
        // These are counted once per power failure, however many images it left.
        self.found.untried += untried;
        let is_sampled = self.judge.versions().is_some_and(Versions::are_many);
        self.found.sampled += u64::from(is_sampled);
        self.found.saved.short = self.found.saved.short.min(short + 1);
        if let (Some(chosen), Some((order, early, image))) = (chosen, candidate)
            && let Err(text) = self.keeper.keep(chosen, order, &image, &*self.firmware)
        {
            (self.order, self.early) = (order, early);
            self.report(at, None, text, None);
        }
    }

    /// Counts a crash point that is tried, once.
    fn count(&mut self, point: u64) {
        if self.counted < point {
            self.counted = point;
            self.found.points += 1;
        }
        if self.found.points == 1 {
            self.found.saved.budget(&*self.firmware);
        }
    }

    /// Asks the design what must be true at any time, unless it is a mutant.
    fn check_invariants(&mut self, at: Cycle, holds: &Holds<'_>) {
        if self.obeys_every_rule
            && let Err(text) = holds()
        {
            self.order = 0;
            self.early.clear();
            self.report(at, None, format!("invariant: {text}"), None);
        }
    }

    /// Goes on to the choices of the next image of a point. Returns whether there is none.
    fn ends_with(&self, order: u64, seed: u64, choices: &mut Choices) -> bool {
        match self.campaign.reorders {
            _ if self.judge.versions().is_some() => false,
            most if order < most => choices.next(seed),
            most if self.judge.tries_every() && order < 2 * most => {
                choices.at_random(seed);
                false
            }
            _ => true,
        }
    }

    /// Whether the images of a point differ in nothing but the writes that have arrived early.
    /// Otherwise a write that the cells are in the middle of is torn in another way each time, or
    /// recovery is interrupted in other ways.
    fn is_all_chosen(&self) -> bool {
        self.firmware.shape().config.controller.domain != Domain::Media && !self.campaign.nested
    }

    /// Counts a crash point, and returns whether the campaign cuts the power there.
    fn comes_to_cut(&mut self) -> bool {
        self.found.passed += 1;
        let is_asked = match &self.campaign.points {
            Points::Count => false,
            Points::All => true,
            Points::These(points) => points.get(self.next) == Some(&self.found.passed),
            Points::One(point) => *point == self.found.passed,
        };
        self.next += usize::from(is_asked);
        is_asked && !self.is_done()
    }

    /// Checks the order of stores in what is left of a power failure.
    fn check_stores(&mut self, at: Cycle, mut image: Image<'_>) {
        image = image.powered();
        if let Err(text) = recover_to_the_end(&mut image, &*self.firmware) {
            return self.report(at, None, text, None);
        }
        let Judge::Order(stores) = &mut self.judge else { return };
        self.found.images += 1;
        stores.see(&image, || Moment {
            point: self.found.passed,
            order: self.order,
            at,
            early: self.early.clone(),
        });
        let touched = stores.order.touched();
        let words: Vec<(Word, u64)> =
            touched.into_iter().map(|word| (word, image.word(word))).collect();
        if let Err((word, text)) = stores.order.check(&words) {
            return self.report(at, None, text, Some(word));
        }
        // The hardware must not change a word that no program stored to, wherever it is.
        if let Some(word) = self.oracle.unlike(&image, |word| !stores.order.is_touched(word)) {
            let (is, address, was) = (image.word(word), word.address(), self.oracle.expected(word));
            let text = format!(
                "order: the image holds {is:#x} at {address:#x}, where nobody has stored and \
                 {was:#x} was"
            );
            self.report(at, None, text, Some(word));
        }
    }

    /// Checks an image after recovery, read through the placement that the design resolves.
    fn check_recovered(&mut self, at: Cycle, again: Option<Again>, mut image: Image<'_>) {
        match self.firmware.resolve(&image) {
            Ok(Some(placement)) => image.see_through(placement),
            Ok(None) => (),
            Err(text) => return self.report(at, again, format!("placement: {text}"), None),
        }
        self.check(at, again, &image);
    }

    /// Ends the campaign, and returns what it found.
    pub fn finish(mut self) -> Crashes {
        if let Some(checker) = self.workload.checker() {
            let accounts = self.found.violations.iter_mut().filter_map(|of| of.account.as_mut());
            accounts.for_each(|account| account.alike = checker.alike(account));
        }
        Crashes {
            checked: self.has_something_to_check(),
            promises: self.oracle.promises(),
            checker: self.workload.checker().map(Checker::shown),
            kept: self.keeper.kept(),
            asked: self.judge.answers(),
            ..self.found
        }
    }

    /// Whether an image could be wrong: a transaction stored to persistent memory, or any store did
    /// and the workload has invariants of its own.
    pub fn has_something_to_check(&self) -> bool {
        let has_invariants = self.workload.has_invariants();
        self.oracle.promised_anything() || has_invariants && self.oracle.was_stored_to()
    }

    fn check(&mut self, at: Cycle, again: Option<Again>, image: &Image<'_>) {
        let held = match self.oracle.check(image) {
            Ok(held) => held,
            Err((word, text)) => return self.report(at, again, text, Some(word)),
        };
        if matches!(self.campaign.points, Points::One(_)) && again.is_none() && self.order == 0 {
            self.found.left = self.oracle.left(&held);
        }
        if let (Some(checker), Judge::Program(program)) = (self.workload.checker(), &self.judge)
            && let Err(refusal) = checker.check(image, &program.reached, &held)
        {
            return self.report(at, again, refusal, None);
        }
        self.uninspected += u64::from(held != self.inspected);
        if self.uninspected == self.inspects_at
            || again.is_none() && self.found.points % INSPECT_EVERY == 1
        {
            (self.inspected, self.uninspected) = (held, 0);
            if let Err(text) = self.workload.check(image) {
                self.report(at, again, format!("workload: {text}"), None);
            }
        }
    }

    fn report(
        &mut self,
        at: Cycle,
        again: Option<Again>,
        why: impl Into<Refusal>,
        word: Option<Word>,
    ) {
        self.report_of(self.found.passed, at, again, why, word);
    }

    /// Reports a violation of this crash point.
    fn report_of(
        &mut self,
        point: u64,
        at: Cycle,
        again: Option<Again>,
        why: impl Into<Refusal>,
        word: Option<Word>,
    ) {
        if self.is_done() {
            return;
        }
        let Refusal { text, files, marks, account } = why.into();
        let history = word.map(|word| match &self.judge {
            Judge::Order(stores) => stores.order.history(word),
            Judge::Transactions | Judge::Program(_) => self.oracle.history(word),
        });
        let history = history.unwrap_or_default();
        self.found.violations.push(Violation {
            point,
            order: self.order,
            early: self.early.clone(),
            at,
            nested: again.map(|again| again.writes),
            nested_order: again.map_or(0, |again| again.order),
            text,
            files,
            marks,
            account,
            word,
            history,
        });
    }
}

#[cfg(test)]
mod tests;
