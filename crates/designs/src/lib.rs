//! The designs, by name. Adding one is a file, a `mod` line and a line in `ALL`.
//!
//! [`template`] is in no list: `indelible new design mine --rust` copies it and adds the two lines,
//! and the suite `template` of `lab` holds it to what is asked of the others.

use std::rc::Rc;

use model::config::Config;
use model::crash::Campaign;
use model::design::{Card, Design, Model, NeedlessWith, Setup, Shape, Structure};
use model::engine::{self, Control, Failure, Outcome};
use model::image::Remains;
use model::params::{Field, Params, Rules};
use model::timeline::Asked;
use model::workload::Workload;

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

/// The designs, in the order of their names. A static and not a constant, so that they are compiled
/// here, and not once more in each crate that names this; nor for the unit tests, which run none.
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

/// Ordering hardware, in the order of names: what a log is paired with, and what litmus tests run
/// on. A static as [`ALL`] is.
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
    /// What is said of it.
    pub card: Card,
    /// What order of stores it promises, if it is ordering hardware or stands on it.
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
    /// Whether lines are elsewhere than where programs see them.
    pub translates: bool,
    /// If it is a user's, whose defects are not ours, what tells it from others of its name.
    pub script: Option<&'static str>,
    /// Runs a workload on a machine with it.
    pub run: &'static Runs,
    /// What it adds to the hardware of a machine.
    pub hardware: &'static Hardware,
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

    /// Whether flushes and fences do nothing, nor are they needless: where a store survives from
    /// when it is visible there is nothing for them to do.
    pub fn ignores_fences(&self) -> bool {
        !self.has_fences && matches!(self.model, None | Some(Model::Unordered))
    }
}

/// What runs a workload on a machine with a design.
pub type Runs = dyn Fn(Order<'_>) -> Result<Outcome, Failure> + Sync;

/// What a design adds to the hardware, of its settings and a machine.
pub type Hardware = dyn Fn(&[(String, u64)], &Shape) -> Vec<Structure> + Sync;

/// A run, before the design's type is known.
pub struct Order<'a> {
    /// The machine.
    pub config: &'a Config,
    /// Cores, each of which runs a program.
    pub cores: u8,
    /// Parameters of the design, known to exist and to be within their limits.
    pub settings: &'a [(String, u64)],
    /// A rule of the design, known to exist, to be switched off.
    pub without: Option<&'a str>,
    /// The workload; not populated yet.
    pub workload: Box<dyn Workload>,
    /// Transactions of each core before the measured region.
    pub warmup: u64,
    /// Transactions of each core in the measured region.
    pub transactions: u64,
    /// Whether nobody may run ahead.
    pub exact: bool,
    /// Whether ordering points and epochs are counted.
    pub epochs: bool,
    /// What part of the run is recorded, if any is.
    pub timeline: Option<Asked>,
    /// Whether the power is cut, and where.
    pub campaign: Option<Campaign>,
    /// What the machine boots from, if it is not new, and the seed of the programs' random numbers.
    pub boot: Option<(&'a Remains, u64)>,
    /// Called when the measured region begins; for whoever measures the host.
    pub started: Rc<dyn Fn()>,
    /// Who watches.
    pub control: &'a Control,
}

/// A design as it would be in [`ALL`].
pub const fn entry<D: Design>() -> Entry {
    Entry {
        card: D::CARD,
        model: D::MODEL,
        stands_on: D::STANDS_ON,
        fields: D::Params::FIELDS,
        rules: D::Rules::RULES,
        needless: D::NEEDLESS,
        needless_with: D::NEEDLESS_WITH,
        has_fences: D::HAS_FENCES,
        migrates: D::MIGRATES,
        revokes: D::REVOKES,
        translates: D::TRANSLATES,
        script: None,
        run: &run::<D>,
        hardware: &hardware::<D>,
    }
}

fn params<D: Design>(settings: &[(String, u64)]) -> D::Params {
    let mut params = D::Params::default();
    for (name, value) in settings {
        params.set(name, *value);
    }
    params
}

fn run<D: Design>(order: Order<'_>) -> Result<Outcome, Failure> {
    let params = params::<D>(order.settings);
    run_with::<D>(order, params)
}

fn run_with<D: Design>(order: Order<'_>, params: D::Params) -> Result<Outcome, Failure> {
    let rules = D::Rules::default();
    engine::run(engine::Run::<D> {
        config: order.config,
        cores: order.cores,
        params,
        rules: order.without.map_or(rules.clone(), |rule| rules.without(rule)),
        workload: order.workload,
        warmup: order.warmup,
        transactions: order.transactions,
        exact: order.exact,
        epochs: order.epochs,
        timeline: order.timeline,
        campaign: order.campaign,
        boot: order.boot,
        started: order.started,
        control: order.control,
    })
}

fn hardware<D: Design>(settings: &[(String, u64)], shape: &Shape) -> Vec<Structure> {
    let (params, rules) = (params::<D>(settings), D::Rules::default());
    D::hardware(&Setup { params: &params, rules: &rules, shape })
}
