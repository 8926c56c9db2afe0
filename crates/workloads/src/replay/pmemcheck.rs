//! Store logs of pmemcheck, the Valgrind tool (`--log-stores=yes`), as PMDK's pmreorder reads them:
//!
//! ```text
//! START|REGISTER_FILE;name;address;size;offset
//! |STORE;address;value;size|FLUSH;address;size|FENCE|STOP
//! ```
//!
//! It is one line, and numbers are hexadecimal. The tool's output before and after is skipped.
//! The call stack behind a store (`--log-stores-stacktraces=yes`, frames such as
//! `;0x400CDB: insert (list.c:144)`) says where in the program it comes from. Markers,
//! `NAME.BEGIN` and `NAME.END`, are marks, but for those of two names: `tx` are a transaction's
//! begin and commit, and measuring begins with `measured.BEGIN`, if that is there; what is before
//! is then only stored.

use model::workload::Step;

use super::recording::{ACCESS_MAX, Recorder};
use super::trace::{Op, Trace};

/// The first marker of a log, and the last.
const START: &str = "START";
const STOP: &str = "STOP";

/// The marker with which measuring begins.
const MEASURED: &str = "measured.BEGIN";

/// The number of frames of a call stack that are reported.
const FRAMES_TOLD: usize = 2;

/// Whether a text is such a log.
pub fn is_store_log(text: &str) -> bool {
    behind_start(text).is_some()
}

/// The text behind the first marker of a log, with which a line begins, or with which it goes on
/// behind the tool's own `==12==`. Anywhere else the word is a program's, or of a trace of ours.
fn behind_start(text: &str) -> Option<&str> {
    text.match_indices(START).map(|(at, _)| text.split_at(at)).find_map(|(before, from)| {
        let before = before.rsplit('\n').next().unwrap_or_default().trim();
        let is_the_tools =
            before.is_empty() || (before.starts_with("==") && before.ends_with("=="));
        from.strip_prefix(START).filter(|behind| is_the_tools && behind.starts_with('|'))
    })
}

/// Whether a log ends at this part, which may be followed by other output of the tool. The name of
/// a function or of a marker does not end it.
fn is_stop(part: &str) -> bool {
    part.lines().next().and_then(|line| line.split_whitespace().last()) == Some(STOP)
}

/// Reads the log `text` of the file `name`; see [`super::text::read`] for `grain`.
///
/// # Errors
/// [`model::workload::Stop::Input`] with the operation that is wrong, counted from 1.
pub fn read(name: &str, text: &str, grain: u64) -> Step<Trace> {
    let mut recorder = Recorder::new(name, "operation", grain);
    let log = behind_start(text).expect("a store log has a start");
    if !log.split('|').map(str::trim).any(is_stop) {
        recorder.place = log.split('|').count() - 1;
        return recorder.wrong("the log ends there without `STOP`, so the rest of it is missing");
    }
    let operations = || {
        let parts = log.split('|').skip(1).map(str::trim).zip(1..);
        let parts = parts.take_while(|(part, _)| !is_stop(part));
        parts.map(|(part, place)| (part.split(';').collect::<Vec<_>>(), place))
    };
    // A file can be mapped where it was before.
    let mut known: Vec<(u64, u64)> = Vec::new();
    for (fields, place) in operations().filter(|(fields, _)| fields[0] == "REGISTER_FILE") {
        recorder.place = place;
        let [_, _, start, bytes, ..] = fields[..] else {
            return recorder.wrong("`REGISTER_FILE` must have a name, an address and a size");
        };
        let region = (hex(&recorder, start)?, hex(&recorder, bytes)?);
        if !known.contains(&region) {
            known.push(region);
            recorder.region(region.0, region.1)?;
        }
    }
    if operations().any(|(fields, _)| fields[0] == MEASURED) {
        recorder.begin_before();
    }
    for (fields, place) in operations().filter(|(fields, _)| fields[0] != "REGISTER_FILE") {
        recorder.place = place;
        perform(&mut recorder, &fields)?;
    }
    recorder.finish()
}

fn perform(to: &mut Recorder<'_>, fields: &[&str]) -> Step {
    match *fields {
        ["STORE", address, value, size, ref stack @ ..] => {
            to.comes_from(&source(stack));
            let (address, size) = (hex(to, address)?, hex(to, size)?);
            let size = to.within("the number of bytes", size, 1, ACCESS_MAX)?;
            let bytes = bytes_of(to, value, size as usize)?;
            to.store(address, &bytes)
        }
        [MEASURED] => to.measure(),
        ["FLUSH", ..] | ["FENCE"] if !to.is_measured() => Ok(()),
        [marker] if is_marker(marker) && !to.is_measured() => Ok(()),
        ["FLUSH", address, size] => {
            let (address, size) = (hex(to, address)?, hex(to, size)?);
            to.flush(address, size)
        }
        ["FENCE"] => to.fence("FENCE", Op::Durable),
        ["tx.BEGIN"] => to.begin(),
        ["tx.END"] => to.end("tx.END", Op::Commit),
        [marker] if is_marker(marker) => to.mark(marker),
        _ => to.wrong(format!(
            "`{}` is not an operation of a store log; there are REGISTER_FILE, STORE, FLUSH, \
             FENCE, and markers that end in .BEGIN or .END",
            fields.join(";")
        )),
    }
}

/// The innermost frames of a call stack, without their addresses.
fn source(stack: &[&str]) -> String {
    let place = |frame: &&str| {
        let (_, place) = frame.split_once(": ").unwrap_or(("", frame));
        place.to_owned()
    };
    let frames: Vec<String> = stack.iter().take(FRAMES_TOLD).map(place).collect();
    frames.join(" < ")
}

fn is_marker(field: &str) -> bool {
    field.ends_with(".BEGIN") || field.ends_with(".END")
}

fn hex(to: &Recorder<'_>, field: &str) -> Step<u64> {
    match u64::from_str_radix(digits(field), 16) {
        Ok(number) => Ok(number),
        Err(_) => to.wrong(format!("`{field}` is not a hexadecimal number of 64 bits")),
    }
}

fn digits(field: &str) -> &str {
    field.strip_prefix("0x").unwrap_or(field)
}

/// The bytes of a stored value, low first.
fn bytes_of(to: &Recorder<'_>, value: &str, size: usize) -> Step<Vec<u8>> {
    let digits: Option<Vec<u32>> = digits(value).chars().rev().map(|d| d.to_digit(16)).collect();
    let Some(digits) = digits.filter(|digits| !digits.is_empty()) else {
        return to.wrong(format!("`{value}` is not a hexadecimal number"));
    };
    let digit = |place: usize| digits.get(place).map_or(0, |&digit| digit as u8);
    if (2 * size..digits.len()).any(|place| digit(place) != 0) {
        return to.does_not_fit(value, size);
    }
    Ok((0..size).map(|place| digit(2 * place) | digit(2 * place + 1) << 4).collect())
}
