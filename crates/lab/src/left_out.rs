//! What a user's checker says of a trace without some of its flushes or fences: it has to notice
//! that a needed one is missing.

use model::control::Control;
use serde_json::{Value, json};

use crate::error::InputError;
use crate::lives::{live, spread};
use crate::spec::{HowMany, Resolved, stopped};

/// Leaves out each flush and each fence, one after the other, those of one place in the program
/// together; or as many of these places as are asked for.
///
/// # Errors
/// A sentence that says what does not fit.
pub fn left_out(
    resolved: &Resolved,
    asked: &HowMany,
    control: &Control,
) -> Result<Value, InputError> {
    let settings = &resolved.workload_settings;
    let all = workloads::replay::persists(resolved.script.as_ref(), settings);
    let all = all.map_err(|stop| stopped(stop, resolved))?;
    let count = all.len() as u64;
    let chosen: Vec<u64> = match *asked {
        HowMany::Some(wanted) if wanted < count => spread(count, wanted, resolved.seed),
        _ => (1..=count).collect(),
    };
    let mut rows = Vec::new();
    for persist in chosen.into_iter().map(|number| &all[number as usize - 1]) {
        let place = persist.place as u64;
        let mut row = json!({
            "operation": persist.operation,
            "unit": persist.unit,
            "place": place,
            "source": persist.source,
            "times": persist.times,
            "noticed": null,
        });
        if !control.is_cancelled() {
            let mut on = Resolved { nested: false, ..resolved.keeping_nothing() };
            on.leave_out(place);
            let found = live(&on, control)?;
            let violation = found.violations().next();
            let was_cut_short = control.is_cancelled();
            if violation.is_some() || !was_cut_short {
                row["noticed"] = violation.is_some().into();
            }
            if let Some((_, violation)) = violation {
                row["event"] = violation.point.into();
                row["text"] = violation.text.clone().into();
            }
        }
        rows.push(row);
    }
    Ok(rows.into())
}
