//! A program of the user's that checks what power failures leave of a trace: it is asked about the
//! images that the hardware allows, is told how far the traced program had come, and what it does
//! not accept is found.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::request;
use lab::Control;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A record of two lines, the flag that says that it is valid, and a program that then says so.
pub const GOOD: &str = "\
    region 0x10000 4096
    measured
    store 0x10080 7
    store 0x100c0 8
    flush 0x10080
    flush 0x100c0
    fence
    store 0x10000 1
    flush 0x10000
    fence
    mark it is written";

/// If the flag is set the record is whole, and the flag is set when the program has said that the
/// record is written.
pub const VERIFY: &str = r#"
    word() { od -An -v -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }
    flag=$(word "$1" 0)
    if [ "$flag" = 1 ] && [ "$(word "$1" 128) $(word "$1" 192)" != "7 8" ]; then
        echo "valid, and not whole"
        exit 1
    fi
    if [ "$INDELIBLE_MARK" = "it is written" ] && [ "$flag" != 1 ]; then
        echo "said to be written"
        exit 1
    fi
    [ "$flag" = 0 ] || [ "$flag" = 1 ]"#;

/// A checker in a folder of its own.
pub struct Bench {
    folder: TempDir,
}

impl Bench {
    pub fn new(script: &str) -> Bench {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("verify.sh"), script).expect("a script");
        Bench { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub fn ask(&self, line: &str, trace: &str) -> Result<Value, lab::InputError> {
        let mut request = request(line);
        request["script"] = json!(["mine.trace", trace]);
        if request.get("check").is_none_or(Value::is_null) {
            request["check"] = format!("sh '{}'", self.path("verify.sh")).into();
        }
        let answer = lab::crash(&request.to_string(), &Control::default())?;
        Ok(serde_json::from_str(&answer).expect("an answer is JSON"))
    }

    pub fn answer(&self, line: &str, trace: &str) -> Value {
        self.ask(line, trace).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// What is wrong with a trace on a design.
    pub fn texts(&self, line: &str, trace: &str) -> Vec<String> {
        let found = self.answer(line, trace);
        assert_eq!(found["checked"], true, "{found}");
        let violations = found["violations"].as_array().expect("a list");
        violations.iter().map(|row| row["text"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub fn refusal(&self, line: &str, trace: &str) -> String {
        self.ask(line, trace).expect_err("it is refused").to_string()
    }
}

/// The good trace without its line of that number, from 1 on.
pub fn without(number: usize) -> String {
    let lines = GOOD.lines().zip(1..).filter(|(_, at)| *at != number);
    lines.map(|(line, _)| line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_program_that_persists_what_it_says_is_right_on_every_ordering_hardware() {
    let bench = Bench::new(VERIFY);
    for design in ["undo@x86", "redo@x86", "undo@hops", "undo@bbb", "undo@eadr"] {
        for machine in ["tiny", "silo"] {
            let line = format!("{design} replay machine={machine}");
            assert_eq!(bench.texts(&line, GOOD), [""; 0], "{line}");
        }
    }
    // It is wrong where flushes and fences do nothing.
    assert_ne!(bench.texts("undo@ideal replay", GOOD), [""; 0]);
}

#[test]
fn where_flushes_and_fences_do_nothing_a_note_says_so() {
    let bench = Bench::new(VERIFY);
    let told = |line: &str| {
        let found = bench.answer(&format!("{line} points=1 check=/bin/true"), GOOD);
        let notes = found["notes"].as_array().expect("a list").clone();
        let mut notes = notes.iter().filter_map(Value::as_str);
        notes.find(|note| note.contains("flushes and fences do nothing")).map(str::to_owned)
    };
    for design in ["silo", "lad", "kiln", "loc-wal", "h-wal", "loc-kiln", "base", "undo-log"] {
        let note = told(&format!("{design} replay")).expect("a note");
        assert!(note.contains("only transactions of this program count"), "{note}");
    }
    for design in ["native", "undo@ideal"] {
        let note = told(&format!("{design} replay")).expect("a note");
        assert!(note.contains("it promises nothing"), "{note}");
    }
    for design in ["undo@x86", "undo@hops", "undo@bbb", "undo@eadr", "ssp", "shadow-paging"] {
        assert_eq!(told(&format!("{design} replay")), None, "{design}");
    }
    assert_eq!(told("silo replay controller.domain=eadr"), None, "caches survive");
}

#[test]
fn each_flush_and_fence_that_is_left_out_is_found_where_the_hardware_needs_it() {
    let bench = Bench::new(VERIFY);
    let cases = [
        (5, "undo@x86", "valid, and not whole"),
        (6, "undo@x86", "valid, and not whole"),
        (7, "undo@x86", "valid, and not whole"),
        (7, "undo@hops", "valid, and not whole"),
        (9, "undo@x86", "said to be written"),
        (10, "undo@x86", "said to be written"),
        (10, "undo@hops", "said to be written"),
    ];
    for (line, design, expect) in cases {
        let texts = bench.texts(&format!("{design} replay"), &without(line));
        assert!(texts.iter().any(|text| text.contains(expect)), "{line} {design}: {texts:?}");
    }
    // Persist buffers need no flushes, and where caches survive there is nothing to order.
    for (line, design) in [(5, "undo@hops"), (9, "undo@hops"), (7, "undo@eadr"), (10, "undo@bbb")] {
        assert_eq!(
            bench.texts(&format!("{design} replay"), &without(line)),
            [""; 0],
            "{line} {design}"
        );
    }
}

/// The rules of the hardware, too: a campaign with one switched off is wrong.
#[test]
fn a_checker_catches_hardware_that_breaks_its_rules() {
    let bench = Bench::new(VERIFY);
    for rule in ["flush_writes_back", "fence_waits"] {
        let texts = bench.texts(&format!("undo@x86 replay without={rule}"), GOOD);
        assert_ne!(texts, [""; 0], "{rule}");
    }
}

#[test]
fn what_is_there_and_what_is_not_is_told_and_the_image_kept() {
    let bench = Bench::new(VERIFY);
    let images = bench.path("images");
    let found = bench.answer(&format!("undo@x86 replay images={images}"), &without(6));
    let first = &found["violations"][0];
    assert_eq!(
        first["text"],
        "the checker ended with exit code 1: valid, and not whole; memory has the store of line 7, \
         and not that of line 4, never flushed"
    );
    assert_eq!(first["files"].as_array().map(Vec::len), Some(1), "a file for each region");
    assert_eq!(first["marks"], json!([""]), "the thread has said nothing yet");
    let image = fs::read(first["files"][0].as_str().expect("a name")).expect("an image");
    assert_eq!((image.len(), image[0], image[128], image[192]), (4096, 1, 7, 0));
    // Images that an earlier campaign left are removed, and files that no campaign wrote stay.
    let files = ["image-9999", "image-9999.1", "image-mine"].map(|name| format!("{images}/{name}"));
    for file in &files {
        std::fs::write(file, "").expect("the folder is there");
    }
    let again = bench.answer(&format!("undo@x86 replay images={images}"), &without(6));
    let left = files.each_ref().map(|file| std::fs::exists(file).expect("the folder is there"));
    assert_eq!(left, [false, false, true]);
    assert_eq!(again["violations"], found["violations"], "the same request, the same answer");
    let unkept = bench.answer("undo@x86 replay", &without(6));
    assert_eq!(unkept["violations"][0]["files"], json!([]));
}

#[test]
fn a_checker_has_a_file_for_each_region_and_the_marks_of_each_thread() {
    let trace = "
        region 0x10000 64
        region 0x20040 128
        store 0x20080 5
        measured
        thread 0
            store 0x10000 3
            flush 0x10000
            fence
            mark first
        thread 1
            store 0x200b8 4
            flush 0x200b8
            fence
            mark second";
    let bench = Bench::new(
        r#"
        word() { od -An -v -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }
        [ $# = 2 ] && [ "$(wc -c < "$1") $(wc -c < "$2")" = "64 128" ] || exit 3
        [ "$(word "$2" 64)" = 5 ] || exit 4
        [ -z "$INDELIBLE_MARK_0" ] || [ "$INDELIBLE_MARK_0 $(word "$1" 0)" = "first 3" ] || exit 5
        [ -z "$INDELIBLE_MARK_1" ] || [ "$INDELIBLE_MARK_1 $(word "$2" 120)" = "second 4" ] || \
         exit 6
        [ "$INDELIBLE_MARK" = "$INDELIBLE_MARK_0" ] || exit 7
        echo "$INDELIBLE_MARK_0.$INDELIBLE_MARK_1" >> "$(dirname "$0")/seen""#,
    );
    let found = bench.answer("undo@x86 replay", trace);
    assert_eq!(
        (&found["violations"], &found["cores"], &found["txs"]),
        (&json!([]), &json!(2), &json!(1))
    );
    let seen = fs::read_to_string(Path::new(&bench.path("seen"))).expect("it ran");
    for marks in [".", "first.second"] {
        assert!(seen.lines().any(|line| line == marks), "{marks}: {seen}");
    }
    // Garbage was shown to it, too, and was not accepted.
    assert_eq!(seen.lines().count() as u64, found["checker"]["images"], "{found}");
    let late = trace.replace("            flush 0x200b8\n", "");
    let texts = bench.texts("undo@x86 replay", &late);
    assert!(texts.iter().any(|text| text.contains("exit code 6")), "{texts:?}");
}

#[test]
fn transactions_and_a_checker_go_together() {
    let trace = "
        region 0x10000 4096
        measured
        begin
        store 0x10080 7
        store 0x100c0 8
        store 0x10000 1
        commit
        mark it is written
        begin
        store 0x10000 0
        abort";
    let bench = Bench::new(VERIFY);
    for design in ["silo", "undo@x86", "kiln", "ssp"] {
        assert_eq!(bench.texts(&format!("{design} replay"), trace), [""; 0], "{design}");
    }
    // The trace is done once: it has two transactions, and further ones do nothing.
    assert_eq!(bench.answer("silo replay", trace)["txs"], 2);
    let more = bench.answer("silo replay txs=4", trace);
    assert_eq!((&more["txs"], &more["violations"]), (&json!(2), &json!([])));
    let never = trace.replace("store 0x100c0 8\n", "");
    assert!(bench.refusal("silo replay", &never).contains("valid, and not whole"));
}

#[test]
fn a_store_log_has_its_markers_as_marks() {
    let trace = "START|REGISTER_FILE;/mnt/pool;0x4000000;0x1000;0x0|STORE;0x4000040;0x1;0x8\
                 |FLUSH;0x4000040;0x40|FENCE|measured.BEGIN|STORE;0x4000000;0x2;0x8|FENCE\
                 |saved.END|STOP";
    let bench = Bench::new(
        r#"
        word() { od -An -v -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }
        [ "$(word "$1" 64)" = 1 ] || exit 3
        [ "$INDELIBLE_MARK" != saved.END ] || [ "$(word "$1" 0)" = 2 ] || exit 4"#,
    );
    let texts = bench.texts("undo@x86 replay", trace);
    assert!(texts.iter().all(|text| text.contains("exit code 4")), "{texts:?}");
    let lost = "memory does not have the store of operation 6, never flushed";
    assert!(texts[0].ends_with(lost), "{texts:?}");
    // Where stores come from is told, if the log says it.
    let stacks = trace.replace(
        "STORE;0x4000000;0x2;0x8",
        "STORE;0x4000080;0x1;0x8;0x401: fill (pool.c:7);0x402: main (pool.c:9);0x403: start\
         |STORE;0x4000000;0x2;0x8;0x404: publish (pool.c:8)|FLUSH;0x4000000;0x40",
    );
    let texts = Bench::new(r#"[ "$(od -An -v -tu8 -j 128 -N 8 "$1" | tr -d ' ')" = 1 ]"#)
        .texts("undo@x86 replay", &stacks);
    let expect = "memory has the store of operation 7 (publish (pool.c:8)), and not that of \
                  operation 6 (fill (pool.c:7) < main (pool.c:9)), never flushed";
    assert!(texts.iter().any(|text| text.ends_with(expect)), "{texts:?}");
    let flushed = trace.replace("0x2;0x8|", "0x2;0x8|FLUSH;0x4000000;0x40|");
    assert_eq!(bench.texts("undo@x86 replay", &flushed), [""; 0]);
}

/// Returns what was left out, at which place, how many times it occurs, and whether that was
/// noticed.
fn left_out(found: &Value) -> Vec<(u64, String, u64, Option<bool>)> {
    let rows = found["left_out"].as_array().expect("a list");
    let row = |row: &Value| {
        let operation = row["operation"].as_str().expect("a word").to_owned();
        let number = |name: &str| row[name].as_u64().expect("a number");
        (number("place"), operation, number("times"), row["noticed"].as_bool())
    };
    rows.iter().map(row).collect()
}

#[test]
fn a_flush_or_a_fence_that_is_left_out_is_noticed_if_it_is_needed() {
    let bench = Bench::new(VERIFY);
    let asked =
        |design: &str| left_out(&bench.answer(&format!("{design} replay leave_out=all"), GOOD));
    let row = |place, operation: &str, noticed| (place, operation.to_owned(), 1, Some(noticed));
    let rows = |needed: [bool; 5]| {
        let [first, second, third, fourth, fifth] = needed;
        vec![
            row(5, "flush", first),
            row(6, "flush", second),
            row(7, "fence", third),
            row(9, "flush", fourth),
            row(10, "fence", fifth),
        ]
    };
    assert_eq!(asked("undo@x86"), rows([true; 5]));
    // Persist buffers need fences alone, and caches that survive need nothing.
    assert_eq!(asked("undo@hops"), rows([false, false, true, false, true]));
    assert_eq!(asked("undo@eadr"), rows([false; 5]));
    // What comes from one place in the program is one row.
    let marked = GOOD.replace("flush 0x10080", "flush 0x10080 # c:3");
    let marked = marked.replace("flush 0x100c0", "flush 0x100c0 # c:3");
    let found = bench.answer("undo@x86 replay leave_out=all", &marked);
    assert_eq!(left_out(&found)[0], (5, "flush".to_owned(), 2, Some(true)), "{found}");
    assert_eq!(
        (&found["left_out"][0]["source"], &found["violations"]),
        (&json!("c:3"), &json!([]))
    );
    let few = left_out(&bench.answer("undo@x86 replay leave_out=2", GOOD));
    assert_eq!(few.len(), 2, "{few:?}");
    // A row says what repeats it.
    let event = &found["left_out"][0]["event"];
    let again = bench.answer("undo@x86 replay workload.leave_out=5", &marked);
    assert_eq!(&again["violations"][0]["event"], event, "{again}");
    assert_eq!(again["violations"][0]["text"], found["left_out"][0]["text"]);
}

#[test]
fn of_a_program_that_is_wrong_nothing_is_left_out() {
    let bench = Bench::new(VERIFY);
    let found = bench.answer("undo@x86 replay leave_out=all", &without(5));
    assert_ne!(found["violations"], json!([]));
    assert_eq!(found["left_out"], json!([]));
}

/// The search for each rule is the same as without `leave_out`.
#[test]
fn mutants_are_caught_also_where_flushes_are_left_out() {
    let bench = Bench::new(VERIFY);
    let found = bench.answer("undo@x86 replay mutants=true leave_out=1", GOOD);
    let mutants = found["mutants"].as_array().expect("a list");
    assert!(mutants.len() > 5 && mutants.iter().all(|row| row["caught"] == true), "{found}");
}

/// Once the user wants an end, nothing is counted that the checker was not asked about.
#[test]
fn an_interrupted_campaign_counts_what_the_checker_was_asked() {
    let bench = Bench::new(
        r#"
        echo >> "$0.runs"
        [ "$(od -An -v -tu8 -N 8 "$1" | tr -d ' ')" -lt 9999 ]"#,
    );
    let stores: String = (1..500).map(|value| format!("store 0x10000 {value}\n")).collect();
    let mut request = request("undo@x86 replay");
    request["script"] = json!(["mine.trace", format!("region 0x10000 64\nmeasured\n{stores}")]);
    request["check"] = format!("sh '{}'", bench.path("verify.sh")).into();
    let control = Control::default();
    let runs = || fs::read_to_string(bench.path("verify.sh.runs")).map_or(0, |text| text.len());
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| {
            while runs() < 20 {
                std::thread::sleep(Duration::from_millis(1));
            }
            control.cancel();
        });
        lab::crash(&request.to_string(), &control)
    });
    let found: Value = serde_json::from_str(&answer.expect("an answer")).expect("JSON");
    let images = found["checker"]["images"].as_u64().expect("a number") as usize;
    assert_eq!(found["cancelled"], true);
    // The checker was asked about what is left in the end, too, and about garbage, and what it was
    // asked about last may have no answer.
    assert!((images + 2..=images + 3).contains(&runs()), "{} for {images}", runs());
    assert!(found["points"].as_u64() < found["crash_points"].as_u64(), "{found}");
}

/// Nothing is said of images that the checker was not run on.
#[test]
fn a_checker_that_cannot_be_run_in_the_middle_of_a_campaign_ends_it() {
    let bench = Bench::new(
        r#"
        echo >> "$0.runs"
        [ "$(wc -l < "$0.runs")" -lt 5 ] || exec ./nothing
        [ "$(od -An -v -tu8 -j 128 -N 8 "$1" | tr -d ' ')" = 7 ] || exit 0"#,
    );
    let text = bench.refusal("undo@x86 replay", GOOD);
    let expect =
        format!("--check sh '{}': the checker ended with exit code 127: ", bench.path("verify.sh"));
    assert!(text.starts_with(&expect), "{text}");
}

/// The workload is made more than once, and a checker is shown nothing twice.
#[test]
fn nothing_is_shown_to_a_checker_twice() {
    let bench = Bench::new(&format!("echo >> \"$0.runs\"\n{VERIFY}"));
    let found = bench.answer("undo@x86 replay", GOOD);
    let images = found["checker"]["images"].as_u64().expect("a number");
    let runs = fs::read_to_string(bench.path("verify.sh.runs")).expect("it ran").lines().count();
    // What is left without a power failure is one of the images, and garbage is not.
    assert_eq!(runs as u64, images + 1);
}

#[test]
fn what_does_not_go_with_a_checker_is_refused() {
    let bench = Bench::new(VERIFY);
    let cases = [
        (
            "undo@x86 replay cores=2",
            "--check works with one copy of the trace's memory, and 2 cores have 2; use --cores 1",
        ),
        ("undo@x86 replay lives=2", "--check runs a program only once; leave --lives at 1"),
        (
            "undo@x86 replay check=./nothing",
            "--check ./nothing: the checker ended with exit code 127: ",
        ),
    ];
    for (line, expect) in cases {
        let text = bench.refusal(line, GOOD);
        assert!(text.starts_with(expect), "{line}: {text}");
    }
    let refusal = |request: Value| {
        lab::crash(&request.to_string(), &Control::default())
            .expect_err("it is refused")
            .to_string()
    };
    assert_eq!(
        refusal(json!({ "design": "silo", "workload": "hash", "check": "true" })),
        "--check works only on a trace; give --replay FILE, or leave it out for hash, which the \
         oracle checks"
    );
    assert_eq!(
        refusal(json!({ "design": "silo", "workload": "replay", "check": " " })),
        "--check must name a program; it is an empty string"
    );
    assert_eq!(
        refusal(json!({ "design": "silo", "workload": "replay", "images": "here" })),
        "--images keeps what --check rejects; give both"
    );
    assert_eq!(
        refusal(json!({
            "design": "silo", "workload": "replay", "check": "true", "images": "/dev/null"
        })),
        "--images /dev/null: is not a folder; name one"
    );
    let twice = json!({
        "design": "silo", "workload": "replay", "check": "true", "leave_out": "all",
        "settings": { "workload.leave_out": "5" }
    });
    assert_eq!(
        refusal(twice),
        "--leave-out leaves out one after the other, and workload.leave_out is set; keep one"
    );
    assert_eq!(
        refusal(json!({ "design": "silo", "workload": "replay", "leave_out": "all" })),
        "--leave-out tests whether --check notices; give both"
    );
    for (asked, expect) in
        [(json!(0), "0 flushes and fences show nothing"), (json!("few"), "`few`")]
    {
        let text = refusal(
            json!({ "design": "silo", "workload": "replay", "check": "true", "leave_out": asked }),
        );
        assert!(text.starts_with(expect) && text.ends_with("give a number or `all`"), "{text}");
    }
}

/// Returns what images held in two words, as a checker has seen them.
fn pairs(trace: &str) -> Vec<String> {
    let bench = Bench::new(
        r#"
        word() { od -An -v -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }
        case "$(word "$1" 0)" in 0 | 1 | 2) ;; *) exit 1 ;; esac
        echo "$(word "$1" 0) $(word "$1" 64)" >> "$(dirname "$0")/seen""#,
    );
    assert_eq!(bench.texts("undo@x86 replay", trace), [""; 0]);
    let seen = fs::read_to_string(bench.path("seen")).expect("it ran");
    let mut pairs: Vec<String> = seen.lines().map(str::to_owned).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// A dirty line may have left the caches with what it held before it was stored to again.
#[test]
fn a_line_may_be_there_as_it_was_before_until_it_is_durable() {
    let trace = "
        region 0x10000 128
        measured
        store 0x10000 1
        store 0x10000 2
        flush 0x10000
        fence
        store 0x10040 1";
    assert_eq!(pairs(trace), ["0 0", "1 0", "2 0", "2 1"]);
    // However long ago: without a fence a flush promises nothing.
    let unordered = trace.replace("fence", "work 100000");
    assert_eq!(pairs(&unordered), ["0 0", "0 1", "1 0", "1 1", "2 0", "2 1"]);
    let locked = trace.replace("fence", "lock 0\nunlock 0");
    assert_eq!(pairs(&locked), ["0 0", "1 0", "2 0", "2 1"]);
    let early = trace.replace("flush 0x10000", "").replace("fence", "fence\nflush 0x10000");
    assert_eq!(pairs(&early), ["0 0", "0 1", "1 0", "1 1", "2 0", "2 1"]);
    let unflushed = trace.replace("flush 0x10000", "");
    assert_eq!(pairs(&unflushed), ["0 0", "0 1", "1 0", "1 1", "2 0", "2 1"]);
    // Past the caches, too: a write-combining buffer may be sent at any time.
    let past = trace.replace("store 0x10000", "ntstore 0x10000").replace("flush 0x10000", "");
    assert_eq!(pairs(&past), ["0 0", "1 0", "2 0", "2 1"]);
}

/// However often a line is stored to: what was flushed before is there behind the fence.
#[test]
fn what_was_flushed_is_durable_behind_the_fence_however_much_came_after_it() {
    let bench = Bench::new(
        r#"
        word() { od -An -v -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }
        [ "$(word "$1" 0)" -le 1 ] || exit 1
        [ -z "$INDELIBLE_MARK" ] || [ "$(word "$1" 0)" = 1 ] || exit 2"#,
    );
    let trace = |flush: &str, values: std::ops::Range<u64>| {
        let stores: String = values.map(|value| format!("store 0x10008 {value}\n")).collect();
        let after = "store 0x10040 1\n".repeat(300);
        format!(
            "region 0x10000 128\nmeasured\nstore 0x10000 1\n{flush}{stores}fence\nmark \
             done\n{after}"
        )
    };
    let flushed = trace("flush 0x10000\n", 1..1500);
    assert_eq!(bench.texts("undo@x86 replay points=40", &flushed), [""; 0]);
    let late = trace("", 1..20);
    assert!(bench.texts("undo@x86 replay", &late)[0].contains("exit code 2"));
}

/// With more lines than all combinations can be tried for, each line is missing alone in one image,
/// and there alone in another.
#[test]
fn each_line_of_many_may_be_the_one_that_is_missing() {
    let lines = || (0..12).map(|line| 0x10000 + 64 * line);
    let stores: String = lines().map(|at| format!("store {at} 1\n")).collect();
    let flushes: String = lines().map(|at| format!("flush {at}\n")).collect();
    let trace = format!("region 0x10000 768\nmeasured\n{stores}{flushes}fence\n");
    let bench = Bench::new(
        r#"
        word() { od -An -v -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }
        seen=
        for line in 0 1 2 3 4 5 6 7 8 9 10 11; do
            seen="$seen$(word "$1" $((64 * line)))"
        done
        case "$seen" in *[!01]*) exit 1 ;; esac
        echo "$seen" >> "$(dirname "$0")/seen""#,
    );
    assert_eq!(bench.texts("undo@x86 replay", &trace), [""; 0]);
    let seen = fs::read_to_string(bench.path("seen")).expect("it ran");
    for line in 0..12 {
        let mut missing = ["1"; 12];
        missing[line] = "0";
        let alone: String = missing.map(|bit| if bit == "0" { "1" } else { "0" }).concat();
        for image in [missing.concat(), alone] {
            assert!(seen.lines().any(|line| line == image), "{image}: {seen}");
        }
    }
}
