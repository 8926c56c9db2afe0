//! The memory that the loops leave on the processor of the tests, and the answers to requests.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use native::words::{Array, ENTRIES, Fence, Logging, Values, Variant, Word};
use native::x86_64::features::Features;
use native::x86_64::instructions::SourceState;
use native::x86_64::loops::{Kind, OwnLine, Walk, select, stride};
use native::{InputError, Watch};
use serde_json::Value;

const ITEMS: usize = 64;
const LOG_BYTES: usize = 1024;

/// Memory that begins at a line.
#[repr(align(64))]
struct Lines<const BYTES: usize>([u8; BYTES]);

/// Does so many groups over an array whose element i is 1,000 + i, and returns array and log.
fn after(kind: Kind, groups: usize) -> (Vec<u32>, Vec<u8>) {
    let mut array = Box::new(Lines([0; ITEMS * 4]));
    let mut log = Box::new(Lines([0; LOG_BYTES]));
    for (index, bytes) in array.0.chunks_mut(4).enumerate() {
        bytes.copy_from_slice(&(1000 + index as u32).to_le_bytes());
    }
    let mut walk = Walk {
        array: array.0.as_mut_ptr().cast(),
        items: ITEMS,
        log: log.0.as_mut_ptr(),
        log_bytes: LOG_BYTES,
        index: 0,
        at: 0,
        source: SourceState::new(7),
        own: Box::new(OwnLine::default()),
    };
    // SAFETY: the sizes are those of the memory, and callers check for the instructions.
    unsafe { select(kind)(&mut walk, groups) };
    let words = array.0.chunks(4).map(|four| u32::from_le_bytes(four.try_into().expect("four")));
    (words.collect(), log.0.to_vec())
}

fn entry(log: &[u8], at: usize) -> (u32, u32) {
    let word = |at: usize| u32::from_le_bytes(log[at..at + 4].try_into().expect("four"));
    (word(at), word(at + 4))
}

#[test]
fn the_log_holds_index_and_value_of_what_the_array_holds() {
    let features = Features::detect();
    let mut tested = 0;
    for &variant in Variant::ALL {
        for &entries in ENTRIES {
            for (logging, array, fence, values) in [
                (Logging::Redo, Array::Cached, Fence::Sfence, Values::Xorshift),
                (Logging::Undo, Array::Flushed, Fence::Lock, Values::Rand),
                (Logging::Undo, Array::Cached, Fence::None, Values::Precomputed),
            ] {
                if features.lacks(variant, array).is_some() {
                    continue;
                }
                tested += 1;
                let kind = Kind { variant, entries, fence, values, logging, array };
                let (elements, log) = after(kind, 16 / entries);
                assert_eq!(elements[16], 1016, "{kind:?}: sixteen elements were stored to");
                for (index, &element) in elements.iter().enumerate().take(16) {
                    let stride = stride(variant, entries);
                    let at = index / entries * stride + index % entries * 8;
                    let old = 1000 + index as u32;
                    assert_ne!(element, old, "{kind:?}");
                    let wanted = if logging == Logging::Undo { old } else { element };
                    assert_eq!(entry(&log, at), (index as u32, wanted), "{kind:?}");
                }
            }
        }
    }
    assert!(tested > 0, "every processor has ordinary stores");
}

#[test]
fn array_and_log_go_round() {
    let (fence, values) = (Fence::Sfence, Values::Xorshift);
    let (logging, array) = (Logging::Redo, Array::Cached);
    let kind = Kind { variant: Variant::Movnti8, entries: 2, fence, values, logging, array };
    // The log holds 128 entries and the array 64 elements: 65 groups go round twice.
    let (elements, log) = after(kind, 65);
    assert_eq!(entry(&log, 0), (0, elements[0]));
    assert_eq!(entry(&log, 8), (1, elements[1]));
    assert_eq!(entry(&log, 127 * 8).0, 63);
}

