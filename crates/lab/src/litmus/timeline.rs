//! How an image came about: what was recorded of the run that left it, in words.

use model::meters::Stall;
use model::oracle::Moment;
use model::timeline::{Happening, Recorded};
use serde_json::{Value, json};

use super::cut::Hardware;
use crate::trace::{self, Called};

/// The most events that are told, the last of all (ours: programs leave a few hundred, and hardware
/// that looks for something in every cycle more than anybody reads).
const EVENTS_MAX: usize = 1_000;

/// What was recorded of a run up to the power failure that left an image, as JSON; `null` if
/// nothing was. The run was on the machine `tiny` with these settings, and some words are called by
/// a name.
pub(super) fn told(
    recorded: Option<Recorded>,
    of: &Moment,
    (hardware, machine): (&Hardware, &[(String, String)]),
    called: &Called,
) -> Value {
    let Some(mut recorded) = recorded else { return Value::Null };
    recorded.spans.retain(|span| matters(&span.what));
    let left_out = recorded.spans.len().saturating_sub(EVENTS_MAX);
    recorded.spans.drain(..left_out);
    let cut = recorded.cut.map(|cut| cut - recorded.started);
    let shown = trace::show(&recorded, hardware.name(), called);
    let machine = machine.iter().map(|(path, value)| format!("{path}={value}"));
    json!({
        "machine": machine.collect::<Vec<_>>(),
        "event": cut.map(|_| of.point),
        "cut": cut,
        "order": of.order,
        "early": trace::early(&of.early, called),
        "left_out": left_out,
        "events": shown.iter().map(trace::row).collect::<Vec<_>>(),
    })
}

/// Whether it says where a line was, or what was asked of the hardware. Of the waits of cores only
/// those at fences do, and banks have nothing that the queues before them had not.
fn matters(what: &Happening) -> bool {
    match what {
        Happening::Store(..)
        | Happening::Flush(..)
        | Happening::Fence(..)
        | Happening::Fetch(..)
        | Happening::Arriving(..)
        | Happening::Queued(..)
        | Happening::Design(_)
        | Happening::PowerLoss
        | Happening::Wait(_, Stall::Fence) => true,
        Happening::Transaction(..)
        | Happening::Commit(..)
        | Happening::Wait(..)
        | Happening::Bank(..)
        | Happening::VolatileBank(..)
        | Happening::Aborted(..) => false,
    }
}

#[cfg(test)]
mod tests {
    use model::recorder::Span;
    use model::units::{CoreId, Cycle, Word};

    use super::*;

    #[test]
    fn of_many_events_the_last_are_told() {
        let of = |at: u64| {
            let what = match at % 3 {
                0 => Happening::Wait(CoreId(0), Stall::LoadMiss),
                _ => Happening::Store(CoreId(0), Word(8), 0, at),
            };
            Span { from: 7 + at, until: 7 + at, what }
        };
        let spans = (0..3_000).map(of).collect();
        let recorded =
            Recorded { started: 7, window: 7..9_999, ended: 9_999, cut: None, spans, holds: None };
        let of = Moment { point: 0, order: 0, at: Cycle(0), early: Vec::new() };
        let hardware = Hardware::of(&designs::ORDERS[0]);
        let told = told(Some(recorded), &of, (&hardware, &[]), &Called::default());
        let events = told["events"].as_array().expect("rows");
        assert_eq!((&told["left_out"], events.len()), (&json!(1_000), EVENTS_MAX));
        let ends = [&events[0], &events[EVENTS_MAX - 1]].map(|event| event["from"].as_u64());
        assert_eq!(ends, [Some(1_501), Some(2_999)]);
    }
}
