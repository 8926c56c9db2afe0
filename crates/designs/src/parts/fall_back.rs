//! The way out for transactions that the hardware cannot hold (SSP, MICRO'19 section 3.2): the
//! library gives the transaction up in hardware and makes the program's stores again, as plain
//! stores behind the software undo log of this repository. The paper leaves the handler to the
//! programmer. The loads and the arithmetic that a real program would also repeat are not charged.

use model::design::{Abort, Cpu, Design, Library, Setup, Shape};
use model::image::{Image, Placement, PowerLoss};
use model::params::{Both, Params, Rules};
use model::units::{CoreId, TxId, Word};
use model::workload::Ptr;

use crate::software::Log;
use crate::undo::{Undo, UndoParams, UndoRules};

/// Undoes the transactions that ran in software, whose log has the addresses that programs use:
/// `placement` says where these lie.
///
/// # Errors
/// [`PowerLoss`] when the power fails again.
pub fn recover(
    image: &mut Image<'_>,
    placement: Placement,
    rules: &UndoRules,
    shape: &Shape,
) -> Result<(), PowerLoss> {
    image.see_through(placement);
    Undo::recover(image, rules, shape)?;
    image.see_through(Placement::default());
    Ok(())
}

/// The handler of one core.
pub struct FallBack {
    undo: Undo,
    tx: TxId,
    /// The transaction's stores in hardware; `overwritten` has what the words held before.
    stores: Vec<(Ptr, u64, u64)>,
    overwritten: Vec<(Word, u64)>,
    is_in_software: bool,
}

impl<P, R, D> Library<D> for FallBack
where
    P: Params,
    R: Rules,
    D: Design<Params = Both<P, UndoParams>, Rules = Both<R, UndoRules>>,
{
    fn new(setup: &Setup<'_, D>, core: CoreId) -> FallBack {
        let (params, rules) = (&setup.params.second, &setup.rules.second);
        FallBack {
            undo: Undo::new(params, rules, setup.shape, core),
            tx: TxId(0),
            stores: Vec::new(),
            overwritten: Vec::new(),
            is_in_software: false,
        }
    }

    fn begin(&mut self, tx: TxId, _cpu: &mut impl Cpu) {
        self.tx = tx;
    }

    #[inline]
    fn store(&mut self, at: Ptr, value: u64, mask: u64, cpu: &mut impl Cpu) {
        if !self.is_in_software {
            if let Some(known) = cpu.claim(at) {
                let word = Word::of(at.address);
                self.overwritten.push((word, cpu.peek(word)));
                self.stores.push((at, value, mask));
                return cpu.store(Ptr { known, ..at }, value, mask);
            }
            cpu.abort(&self.overwritten, Abort::ByLibrary);
            self.is_in_software = true;
            self.undo.begin(self.tx, cpu);
            for (at, value, mask) in std::mem::take(&mut self.stores) {
                self.store_logged(at, value, mask, cpu);
            }
        }
        self.store_logged(at, value, mask, cpu);
    }

    fn commit(&mut self, cpu: &mut impl Cpu) {
        self.forget();
        if std::mem::take(&mut self.is_in_software) {
            self.undo.commit(cpu);
        }
    }

    fn abort(&mut self, overwritten: &[(Word, u64)], cpu: &mut impl Cpu) {
        self.forget();
        if std::mem::take(&mut self.is_in_software) {
            return self.undo.abort(cpu);
        }
        cpu.abort(overwritten, Abort::ByProgram);
    }
}

impl FallBack {
    fn forget(&mut self) {
        self.stores.clear();
        self.overwritten.clear();
    }

    /// Makes a store behind the undo log. By then no other core may store to its line.
    fn store_logged(&mut self, at: Ptr, value: u64, mask: u64, cpu: &mut impl Cpu) {
        let known = cpu.claim(at).expect("in software a transaction may be of any size");
        self.undo.store(Ptr { known, ..at }, value, mask, cpu);
    }
}
