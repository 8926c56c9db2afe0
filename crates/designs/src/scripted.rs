//! A design whose hooks a user wrote in another language. It stands on the machine as the designs
//! of this crate do, and is run, crashed and compared like them.
//!
//! [`Script`] is what was loaded, and [`Hooks`] is the design on a machine that is switched on. A
//! hook that the design does not have answers as [`Design`]'s own does. The design is all hardware
//! and has no library; it does not translate, and the runtime revokes aborted transactions. A
//! script that says what order of stores it promises is ordering hardware, for [`ordering`].

use std::cell::Cell;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use model::design::{
    Bare, Below, Card, Design, Disposition, Durability, Evict, Fence, FenceKind, Fill, Gasp,
    Granularity, KeptBy, Load, Model, Needs, Ordering, Progress, Setup, Shape, Store, Structure,
    System, Transfer, Tx, on_host_stack,
};
use model::device::Write;
use model::image::{Image, PowerLoss};
use model::params::{Field, Params, Rules};
use model::units::{Cycle, Line};

use crate::{Entry, hardware_with, orders, run_with};

pub mod ordering;

use ordering::LogName;

/// A design as it was loaded: the part of [`Design`] without `self`.
pub trait Script: Send + Sync + Debug {
    /// The design on a machine that has just been switched on.
    fn switch_on(&self, setup: &Given<'_>) -> Box<dyn Hooks>;
    /// Repairs the image when the power is back, as firmware does.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    fn recover(&self, image: &mut Image<'_>, setup: &Given<'_>) -> Result<(), PowerLoss>;
    /// The design on a machine that is switched on again, over what recovery left.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    fn boot(&self, image: &mut Image<'_>, setup: &Given<'_>) -> Result<Box<dyn Hooks>, PowerLoss>;
    /// The structures that it adds to the hardware.
    fn hardware(&self, setup: &Given<'_>) -> Vec<Structure>;
}

/// The hooks of a design on a machine that is switched on; see those of [`Design`].
pub trait Hooks {
    /// A transaction begins.
    fn begin(&mut self, tx: &Tx, below: &mut Below<Token>) -> Progress;
    /// A load has its value.
    fn load(&mut self, load: &Load, below: &mut Below<Token>) -> Progress;
    /// Whether `store` brings to memory the stores that it is told of. Only for ordering hardware.
    fn brings_stores(&self) -> bool;
    /// A store has taken effect in the caches.
    fn store(&mut self, store: &Store, below: &mut Below<Token>) -> Progress;
    /// The program asks for an order, for durability, or for a line of persistent memory to be
    /// written back. Only for ordering hardware.
    fn fence(&mut self, fence: &Fence, below: &mut Below<Token>) -> Progress;
    /// A transaction ends.
    fn commit(&mut self, tx: &Tx, below: &mut Below<Token>) -> Progress;
    /// A line has come to a core's first level.
    fn fill(&mut self, fill: &Fill, below: &mut Below<Token>) -> Cycle;
    /// A line changes owner.
    fn transfer(&mut self, transfer: &Transfer, below: &mut Below<Token>) -> Cycle;
    /// A dirty line leaves the caches.
    fn evict(&mut self, evict: &Evict, below: &mut Below<Token>) -> Disposition<Token>;
    /// An event of its own is due. Each token that it gave away comes back once.
    fn event(&mut self, at: Cycle, event: Token, below: &mut Below<Token>);
    /// Whether a dirty line is left behind where the caches survive.
    fn leaves_behind(&self, line: Line) -> bool;
    /// Whether the part that is told stands beside the controller that accepts the write.
    fn hears_at_once(&self, event: Token) -> bool;
    /// What must be true at any time while every rule is on.
    ///
    /// # Errors
    /// A sentence that says what is not true.
    fn invariants(&self) -> Result<(), String>;
    /// Writes what a battery still saves.
    ///
    /// # Errors
    /// [`PowerLoss`] when the battery is empty.
    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss>;
    /// The writes that could be durable by now; `None` if the script leaves that to be any dirty
    /// line. Only for ordering hardware.
    fn could_be_durable(
        &self,
        below: &Below<Token>,
        arrived: &mut dyn FnMut() -> bool,
    ) -> Option<Vec<Write>>;
    /// The name of one of its events in a timeline.
    fn show_event(&self, event: Token) -> String;
    /// Its counters so far.
    fn counters(&self) -> Vec<(&'static str, u64)>;
}

/// A token that stands for one of a script's own events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub usize);

/// What is fixed before power is first applied, as a script sees it.
#[derive(Debug)]
pub struct Given<'a> {
    /// Parameters that are not at their defaults.
    pub settings: &'a [(String, u64)],
    /// The rule that is switched off, if one is.
    pub without: Option<&'a str>,
    /// The machine.
    pub shape: &'a Shape,
}

thread_local! {
    /// Whether a hook has asked for the rule that is switched off, since [`take_asked`]: nothing if
    /// no script was set up without one of its rules.
    static ASKED: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Notes that a script was set up without one of its rules, or that a hook has asked for that rule.
pub fn note_asked(is_asked: bool) {
    ASKED.set(ASKED.get().max(Some(is_asked)));
}

/// Returns whether hooks that ran on this thread since the last call asked for the rule that was
/// switched off: nothing if no script was set up without one of its rules.
pub fn take_asked() -> Option<bool> {
    ASKED.take()
}

/// What the registry is told of a script.
#[derive(Debug)]
pub struct About {
    /// The card.
    pub card: Card,
    /// The order of stores that it promises, if it is ordering hardware.
    pub model: Option<Model>,
    /// Its parameters.
    pub fields: &'static [Field],
    /// Its rules, each with its documentation.
    pub rules: &'static [(&'static str, &'static str)],
    /// Rules that it does not need, each with the reason.
    pub needless: &'static [(&'static str, &'static str)],
    /// Which fences and flushes are instructions: none, if it is not ordering hardware.
    pub instructions: Instructions,
    /// Whether a thread may move to another core in a transaction.
    pub migrates: bool,
    /// A text that tells it from other scripts of its name.
    pub digest: &'static str,
}

/// Which of a program's fences and flushes are instructions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Instructions {
    /// Fences, which order stores or make them durable.
    pub fences: bool,
    /// Flushes, which have a line written back.
    pub flushes: bool,
}

/// The registry's entry for a script or, if the script is ordering hardware, for that or a log on
/// it. It stays in memory for ever.
///
/// # Errors
/// A sentence, if the script and the log on it both declare what only one may, or if neither
/// declares what one of them must.
pub fn entry(
    about: &About,
    log: Option<LogName>,
    script: Arc<dyn Script>,
) -> Result<&'static Entry, String> {
    let entry = match about.model {
        Some(_) => ordering::entry(about, log, script)?,
        None => of(about, script),
    };
    Ok(Box::leak(Box::new(entry)))
}

fn of(about: &About, script: Arc<dyn Script>) -> Entry {
    let params = ScriptParams::of(about, script);
    made::<Scripted>(about, about.card.name, move |settings| ScriptParams {
        settings: settings.to_vec(),
        ..params.clone()
    })
}

/// The entry of a design that is made of the script of this name, with these parameters.
fn made<S: System>(
    about: &About,
    script: &'static str,
    params: impl Fn(&[(String, u64)]) -> S::Params + Clone + Sync + 'static,
) -> Entry {
    let About { card, model, fields, rules, needless, instructions, migrates, digest } = *about;
    let of_hardware = params.clone();
    Entry {
        card,
        model,
        fields,
        rules,
        needless,
        has_fences: instructions.fences,
        migrates,
        script: Some(digest),
        run: Box::leak(Box::new(move |order: crate::Order<'_>| {
            let params = params(order.settings);
            or_blame(script, || run_with::<S>(card, order, params))
        })),
        hardware: Box::leak(Box::new(move |settings: &[(String, u64)], shape: &Shape| {
            hardware_with::<S>(of_hardware(settings), shape)
        })),
        ..crate::entry::<S>()
    }
}

