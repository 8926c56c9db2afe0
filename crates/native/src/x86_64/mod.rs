//! The benchmark on x86-64: from a request to rows.

pub mod instructions;
pub mod features;
pub mod host;
pub mod memory;
pub mod counters;
pub mod loops;
pub mod modelled;
pub mod plan;
pub mod measure;

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::words::{Array, Variant, Word};
use crate::{InputError, Watch};
use features::Features;
use measure::{Effort, Measured, RUNS};
use plan::{Cell, Request};

/// The seconds that all runs of a cell take together, by default and in a quick run (ours: the
/// default plan then takes half a minute, and the quick one less than ten seconds).
const CELL_SECONDS: f64 = 0.4;
const QUICK_CELL_SECONDS: f64 = 0.15;

/// The last level of the paper's machine, for which the model gives its miss rate, too.
const PUBLISHED_LLC: u64 = 8 << 20;

/// Makes the measurements of a request.
///
/// # Errors
/// A sentence that says what is wrong with the request, or with this computer.
pub fn logging(request: &str, watch: Watch<'_>) -> Result<String, InputError> {
    let request: Request = serde_json::from_str(request)
        .map_err(|error| InputError(format!("the request is not understood: {error}")))?;
    let computer = Computer::look()?;
    let cells = request.cells(computer.features.llc)?;
    computer.check(&cells)?;
    let (cells, skipped) = computer.able(&request, cells)?;
    let seconds = if request.quick { QUICK_CELL_SECONDS } else { CELL_SECONDS };
    let effort = Effort {
        ticks: seconds / (RUNS + 1) as f64 * computer.ticks_per_second,
        whole: request.whole,
        seed: request.seed,
    };
    watch.total.store(cells.len() as u64, Ordering::Relaxed);
    let mut report = Report::new(&computer, &skipped);
    let mut modelled = modelled::Model::default();
    for cell in &cells {
        let answer = measure::cell(cell, effort, &computer.processors, &computer.features, watch)
            .map_err(|error| {
            InputError(format!("no memory for an array and its log: {error}"))
        })?;
        let Some(measured) = answer else { return Ok(report.answer(true).to_string()) };
        let Some(rates) = computer.miss_rates(cell, &mut modelled, watch) else {
            return Ok(report.answer(true).to_string());
        };
        report.add(cell, &measured, rates);
        watch.done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(report.answer(false).to_string())
}

/// The computer on which this runs.
struct Computer {
    features: Features,
    processors: Vec<usize>,
    ticks_per_second: f64,
}

impl Computer {
    fn look() -> Result<Computer, InputError> {
        let features = Features::detect();
        if !features.rdtscp {
            return Err(InputError(
                "this processor has no rdtscp, and nothing can be timed".into(),
            ));
        }
        let processors = host::processors();
        Ok(Computer { features, processors, ticks_per_second: host::ticks_per_second() })
    }

    /// Refuses cells for which this computer has too few processors or too little memory.
    fn check(&self, cells: &[Cell]) -> Result<(), InputError> {
        let threads = cells.iter().map(|cell| cell.threads).max().unwrap_or(1);
        let available = self.processors.len();
        if cells.iter().any(|cell| cell.threads == 0) || threads > available {
            let asked = if threads > available { threads } else { 0 };
            return Err(InputError(format!(
                "{asked} threads cannot be measured: each needs a processor of its own, and this \
                 process may use {available}"
            )));
        }
        let bytes = |cell: &Cell| (cell.array_bytes + cell.log_bytes()) * cell.threads;
        let largest = cells.iter().map(bytes).max().unwrap_or(0) as u64;
        match memory::available() {
            Some(free) if largest > free => Err(InputError(format!(
                "the arrays and logs take {} MiB, and {} MiB of memory are free: give a smaller \
                 array or fewer threads",
                largest >> 20,
                free >> 20
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the modelled miss rates of a cell, with the last level of this computer, if it is
    /// known, and with that of the paper's; nothing if the user asked for an end.
    fn miss_rates(
        &self,
        cell: &Cell,
        model: &mut modelled::Model,
        watch: Watch<'_>,
    ) -> Option<(Option<f64>, f64)> {
        let (kind, sizes) = (cell.kind, (cell.array_bytes, cell.log_bytes()));
        let mut miss_rate =
            |llc| model.miss_rate(kind.variant, kind.array, kind.entries, sizes, llc, watch);
        let own = match self.features.llc {
            Some(llc) => Some(miss_rate(llc)?),
            None => None,
        };
        Some((own, miss_rate(PUBLISHED_LLC)?))
    }

    /// Returns the cells whose instructions the processor has, and why the others are left out.
    fn able(&self, request: &Request, cells: Vec<Cell>) -> Result<Able, InputError> {
        let mut skipped: Vec<(Variant, Array, &str)> = Vec::new();
        let mut able = Vec::new();
        for cell in cells {
            match self.features.lacks(cell.kind.variant, cell.kind.array) {
                None => able.push(cell),
                Some(lacking) => {
                    let row = (cell.kind.variant, cell.kind.array, lacking);
                    if !skipped.contains(&row) {
                        skipped.push(row);
                    }
                }
            }
        }
        if able.is_empty() {
            let mut lacking: Vec<&str> = Vec::new();
            for (.., instruction) in &skipped {
                if !lacking.contains(instruction) {
                    lacking.push(instruction);
                }
            }
            let asked = request.variants.as_deref().unwrap_or_default().join(", ");
            return Err(InputError(format!(
                "nothing of {asked} can be measured: this processor has no {}",
                lacking.join(", no ")
            )));
        }
        Ok((able, skipped))
    }
}

type Able = (Vec<Cell>, Vec<(Variant, Array, &'static str)>);

/// The answer, to which cells are added one by one.
struct Report<'a> {
    computer: &'a Computer,
    skipped: Vec<Value>,
    rows: Vec<Value>,
    notes: Vec<String>,
    huge: (usize, usize),
}

impl Report<'_> {
    fn new<'a>(computer: &'a Computer, skipped: &[(Variant, Array, &str)]) -> Report<'a> {
        let row = |&(variant, array, lacking): &(Variant, Array, &str)| {
            let variant: &str = variant.name();
            json!({
                "variant": variant,
                "array_writes": array.name(),
                "reason": format!("this processor has no {lacking}"),
            })
        };
        Report {
            computer,
            skipped: skipped.iter().map(row).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
            huge: (0, 0),
        }
    }

    fn add(&mut self, cell: &Cell, measured: &Measured, miss_rates: (Option<f64>, f64)) {
        let kind = cell.kind;
        let (median, least, cv) = measure::statistics(&measured.runs);
        let mut row = json!({
            "variant": kind.variant.name(),
            "entries_per_fence": kind.entries,
            "fence": kind.fence.name(),
            "value": kind.values.name(),
            "log": cell.shape.name(),
            "logging": kind.logging.name(),
            "array_writes": kind.array.name(),
            "array_bytes": cell.array_bytes,
            "threads": cell.threads,
            "guarantee": kind.variant.guarantee(kind.fence).name(),
            "cycles_per_entry": median,
            "min": least,
            "cv": cv,
            "ns_per_entry": median / self.computer.ticks_per_second * 1e9,
            "runs": measured.runs.len(),
            "entries_per_run": measured.entries,
            "reread_cycles_per_line": measured.reread,
            "steal_percent": measured.stolen,
            "interrupted_percent": measured.interrupted,
            "modelled_llc_miss_rate": miss_rates.0,
            "modelled_llc_miss_rate_8mib": miss_rates.1,
        });
        let counted = measured.counted.row(measured.counted_entries);
        for (name, count) in counted.as_object().into_iter().flatten() {
            row[name] = count.clone();
        }
        self.rows.push(row);
        for note in &measured.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        if let Some((huge, all)) = measured.huge {
            self.huge = (self.huge.0 + huge, self.huge.1 + all);
        }
    }

    fn answer(&self, cancelled: bool) -> Value {
        let features = &self.computer.features;
        let instructions: serde_json::Map<String, Value> =
            features.rows().iter().map(|&(name, has)| (name.into(), has.into())).collect();
        json!({
            "computer": {
                "processor": features.processor,
                "vendor": features.vendor,
                "hypervisor": features.hypervisor,
                "processors": self.computer.processors.len(),
                "llc_bytes": features.llc,
                "tsc_hz": self.computer.ticks_per_second,
                "instructions": instructions,
                "huge_pages": self.huge_share(),
            },
            "rows": self.rows,
            "skipped": self.skipped,
            "notes": self.notes,
            "cancelled": cancelled,
        })
    }

    /// Returns the share of all memory that was in huge pages, if the system said so.
    fn huge_share(&self) -> Option<f64> {
        (self.huge.1 > 0).then(|| self.huge.0 as f64 / self.huge.1 as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_that_is_missing_is_named_once() {
        let mut computer = Computer::look().expect("it has a clock");
        computer.features.movdiri = false;
        computer.features.movdir64b = false;
        let list = |words: &str| Some(words.split(',').map(str::to_owned).collect());
        let (variants, array_writes) = (list("movdir64b,movdiri"), list("cached,flushed"));
        let request = Request { variants, array_writes, ..Request::default() };
        let cells = request.cells(None).expect("cells");
        let complaint = computer.able(&request, cells).expect_err("nothing is left").to_string();
        assert_eq!(
            complaint,
            "nothing of movdir64b, movdiri can be measured: this processor has no movdir64b, no \
             movdiri"
        );
    }
}
