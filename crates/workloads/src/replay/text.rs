//! The text format of traces: an operation on each line, and behind `#` its place in the program.
//! docs/replay.md describes it.

use model::workload::Step;

use super::recording::Recorder;
use super::trace::{Op, Trace};

/// The operations, and how each is written.
const FORMS: [(&str, &str); 18] = [
    ("region", "region ADDRESS BYTES"),
    ("measured", "measured"),
    ("interleaved", "interleaved"),
    ("thread", "thread NUMBER"),
    ("load", "load ADDRESS [BYTES]"),
    ("store", "store ADDRESS VALUE [BYTES]"),
    ("bytes", "bytes ADDRESS HEX"),
    ("ntstore", "ntstore ADDRESS VALUE"),
    ("flush", "flush ADDRESS [BYTES]"),
    ("order", "order"),
    ("fence", "fence"),
    ("mark", "mark TEXT"),
    ("work", "work INSTRUCTIONS"),
    ("begin", "begin"),
    ("commit", "commit"),
    ("abort", "abort"),
    ("lock", "lock NUMBER"),
    ("unlock", "unlock NUMBER"),
];

/// Reads the trace `text` of the file `name`; transactions of two threads share parts of `grain`
/// bytes only behind locks.
///
/// # Errors
/// [`model::workload::Stop::Input`] with the line that is wrong.
pub fn read(name: &str, text: &str, grain: u64) -> Step<Trace> {
    let mut recorder = Recorder::new(name, "line", grain);
    let lines = || {
        text.lines().zip(1..).filter_map(|(line, place)| {
            let (line, source) = line.split_once('#').unwrap_or((line, ""));
            let words: Vec<&str> = line.split_whitespace().collect();
            (!words.is_empty()).then_some((place, words, source.trim()))
        })
    };
    if lines().any(|(_, words, _)| words[0] == "measured") {
        recorder.begin_before();
    }
    // Regions are read first, so that persistent memory is known before any operation.
    for (place, words, _) in lines().filter(|(_, words, _)| words[0] == "region") {
        recorder.place = place;
        let [start, bytes] = numbers(&recorder, &words)?;
        recorder.region(start, bytes)?;
    }
    for (place, words, source) in lines().filter(|(_, words, _)| words[0] != "region") {
        recorder.place = place;
        recorder.comes_from(source);
        perform(&mut recorder, &words)?;
    }
    recorder.finish()
}

fn perform(to: &mut Recorder<'_>, words: &[&str]) -> Step {
    let verb = words[0];
    if !FORMS.iter().any(|(name, _)| *name == verb) {
        let names: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
        return to.wrong(format!("unknown operation `{verb}`; there are: {}", names.join(", ")));
    }
    match (verb, words.len()) {
        ("load" | "flush", 2) => {
            let [at] = numbers(to, words)?;
            if verb == "load" { to.load(at, 8) } else { to.flush(at, 1) }
        }
        ("load" | "flush", _) => {
            let [at, bytes] = numbers(to, words)?;
            if verb == "load" { to.load(at, bytes) } else { to.flush(at, bytes) }
        }
        ("store", 3) if words[2] == "?" => to.store_new(number(to, words[1])?, 8),
        ("store", 4) if words[2] == "?" => {
            to.store_new(number(to, words[1])?, number(to, words[3])?)
        }
        ("store", 4) => {
            let [at, value, bytes] = numbers(to, words)?;
            let bytes = to.within("the number of bytes", bytes, 1, 8)? as usize;
            if bytes < 8 && value >> (8 * bytes) != 0 {
                return to.does_not_fit(words[2], bytes);
            }
            to.store(at, &value.to_le_bytes()[..bytes])
        }
        ("store", _) => {
            let [at, value] = numbers(to, words)?;
            to.store(at, &value.to_le_bytes())
        }
        ("bytes", 3) => {
            let at = number(to, words[1])?;
            let bytes = hex_bytes(to, words[2])?;
            to.store(at, &bytes)
        }
        ("ntstore", _) => {
            let [at, value] = numbers(to, words)?;
            to.store_past_caches(at, value)
        }
        ("mark", 2..) => to.mark(&words[1..].join(" ")),
        ("thread" | "work" | "lock" | "unlock", _) => {
            let [number] = numbers(to, words)?;
            match verb {
                "thread" => to.thread(number),
                "work" => to.work(number),
                "lock" => to.lock(number),
                _ => to.unlock(number),
            }
        }
        ("measured" | "interleaved", 1) => match verb {
            "measured" => to.measure(),
            _ => to.interleave(),
        },
        ("order" | "fence" | "begin" | "commit" | "abort", 1) => match verb {
            "order" => to.fence(verb, Op::Order),
            "fence" => to.fence(verb, Op::Durable),
            "begin" => to.begin(),
            "commit" => to.end(verb, Op::Commit),
            _ => to.end(verb, Op::Abort),
        },
        _ => malformed(to, verb),
    }
}

fn malformed<T>(to: &Recorder<'_>, verb: &str) -> Step<T> {
    let form = FORMS.iter().find(|(name, _)| *name == verb).map_or("", |(_, form)| form);
    to.wrong(format!("`{verb}` must be written as `{form}`"))
}

/// The operands of an operation, which are so many numbers.
fn numbers<const N: usize>(to: &Recorder<'_>, words: &[&str]) -> Step<[u64; N]> {
    if words.len() != N + 1 {
        return malformed(to, words[0]);
    }
    let mut numbers = [0; N];
    for (place, word) in numbers.iter_mut().zip(&words[1..]) {
        *place = number(to, word)?;
    }
    Ok(numbers)
}

/// A number, decimal or, behind `0x`, hexadecimal.
fn number(to: &Recorder<'_>, word: &str) -> Step<u64> {
    let read = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    };
    match read {
        Ok(number) => Ok(number),
        Err(_) => to.wrong(format!("`{word}` is not a number of 64 bits, such as 4096 or 0x1000")),
    }
}

/// Bytes in the order of their addresses, two hexadecimal digits each.
fn hex_bytes(to: &Recorder<'_>, word: &str) -> Step<Vec<u8>> {
    let digits: Option<Vec<u32>> = word.chars().map(|digit| digit.to_digit(16)).collect();
    match digits {
        Some(digits) if digits.len().is_multiple_of(2) => {
            Ok(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
        }
        _ => to.wrong(format!("`{word}` must be bytes of two hexadecimal digits each")),
    }
}