/// The script, what it promises, and its parameters that are not at their defaults.
#[derive(Clone, Debug, Default)]
pub struct ScriptParams {
    script: Option<Arc<dyn Script>>,
    model: Option<Model>,
    instructions: Instructions,
    settings: Vec<(String, u64)>,
}

impl ScriptParams {
    /// The parameters of a script, all at their defaults.
    fn of(about: &About, script: Arc<dyn Script>) -> ScriptParams {
        let (model, instructions) = (about.model, about.instructions);
        ScriptParams { script: Some(script), model, instructions, settings: Vec::new() }
    }

    fn script(&self) -> &dyn Script {
        self.script.as_deref().expect("a scripted design is made from its script")
    }
}

/// The script's [`About`] says which parameters there are.
impl Params for ScriptParams {
    const FIELDS: &'static [Field] = &[];

    fn set(&mut self, name: &str, value: u64) {
        self.settings.push((name.to_owned(), value));
    }

    fn get(&self, name: &str) -> u64 {
        let value = self.settings.iter().rev().find(|(other, _)| other == name);
        value.expect("a parameter that was set").1
    }
}

/// All of the script's rules but one, if one is switched off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptRules {
    without: Option<String>,
}

impl Rules for ScriptRules {
    const RULES: &'static [(&'static str, &'static str)] = &[];

