//! Stores past the caches, and what makes them durable: the program's own checker finds what a
//! write-combining buffer took with it.

use crate::check::Bench;

/// The value that a thread says is durable has to be there: `mark VALUE`.
const VERIFY: &str = r#"
    word=$(od -An -v -tu8 -N 8 "$1" | tr -d ' ')
    for mark in "$INDELIBLE_MARK_0" "$INDELIBLE_MARK_1"; do
        case "$mark" in
            ""|"$word") ;;
            *) echo "$mark was durable, and there is $word"; exit 1 ;;
        esac
    done"#;

/// Returns what is wrong with a program of one thread.
fn texts(line: &str, program: &str) -> Vec<String> {
    let trace = format!("region 0x10000 4096\nmeasured\n{program}\nmark 7\nwork 50");
    Bench::new(VERIFY).texts(line, &trace)
}

#[test]
fn a_store_past_the_caches_is_durable_behind_a_fence_also_where_caches_survive() {
    let store = "ntstore 0x10000 7";
    for design in ["undo@x86", "undo@eadr"] {
        let line = format!("{design} replay");
        let found = texts(&line, store);
        assert!(found[0].contains("7 was durable, and there is 0"), "{design}: {found:?}");
        assert_eq!(texts(&line, &format!("{store}\nfence")), [""; 0], "{design}");
    }
    // The buffers of BBB bring the store to memory, and survive.
    assert_eq!(texts("undo@bbb replay", store), [""; 0]);
    assert_eq!(texts("undo@hops replay", &format!("{store}\nfence")), [""; 0]);
    // What goes through the caches needs no fence where they survive.
    assert_eq!(texts("undo@eadr replay", "store 0x10000 7"), [""; 0]);
}

/// A line that is full leaves its buffer at once, and so does one that another needs: when it
/// arrives is a matter of timing, and the promise is of a fence.
#[test]
fn what_has_left_its_buffer_for_long_is_not_durable_before_a_fence() {
    let full: String =
        (0..8).map(|word| format!("ntstore {:#x} 7\n", 0x10000 + 8 * word)).collect();
    let others: String =
        (1..32).map(|line| format!("ntstore {:#x} 7\n", 0x10000 + 64 * line)).collect();
    let displaced = format!("ntstore 0x10000 7\n{others}");
    for stores in [full, displaced] {
        let late = format!("{stores}work 100000");
        for line in
            ["undo@x86 replay", "undo@eadr replay", "undo@x86 replay controller.domain=eadr"]
        {
            let found = texts(line, &late);
            assert!(found[0].contains("7 was durable, and there is 0"), "{line}: {found:?}");
            assert_eq!(texts(line, &format!("{late}\nfence")), [""; 0], "{line}");
        }
    }
}

/// A store through the caches takes what is in a buffer along.
#[test]
fn where_caches_survive_a_line_is_durable_when_it_is_stored_to_again() {
    let line = "undo@eadr replay";
    assert_eq!(texts(line, "ntstore 0x10000 1\nstore 0x10000 7"), [""; 0]);
    assert_eq!(texts(line, "ntstore 0x10000 7\nstore 0x10008 1"), [""; 0]);
    let found = texts(line, "store 0x10008 1\nntstore 0x10000 7");
    assert!(found[0].contains("7 was durable, and there is 0"), "{found:?}");
}

/// A buffer may leave at any time, also before a fence and before one that was filled earlier.
#[test]
fn of_two_lines_past_the_caches_the_second_may_be_there_alone() {
    let verify = r#"
        word() { od -An -v -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }
        [ "$(word "$1" 64) $(word "$1" 0)" != "1 0" ] || { echo "it is alone"; exit 1; }"#;
    let trace = |between: &str| {
        let stores = format!("ntstore 0x10000 1\n{between}\nntstore 0x10040 1");
        format!("region 0x10000 4096\nmeasured\n{stores}\nwork 50")
    };
    let bench = Bench::new(verify);
    for design in ["undo@x86", "undo@eadr"] {
        let line = format!("{design} replay");
        let found = bench.texts(&line, &trace(""));
        assert!(found[0].contains("it is alone"), "{design}: {found:?}");
        assert_eq!(bench.texts(&line, &trace("fence")), [""; 0], "{design}");
    }
}

#[test]
fn a_locked_operation_waits_for_what_was_flushed_or_stored_past_the_caches() {
    let slow = "undo@x86 replay controller.domain=media pm.tWRITE=20us";
    for before in ["store 0x10000 7\nflush 0x10000", "ntstore 0x10000 7"] {
        for line in [slow, "undo@x86 replay", "undo@eadr replay"] {
            let found = texts(line, &format!("{before}\nlock 0\nunlock 0"));
            assert_eq!(found, [""; 0], "{line}: {before}");
        }
    }
    let told = "region 0x10000 4096\nmeasured\nstore 0x10000 7\nmark 7\nwork 50";
    let answer = Bench::new(VERIFY).answer(slow, told);
    assert_eq!(answer["violations"][0]["marks"], serde_json::json!(["7"]));
    let found = texts(slow, "store 0x10000 7\nlock 0\nunlock 0");
    assert!(found[0].contains("7 was durable"), "it was not flushed: {found:?}");
}

/// A thread overwrites what another one has not made durable, and makes that durable.
#[test]
fn an_older_store_of_another_thread_does_not_come_back() {
    for (first, second) in [
        ("store 0x10000 1", "ntstore 0x10000 7"),
        ("ntstore 0x10000 1", "store 0x10000 7\nflush 0x10000"),
        ("ntstore 0x10000 1", "ntstore 0x10000 7"),
    ] {
        let trace = format!(
            "region 0x10000 4096\ninterleaved\nmeasured\nthread 0\n{first}\nthread 1\n{second}\n\
             fence\nmark 7\nthread 0\nfence\nwork 5000"
        );
        for design in ["undo@x86", "undo@hops", "undo@eadr", "undo@bbb"] {
            let found = Bench::new(VERIFY).texts(&format!("{design} replay"), &trace);
            assert_eq!(found, [""; 0], "{design}: {first}, then {second}");
        }
    }
}

/// What is stored to second may be there alone, unless there is energy for the other line, too: one
/// line is enough if that is the first in memory.
#[test]
fn what_the_machine_has_energy_to_save_is_in_every_image() {
    let is_alone = |bytes: u32, [first, second]: [u32; 2]| {
        let verify = format!(
            r#"
            word() {{ od -An -v -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }}
            case "$(word "$1" {first}) $(word "$1" {second})" in
                "0 0"|"1 0"|"1 1") ;;
                *) echo alone; exit 1 ;;
            esac"#
        );
        let stores = [first, second].map(|place| format!("store {:#x} 1\n", 0x10000 + place));
        let trace = format!("region 0x10000 4096\nmeasured\n{}work 50", stores.concat());
        let energy = format!("controller.domain=gpf controller.flush_bytes={bytes}B");
        let found = Bench::new(&verify).texts(&format!("undo@x86 replay {energy}"), &trace);
        found.first().is_some_and(|text| text.contains("alone"))
    };
    let found = [0, 64, 128].map(|bytes| [[0, 64], [64, 0]].map(|at| is_alone(bytes, at)));
    assert_eq!(found, [[true, true], [false, true], [false, false]]);
}
