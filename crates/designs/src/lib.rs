//! The designs, by name. Adding one is a file, a `mod` line and a line in `ALL`.
//!
//! [`template`] is in no list: `indelible new design mine --rust` copies it and adds the two lines,
//! and the suite `template` of `lab` holds it to what is asked of the others.

use model::design::{Card, Corner, Design, Model, NeedlessWith, Shape, Structure, System};
use model::engine::{self, Failure, Outcome, Run};
use model::firmware::{Firmware, Fixed};
use model::params::{Field, Params, Rules};

pub mod base;
pub mod bbb;
pub mod count;
pub mod dpo;
pub mod fwb;
pub mod hops;
pub mod kiln;
pub mod lad;
pub mod loc;
pub mod loc_kiln;
pub mod morlog;
pub mod native;
pub mod orders;
pub mod parts;
pub mod redo;
pub mod redo_log;
pub mod scripted;
pub mod shadow_paging;
pub mod silo;
pub mod software;
pub mod ssp;
pub mod swal;
pub mod template;
pub mod undo;
pub mod undo_log;
pub mod write_set;

/// The designs, in the order of their names. This is a static and not a constant, so that they are
/// compiled here, and not once more in each crate that names it; nor are they for the unit tests,
/// which run none.
#[cfg(not(test))]
pub static ALL: &[Entry] = &[
    entry::<base::Base>(),
    entry::<software::Software<software::CountBbb>>(),
    entry::<software::Software<software::CountDpo>>(),
    entry::<software::Software<software::CountEadr>>(),
    entry::<software::Software<software::CountHops>>(),
    entry::<software::Software<software::CountIdeal>>(),
    entry::<software::Software<software::CountX86>>(),
    entry::<loc::Wal<loc::EcWal>>(),
    entry::<fwb::Fwb>(),
    entry::<loc::Wal<loc::HWal>>(),
    entry::<software::Software<software::HopsPaper>>(),
    entry::<kiln::Kiln>(),
    entry::<lad::Lad>(),
    entry::<loc_kiln::LocKiln>(),
    entry::<loc::Wal<loc::LocWal>>(),
    entry::<morlog::Morlog<morlog::Synchronous>>(),
    entry::<morlog::Morlog<morlog::DelayPersistence>>(),
    entry::<native::Native>(),
    entry::<redo_log::RedoLog>(),
    entry::<software::Software<software::RedoBbb>>(),
    entry::<software::Software<software::RedoDpo>>(),
    entry::<software::Software<software::RedoEadr>>(),
    entry::<software::Software<software::RedoHops>>(),
    entry::<software::Software<software::RedoIdeal>>(),
    entry::<software::Software<software::RedoX86>>(),
    entry::<software::Software<software::SWalX86>>(),
    entry::<shadow_paging::ShadowPaging>(),
    entry::<silo::Silo>(),
    entry::<ssp::Ssp>(),
    entry::<undo_log::UndoLog>(),
    entry::<software::Software<software::UndoBbb>>(),
    entry::<software::Software<software::UndoDpo>>(),
    entry::<software::Software<software::UndoEadr>>(),
    entry::<software::Software<software::UndoHops>>(),
    entry::<software::Software<software::UndoIdeal>>(),
    entry::<software::Software<software::UndoX86>>(),
];

/// Ordering hardware, in the order of names, with which logs are paired and on which litmus tests
/// run. A static as [`ALL`] is.
#[cfg(not(test))]
pub static ORDERS: &[Entry] = &[
    entry::<bbb::Bbb>(),
    entry::<dpo::Dpo>(),
    entry::<orders::Eadr>(),
    entry::<hops::Hops>(),
    entry::<orders::Ideal>(),
    entry::<orders::X86>(),
];

