//! What is told when the user's program that checks images is itself wrong.

use std::thread;
use std::time::{Duration, Instant};

use crate::check::{Bench, GOOD, VERIFY, without};

#[test]
fn a_checker_that_hangs_or_is_killed_is_told_of() {
    let cases = [
        ("sleep 60 & sleep 60", "did not end within 10 s"),
        // What is said without end is not kept without end.
        (
            "yes & yes >&2",
            "did not end within 10 s: y (it said more than the last 64 KiB, which are kept)",
        ),
        ("kill -SEGV $PPID", "was ended by signal 11"),
        ("echo one; echo; echo two >&2; exit 2", "ended with exit code 2: two"),
    ];
    // Two of them take the ten seconds.
    thread::scope(|scope| {
        for (script, expect) in cases {
            scope.spawn(move || {
                let text = Bench::new(script).refusal("undo@x86 replay", GOOD);
                let end =
                    format!("the checker {expect}, on what the trace leaves when no power fails");
                assert!(text.ends_with(&end), "{text}");
            });
        }
    });
}

#[test]
fn a_checker_that_says_much_or_leaves_somebody_behind_is_not_waited_for() {
    let much = "(it said more than the last 64 KiB, which are kept)";
    for (script, told) in [
        ("yes | head -c 65534; exit 1", "exit code 1: y".to_owned()),
        ("yes | head -c 65538; exit 1", format!("exit code 1: y {much}")),
        (
            "yes | head -c 9000000 >&2; echo 'and then'; exit 3",
            format!("exit code 3: and then {much}"),
        ),
        ("head -c 99999 /dev/zero; exit 1", format!("exit code 1: {}{much}", " ".repeat(201))),
        // The process has left the group that is ended with the checker, and holds its output.
        ("setsid sleep 5 & echo no; exit 1", "exit code 1: no".to_owned()),
    ] {
        let start = Instant::now();
        let text = Bench::new(script).refusal("undo@x86 replay", GOOD);
        let end = format!("{told}, on what the trace leaves when no power fails");
        assert!(text.ends_with(&end), "{script}: {text}");
        assert!(start.elapsed() < Duration::from_secs(4), "{script}");
    }
}

/// Only a checker that refuses nothing is suspected of not looking: this one takes garbage for a
/// flag that it does not know. One that takes garbage for memory of which nothing was said yet is
/// asked about memory of which all was said.
#[test]
fn a_checker_that_accepts_garbage_looks_if_it_refuses_anything_else() {
    let known = r#"[ "$flag" = 0 ] || [ "$flag" = 1 ]"#;
    let lenient = VERIFY.replace(known, "true").replace(r#""$flag" != 1"#, r#""$flag" = 0"#);
    let fresh = VERIFY.replace(known, &format!(r#"{known} || [ -z "$INDELIBLE_MARK" ]"#));
    let (good, bad) = (GOOD.to_owned(), without(5));
    for (script, trace, left_out, accepts_all) in [
        ("exit 0", &good, "", true),
        ("exit 0", &bad, "leave_out=all", true),
        (VERIFY, &good, "", false),
        (&fresh, &good, "", false),
        (&lenient, &good, "", true),
        (&lenient, &bad, "", false),
        // What it refuses is a trace without a flush.
        (&lenient, &good, "leave_out=all", false),
    ] {
        let found = Bench::new(script).answer(&format!("undo@x86 replay {left_out}"), trace);
        assert_eq!(found["checker"]["accepts_all"], accepts_all, "{script}, {left_out}: {found}");
    }
}
