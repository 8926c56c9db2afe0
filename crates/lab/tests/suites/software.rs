//! Software logs: what they cost beside their accesses, and what they flush.

use crate::programs::{at, on, store};
use model::meters::Class;

/// Each store of a transaction to a word looks the word, or its line, up, and so does each load
/// behind its first store if the stores are kept apart. An entry has its own instructions: that of
/// a line, or that of a word.
#[test]
fn a_software_log_is_charged_for_its_instructions() {
    let cycles = |design: &str, parameter: &str, instructions: u64| {
        let line = format!(
            "{design} scribble cores=1 machine=silo core.model=inorder core.width=1 \
             design.{parameter}={instructions}"
        );
        let outcome = on(&line, |pm| {
            pm.begin()?;
            pm.load(at(0, 0));
            pm.store(at(0, 0), 1);
            pm.store(at(0, 1), 1);
            pm.store(at(1, 0), 1);
            pm.load(at(2, 0));
            pm.commit();
            Ok(())
        });
        outcome.report.cycles
    };
    for (design, parameter, times) in [
        ("undo@ideal", "lookup", 3),
        ("undo@ideal", "record", 2),
        ("redo@ideal", "lookup", 4),
        ("count@ideal", "lookup", 4),
        ("count@ideal", "record", 3),
        ("s-wal", "lookup", 4),
    ] {
        let more = cycles(design, parameter, 1_000) - cycles(design, parameter, 0);
        // Some of it passes while a line is on its way.
        let range = 1_000 * times - 400..=1_000 * times;
        assert!(range.contains(&more), "{design}: {more} cycles for {parameter}");
    }
}

/// A log flushes its entries, the lines of data and its marks, each of these lines once. Two
/// entries of a redo log are in a line.
#[test]
fn a_software_log_flushes_each_line_once() {
    for (design, one_line, three_words) in [
        ("undo@x86", 2 + 1 + 1, 2 + 1 + 1),
        ("redo@x86", 1 + 1 + 1 + 1, 2 + 1 + 1 + 1),
        ("count@x86", 1 + 1 + 1, 2 + 1 + 1),
        ("s-wal", 2 + 1 + 1 + 1, 2 + 1 + 1 + 1),
    ] {
        let flushes = |words: u64| {
            let line = format!("{design} scribble cores=1");
            on(&line, move |pm| store(pm, &[words], 1)).report.accesses.flushes
        };
        assert_eq!([2, 3].map(flushes), [one_line, three_words], "{design}");
    }
}

/// What a log writes counts as what it is: log, a mark that commits, data, and what is known of the
/// log itself.
#[test]
fn what_a_software_log_writes_is_counted_as_what_it_is() {
    for (design, lines) in [
        ("undo@x86", [2, 1, 1, 0]),
        ("redo@x86", [1, 1, 1, 1]),
        ("count@x86", [1, 0, 1, 1]),
        ("s-wal", [1, 1, 1, 2]),
    ] {
        let outcome = on(&format!("{design} scribble cores=1"), |pm| store(pm, &[1], 1));
        let bytes = outcome.report.meters.wpq_bytes;
        let found = [Class::Log, Class::Commit, Class::Data, Class::Metadata]
            .map(|class| bytes[class as usize] / 64);
        assert_eq!(found, lines, "{design}");
    }
}