    fn without(self, rule: &str) -> ScriptRules {
        ScriptRules { without: Some(rule.to_owned()) }
    }
}

/// The design.
pub struct Scripted {
    hooks: Box<dyn Hooks>,
    /// Whether it is ordering hardware.
    orders: bool,
}

impl Scripted {
    fn of(hooks: Box<dyn Hooks>, setup: &Setup<'_, Scripted>) -> Scripted {
        Scripted { hooks, orders: setup.params.model.is_some() }
    }

    fn given<'a>(setup: &Setup<'a, Scripted>) -> Given<'a> {
        Given {
            settings: &setup.params.settings,
            without: setup.rules.without.as_deref(),
            shape: setup.shape,
        }
    }
}

impl Design for Scripted {
    const CARD: Card = Card {
        name: "script",
        paper: "a user's",
        family: "a script",
        summary: "what a script says",
        file: file!(),
        durability: Durability::None,
        granularity: Granularity::Line,
        needs: Needs::Adr,
    };
    const ON_HOST_STACK: bool = true;
    type Params = ScriptParams;
    type Rules = ScriptRules;
    type Event = Token;
    type Library = Bare;

    fn ordering(params: &ScriptParams) -> Ordering {
        Ordering {
            model: params.model,
            fences: params.instructions.fences,
            flushes: params.instructions.flushes,
            lines_leave: params.model.is_some(),
        }
    }

    /// Whatever a model says of when a store counts, and without a model, too, a structure that
    /// survives may change at a store.
    fn stores_survive(setup: &Setup<'_, Self>) -> bool {
        let is_kept = |structure: &Structure| structure.kept_by != KeptBy::Nothing;
        setup.params.model == Some(Model::Visible) || Self::hardware(setup).iter().any(is_kept)
    }

    fn new(setup: &Setup<'_, Self>) -> Self {
        Scripted::of(setup.params.script().switch_on(&Self::given(setup)), setup)
    }

    fn begin(&mut self, tx: &Tx, below: &mut Below<Token>) -> Progress {
        on_host_stack(|| self.hooks.begin(tx, below))
    }

    fn load(&mut self, load: &Load, below: &mut Below<Token>) -> Progress {
        on_host_stack(|| self.hooks.load(load, below))
    }

    fn brings_stores(&self) -> bool {
        self.orders && self.hooks.brings_stores()
    }

    fn store(&mut self, store: &Store, below: &mut Below<Token>) -> Progress {
        on_host_stack(|| self.hooks.store(store, below))
    }

    fn fence(&mut self, fence: &Fence, below: &mut Below<Token>) -> Progress {
        match fence.kind {
            _ if !self.orders => Progress::Done(fence.at),
            // A script has nothing to do with volatile lines.
            FenceKind::Flush(line, class, how) if !line.is_persistent() => {
                orders::flush(fence, (line, class, how), below)
            }
            _ => on_host_stack(|| self.hooks.fence(fence, below)),
        }
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<Token>) -> Progress {
        on_host_stack(|| self.hooks.commit(tx, below))
    }