/// A design as the registry knows it. Here its type is erased, once per run.
pub struct Entry {
    /// Its card.
    pub card: Card,
    /// The order of stores that it promises, if it is ordering hardware or stands on it.
    pub model: Option<Model>,
    /// The ordering hardware that it stands on, by name, if it is a log on some.
    pub stands_on: Option<&'static str>,
    /// Its parameters.
    pub fields: &'static [Field],
    /// Its rules, each with its documentation.
    pub rules: &'static [(&'static str, &'static str)],
    /// Rules that it shares with others and does not need, each with the reason.
    pub needless: &'static [(&'static str, &'static str)],
    /// Rules that it does not need with a choice of a parameter.
    pub needless_with: &'static [NeedlessWith],
    /// Whether fences are instructions.
    pub has_fences: bool,
    /// Whether a thread may move to another core in a transaction.
    pub migrates: bool,
    /// Whether it revokes aborted transactions by itself.
    pub revokes: bool,
    /// Whether lines may lie elsewhere than where programs see them.
    pub translates: bool,
    /// For a user's script, whose defects are not ours: a text that tells it from others of its
    /// name.
    pub script: Option<&'static str>,
    /// Runs a workload on a machine with it.
    pub run: &'static Runs,
    /// The structures that it adds to the hardware of a machine.
    pub hardware: &'static Hardware,
    /// Its corner for a trial of the search for what breaks it ([`Design::corner`]).
    pub corner: fn(u64, bool) -> Corner,
}

impl Entry {
    /// Whether it is ordering hardware alone, without a log that keeps transactions whole.
    pub fn is_order(&self) -> bool {
        self.model.is_some() && self.stands_on.is_none()
    }

    /// Rules that it does not need with parameters of these values, each with the reason.
    pub fn needless_under(
        &self,
        settings: &[(String, u64)],
    ) -> impl Iterator<Item = (&'static str, &'static str)> {
        let has = |with: &NeedlessWith| {
            let field = self.fields.iter().find(|field| field.name == with.field);
            let said = settings.iter().rev().find(|(name, _)| name == with.field);
            let value = said.map(|(_, value)| *value).or(field.map(|field| field.default));
            let choice = value.and_then(|value| field?.choices.get(value as usize));
            choice == Some(&with.choice)
        };
        let with = self.needless_with.iter().filter(move |with| has(with));
        let with: Vec<_> = with.map(|with| (with.rule, with.why)).collect();
        self.needless.iter().copied().chain(with)
    }

    /// Whether flushes and fences do nothing although they are not needless. (Where a store
    /// survives from when it is visible, there is nothing for them to do.)
    pub fn ignores_fences(&self) -> bool {
        !self.has_fences && matches!(self.model, None | Some(Model::Unordered))
    }
}

/// What runs a workload on a machine with a design.
pub type Runs = dyn Fn(Order<'_>) -> Result<Outcome, Failure> + Sync;

/// The structures that a design adds to the hardware, given its settings and the machine's shape.
pub type Hardware = dyn Fn(&[(String, u64)], &Shape) -> Vec<Structure> + Sync;

/// A run, before the design's type is known.
pub struct Order<'a> {
    /// Parameters of the design, known to exist and to be within their limits.
    pub settings: &'a [(String, u64)],
    /// A rule of the design, known to exist, to be switched off.
    pub without: Option<&'a str>,
    /// The run itself.
    pub run: Run<'a>,
}

/// A design as it would be in [`ALL`].
pub const fn entry<S: System>() -> Entry {
    Entry {
        card: S::CARD,
        model: S::Hardware::ORDERING.model,
        stands_on: S::STANDS_ON,
        fields: S::Params::FIELDS,
        rules: S::Rules::RULES,
        needless: S::NEEDLESS,
        needless_with: S::NEEDLESS_WITH,
        has_fences: S::Hardware::ORDERING.fences,
        migrates: S::Hardware::MIGRATES,
        revokes: S::Hardware::REVOKES,
        translates: S::Hardware::TRANSLATES,
        script: None,
        run: &run::<S>,
        hardware: &hardware::<S>,
        corner: S::corner,
    }
}

fn params<S: System>(settings: &[(String, u64)]) -> S::Params {
    let mut params = S::Params::default();
    for (name, value) in settings {
        params.set(name, *value);
    }
    params
}

fn run<S: System>(order: Order<'_>) -> Result<Outcome, Failure> {
    let params = params::<S>(order.settings);
    run_with::<S>(S::CARD, order, params)
}

fn run_with<S: System>(
    card: Card,
    order: Order<'_>,
    params: S::Params,
) -> Result<Outcome, Failure> {
    let rules = S::Rules::default();
    let rules = order.without.map_or(rules.clone(), |rule| rules.without(rule));
    engine::run::<S>(card, params, rules, order.run)
}

fn hardware<S: System>(settings: &[(String, u64)], shape: &Shape) -> Vec<Structure> {
    hardware_with::<S>(params::<S>(settings), shape)
}

fn hardware_with<S: System>(params: S::Params, shape: &Shape) -> Vec<Structure> {
    Fixed::<S> { params, rules: S::Rules::default(), shape: shape.clone() }.hardware()
}