fn ask(request: &str, cancelled: &AtomicBool) -> Result<Value, InputError> {
    let (done, total) = (AtomicU64::new(0), AtomicU64::new(0));
    let answer = native::logging(request, Watch { cancelled, done: &done, total: &total })?;
    let answer: Value = serde_json::from_str(&answer).expect("an answer is JSON");
    if answer["cancelled"] == false {
        assert_eq!(done.load(Ordering::Relaxed), total.load(Ordering::Relaxed));
    }
    Ok(answer)
}

fn refused(request: &str) -> String {
    ask(request, &AtomicBool::new(false)).expect_err(request).to_string()
}

#[test]
fn an_answer_has_a_row_for_each_cell() {
    let request = r#"{"quick": true, "variants": ["cached", "movnti4"], "entries": [1, 8],
        "fences": ["sfence"], "arrays": ["256KiB"], "logs": ["linear", "circular"]}"#;
    let answer = ask(request, &AtomicBool::new(false)).expect("an answer");
    let rows = answer["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 8);
    for row in rows {
        let number = |name: &str| row[name].as_f64().expect(name);
        assert!(number("min") > 0.0 && number("min") <= number("cycles_per_entry"), "{row}");
        assert!(number("cv") >= 0.0 && row["runs"] == 20, "{row}");
        assert!((0.0..100.0).contains(&number("interrupted_percent")), "{row}");
        let durable = row["variant"] == "movnti4";
        assert_eq!(row["guarantee"], if durable { "durable (ADR)" } else { "nothing" });
        let counted = &row["llc_miss_rate"];
        assert!(counted.is_number() || counted == "unsupported", "{row}");
    }
    assert!(answer["computer"]["tsc_hz"].as_f64().expect("a rate") > 1e8);
}

#[test]
fn what_cannot_be_measured_is_a_sentence() {
    assert!(refused(r#"{"variants": ["movnit"]}"#).contains("unknown variant `movnit`"));
    assert!(refused(r#"{"entries": [3]}"#).contains("there are 1, 2, 4, 8 and 16"));
    assert!(refused(r#"{"arrays": ["16GiB"], "threads": [1]}"#).contains("MiB of memory are free"));
    assert!(refused(r#"{"threads": [4096]}"#).contains("4096 threads cannot be measured"));
    assert!(refused(r#"{"threads": [0]}"#).contains("0 threads cannot"));
    assert!(refused(r#"{"unknown": 1}"#).contains("not understood"));
    let features = Features::detect();
    if features.lacks(Variant::Movdir64b, Array::Cached).is_some() {
        let sentence = refused(r#"{"variants": ["movdir64b"]}"#);
        assert_eq!(
            sentence,
            "nothing of movdir64b can be measured: this processor has no movdir64b"
        );
    }
}

/// Asks for an end of what a request began some milliseconds before.
fn ends_in_time(request: &str, after: u64) {
    let cancelled = AtomicBool::new(false);
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(request, &cancelled));
        std::thread::sleep(Duration::from_millis(after));
        cancelled.store(true, Ordering::Relaxed);
        let told = Instant::now();
        let answer = asked.join().expect("an answer").expect("an answer");
        // The promise is one second; the rest is for a computer that is busy.
        assert!(told.elapsed() < Duration::from_secs(3), "{:?}", told.elapsed());
        answer
    });
    assert_eq!(answer["cancelled"], true);
}

#[test]
fn an_end_comes_within_a_second() {
    ends_in_time(r#"{"whole": true}"#, 700);
}

/// The measurement takes a second, and the model behind it four.
#[test]
fn an_end_of_the_model_comes_within_a_second() {
    ends_in_time(
        r#"{"quick": true, "variants": ["cached"], "entries": [1], "fences": ["sfence"],
            "arrays": ["512MiB"], "logs": ["circular"]}"#,
        1500,
    );
}