    fn fill(&mut self, fill: &Fill, below: &mut Below<Token>) -> Cycle {
        on_host_stack(|| self.hooks.fill(fill, below))
    }

    fn transfer(&mut self, transfer: &Transfer, below: &mut Below<Token>) -> Cycle {
        on_host_stack(|| self.hooks.transfer(transfer, below))
    }

    fn evict(&mut self, evict: &Evict, below: &mut Below<Token>) -> Disposition<Token> {
        on_host_stack(|| self.hooks.evict(evict, below))
    }

    fn event(&mut self, at: Cycle, event: Token, below: &mut Below<Token>) {
        on_host_stack(|| self.hooks.event(at, event, below));
    }

    fn leaves_behind(&self, line: Line) -> bool {
        on_host_stack(|| self.hooks.leaves_behind(line))
    }

    fn hears_at_once(&self, event: &Token) -> bool {
        on_host_stack(|| self.hooks.hears_at_once(*event))
    }

    fn invariants(&self) -> Result<(), String> {
        on_host_stack(|| self.hooks.invariants())
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        on_host_stack(|| self.hooks.power_loss(gasp))
    }

    fn could_be_durable(
        &self,
        below: &Below<Token>,
        arrived: &mut dyn FnMut() -> bool,
    ) -> Vec<Write> {
        if !self.orders {
            return Vec::new();
        }
        let said = on_host_stack(|| self.hooks.could_be_durable(below, arrived));
        said.unwrap_or_else(|| orders::evictions(below, arrived))
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        on_host_stack(|| setup.params.script().recover(image, &Self::given(setup)))
    }

    fn boot(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<Self, PowerLoss> {
        let boot = || setup.params.script().boot(image, &Self::given(setup));
        Ok(Scripted::of(on_host_stack(boot)?, setup))
    }

    fn show_event(&self, event: &Token) -> String {
        on_host_stack(|| self.hooks.show_event(*event))
    }

    fn hardware(setup: &Setup<'_, Self>) -> Vec<Structure> {
        // A run that cuts the power asks for this, too.
        on_host_stack(|| setup.params.script().hardware(&Self::given(setup)))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        on_host_stack(|| self.hooks.counters())
    }
}

/// Returns what `run` returns. If it finds a rule of the machine broken, that is the script's
/// fault: a design of ours would have been seen to break it.
fn or_blame<T>(script: &str, run: impl FnOnce() -> T) -> T {
    let payload = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(answer) => return answer,
        Err(payload) => payload,
    };
    if payload.is::<Raised>() {
        resume_unwind(payload);
    }
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    let what = text.unwrap_or("a panic without a message");
    let what = what.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    raise(format!("{script}: it breaks a rule of the machine (or this is our bug): {what}"))
}

/// What a script raised, as the payload of a panic. It ends the run, and the caller that started
/// the run tells the user.
#[derive(Debug)]
pub struct Raised {
    /// A sentence for the user.
    pub text: String,
    /// Whether it says that the request does not fit, and not that the script is wrong.
    pub declined: bool,
}

/// Ends the run: the script is wrong, as a sentence for the user says.
pub fn raise(text: String) -> ! {
    resume_unwind(Box::new(Raised { text, declined: false }))
}

/// Ends the run: what was asked of the script does not fit, as a sentence for the user says.
pub fn decline(text: String) -> ! {
    resume_unwind(Box::new(Raised { text, declined: true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a script raised stays what it is, and what the machine found broken is the script's
    /// fault.
    #[test]
    fn a_rule_of_the_machine_that_a_script_breaks_is_its_fault() {
        let raised = |run: fn()| {
            let payload = catch_unwind(|| or_blame("d.py", run)).expect_err("the run ends");
            payload.downcast_ref::<Raised>().expect("a sentence for the user").text.clone()
        };
        let broken = raised(|| panic!("a slot is reserved"));
        assert!(broken.starts_with("d.py: it breaks a rule of the machine"), "{broken}");
        assert!(broken.ends_with(": a slot is reserved"), "{broken}");
        assert_eq!(raised(|| raise("d.py:3: in store: no".into())), "d.py:3: in store: no");
    }
}
