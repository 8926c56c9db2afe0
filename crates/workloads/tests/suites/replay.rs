//! `replay`: which operations of a trace reach memory, in which order, and traces that are refused.

use crate::common::{Bench, entry, site};
use model::contents::View;
use model::script::Script;
use model::units::{CoreId, Cycle, DRAM_BASE, LINE_BYTES, PAGE_BYTES, Word};
use model::workload::{Flush, LockId, Pm, Port, Ptr, Site, Stop};

fn scripted(cores: u8, text: &str) -> Site {
    Site { script: Some(Script::new("mine.trace", text)), ..site(cores, 1) }
}

fn bench(cores: u8, text: &str) -> Bench {
    Bench::new(entry("replay"), "", &scripted(cores, text)).expect("a trace that is right")
}

/// Returns the sentence with which a wrong trace is refused.
fn refused(settings: &str, cores: u8, text: &str) -> String {
    match Bench::new(entry("replay"), settings, &scripted(cores, text)).err() {
        Some(Stop::Input(text)) => text,
        other => panic!("{text}: {other:?}"),
    }
}

/// A port that records its operations, with addresses relative to those of the copy.
struct Notes<'a> {
    view: &'a mut View,
    persistent: u64,
    volatile: u64,
    notes: Vec<String>,
}

impl Notes<'_> {
    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    fn name(&self, at: Ptr) -> String {
        match at.address.checked_sub(DRAM_BASE) {
            Some(_) => format!("v{}", at.address - self.volatile),
            None => format!("p{}", at.address - self.persistent),
        }
    }
}

impl Port for Notes<'_> {
    fn load(&mut self, at: Ptr) -> (u64, Cycle) {
        self.note(format!("load {} known {}", self.name(at), at.known.0));
        (self.view.word(Word::of(at.address)), at.known + 10)
    }

    fn store(&mut self, at: Ptr, value: u64, mask: u64) {
        self.view.merge_word(Word::of(at.address), value, mask);
        self.note(format!("store {} {value:#x} {mask:#x}", self.name(at)));
    }

    fn store_past_caches(&mut self, at: Ptr, values: &[u64]) {
        self.note(format!("ntstore {} {values:?}", self.name(at)));
    }

    fn begin(&mut self, abortable: bool) {
        self.note(if abortable { "begin abortable" } else { "begin" });
    }

    fn commit(&mut self) {
        self.note("commit");
    }

    fn abort(&mut self) {
        self.note("abort");
    }

    fn lock(&mut self, lock: LockId) {
        self.note(format!("lock {}", lock.0));
    }

    fn unlock(&mut self, lock: LockId) {
        self.note(format!("unlock {}", lock.0));
    }

    fn work(&mut self, instructions: u64) {
        self.note(format!("work {instructions}"));
    }

    fn flush(&mut self, at: Ptr, how: Flush) {
        assert_eq!(how, Flush::WriteBack);
        self.note(format!("flush {}", self.name(at)));
    }

    fn order(&mut self) {
        self.note("order");
    }

    fn durable(&mut self) {
        self.note("durable");
    }

    fn mark(&mut self) {
        self.note("mark");
    }

    fn take_turn(&mut self, turn: u64) {
        self.note(format!("turn {turn}"));
    }

    fn pass_turn(&mut self) {
        self.note("pass");
    }
}

/// Returns a core's operations in its next transaction, on the copy whose memory begins there.
fn next(bench: &mut Bench, core: u8, (persistent, volatile): (u64, u64)) -> Vec<String> {
    let mut port = Notes { view: &mut bench.view, persistent, volatile, notes: Vec::new() };
    let mut pm = Pm::simulated(&mut port, CoreId(core));
    bench.programs[usize::from(core)].transaction(&mut pm).expect("a transaction");
    port.notes
}

/// Returns the operations of the first two transactions of a trace in which the flush or fence of
/// a line is left out.
fn left_out(line: usize, text: &str) -> Vec<Vec<String>> {
    let settings = format!("leave_out={line}");
    let mut bench =
        Bench::new(entry("replay"), &settings, &scripted(1, text)).expect("it is right");
    (0..2).map(|_| next(&mut bench, 0, ONLY)).collect()
}

#[test]
fn flushes_and_fences_may_be_left_out_with_those_of_the_same_comment() {
    let text = "
        fence # c:1
        begin
        commit
        flush 60 8 # c:2
        fence # c:2
        begin
        commit
        order
        flush 0 # c:2
        fence # c:1";
    let first = ["durable", "begin", "commit", "flush p0", "flush p64", "durable"];
    let second = ["begin", "commit", "order", "flush p0", "durable"];
    let cases: [(usize, &[usize], &[usize]); 5] =
        [(0, &[], &[]), (2, &[0], &[4]), (5, &[3, 4], &[3]), (6, &[5], &[]), (9, &[], &[2])];
    for (line, of_first, of_second) in cases {
        let rest = |all: &[&str], gone: &[usize]| -> Vec<String> {
            let each = (0..).zip(all).filter(|(index, _)| !gone.contains(index));
            each.map(|(_, text)| (*text).to_owned()).collect()
        };
        let expect = [rest(&first, of_first), rest(&second, of_second)];
        assert_eq!(left_out(line, text), expect, "line {line}");
    }
    let script = Script::new("mine.trace", text);
    let found = workloads::replay::persists(Some(&script), &[]).expect("it is right");
    let found: Vec<_> = found.iter().map(|row| (row.place, row.operation, row.times)).collect();
    assert_eq!(found, [(2, "fence", 2), (5, "flush", 2), (6, "fence", 1), (9, "order", 1)]);
    for line in [3, 99] {
        assert_eq!(
            refused(&format!("leave_out={line}"), 1, text),
            format!(
                "mine.trace, line {line}: only a flush or a fence after `measured` can be left \
                 out, \
                 and there is none"
            )
        );
    }
}

/// The addresses of the only copy of a trace without locks.
const ONLY: (u64, u64) = (PAGE_BYTES, DRAM_BASE);

#[test]
fn every_operation_is_done_in_its_order_and_again() {
    let text = "work 5\nload 8 9 # two words\nlock 3\nbegin\nstore 6 0x0102030405060708\n\
                bytes 100 aabbcc\nstore 0x10 7 2\ncommit\nunlock 3\norder\nlock 3\nlock 9\nbegin\n\
                store 0 1\nabort\nunlock 3\nunlock 9\nntstore 64 5\nflush 60 5\nfence\n";
    let mut bench = bench(1, text);
    let here = (PAGE_BYTES, DRAM_BASE + PAGE_BYTES);
    let first = [
        "work 5",
        "load p8 known 0",
        "load p16 known 0",
        "lock 3",
        "begin",
        "store p0 0x708000000000000 0xffff000000000000",
        "store p8 0x10203040506 0xffffffffffff",
        "store p96 0xccbbaa00000000 0xffffff00000000",
        "store p16 0x7 0xffff",
        "commit",
        "unlock 3",
        "order",
    ];
    let second = [
        "lock 3",
        "lock 9",
        "begin abortable",
        "store p0 0x1 0xffffffffffffffff",
        "abort",
        "unlock 3",
        "unlock 9",
        "ntstore p64 [5]",
        "flush p0",
        "flush p64",
        "durable",
    ];
    for _ in 0..3 {
        assert_eq!(next(&mut bench, 0, here), first);
        assert_eq!(next(&mut bench, 0, here), second);
    }
}

#[test]
fn what_is_before_measured_is_there_and_takes_no_time() {
    let mut bench = bench(2, "store 0x8 42\nbytes 0x10 0102\nmeasured\nload 0x8\n");
    let room = site(2, 1);
    for core in [0, 1] {
        let start = room.part(CoreId(core)).start.next_multiple_of(PAGE_BYTES);
        let words: Vec<u64> = [0, 8, 16].map(|at| bench.view.word(Word::of(start + at))).to_vec();
        assert_eq!(words, [0, 42, 0x0201]);
        let notes = next(&mut bench, core, (start, DRAM_BASE));
        // A thread without transactions counts as one transaction.
        assert_eq!(notes, ["load p8 known 0", "begin", "commit"]);
    }
}

#[test]
fn regions_are_persistent_where_pages_had_them_and_the_rest_is_volatile() {
    let text = "store 0x7fff10 1\nstore 0x5000fc0 2\nstore 0x900000 3\nstore 0x7ffff8 4\n\
                region 0x5000fc0 64\nregion 0x900000 4096\n";
    let mut bench = bench(1, text);
    let all = "0xffffffffffffffff";
    assert_eq!(
        next(&mut bench, 0, ONLY),
        [
            format!("store v{} 0x1 {all}", 0xf10),
            format!("store p{} 0x2 {all}", 0xfc0),
            format!("store p{} 0x3 {all}", 0x1000),
            format!("store v{} 0x4 {all}", 0xff8),
            "begin".into(),
            "commit".into(),
        ]
    );
}

#[test]
fn threads_of_a_copy_share_its_memory_and_its_locks() {
    let thread = |number: u64, at: u64| {
        format!(
            "thread {number}\nlock 1\nbegin\nstore {at} 5\nstore 0x100 {number}\ncommit\nunlock 1\n"
        )
    };
    let text = format!("region 0 4096\n{}{}store 0x9000 1\n", thread(0, 0x40), thread(1, 0x80));
    let mut bench = bench(4, &text);
    let halves = Site { cores: 2, ..site(4, 1) };
    for core in 0..4 {
        let copy = core / 2;
        let start = halves.part(CoreId(copy)).start.next_multiple_of(PAGE_BYTES);
        // Four locks take less than a page, and each copy has a page of its own behind.
        let volatile = DRAM_BASE + PAGE_BYTES * (1 + u64::from(copy));
        let notes = next(&mut bench, core, (start, volatile));
        let lock = format!("lock {}", 2 * copy + 1);
        assert_eq!(notes[0], lock, "core {core}");
        let at = if core % 2 == 0 { 0x40 } else { 0x80 };
        assert!(notes[2].starts_with(&format!("store p{at} ")), "{notes:?}");
        assert!(notes[3].starts_with(&format!("store p256 {:#x} ", core % 2)), "{notes:?}");
        assert_eq!(notes.last().is_some_and(|last| last.starts_with("store v0 ")), core % 2 == 1);
    }
    let refusal = refused("", 3, &text);
    assert!(refusal.contains("use --cores 2"), "{refusal}");
}

#[test]
fn a_value_that_was_not_recorded_is_new_each_time() {
    let values = |seed| {
        let site = Site { seed, ..scripted(1, "begin\nstore 0 ?\nstore 0x13 ? 6\ncommit\n") };
        let mut bench = Bench::new(entry("replay"), "", &site).expect("a trace");
        let mut notes = next(&mut bench, 0, ONLY);
        notes.extend(next(&mut bench, 0, ONLY));
        notes.retain(|note| note.starts_with("store"));
        assert_eq!(notes.len(), 6, "six bytes from the third on are in two words: {notes:?}");
        notes
    };
    let first = values(1);
    assert_ne!(first[0], first[3]);
    assert_eq!(first, values(1));
    assert_ne!(first, values(2));
    // Nor is it one of those from before the measured part.
    let mut bench = bench(1, "store 0 ?\nmeasured\nbegin\nstore 0 ?\ncommit\n");
    let there = bench.view.word(Word::of(4096));
    next(&mut bench, 0, ONLY);
    assert_ne!(bench.view.word(Word::of(4096)), there);
    assert_ne!(there, 0);
}

/// A run may end behind any part, and nobody could have the lock after that.
#[test]
fn transactions_under_one_lock_are_one_part() {
    let of = |number: u8| {
        let tx = format!("begin\nstore {} 1\ncommit\n", 64 * u64::from(number));
        format!("thread {number}\nlock 0\n{tx}{tx}unlock 0\n{tx}")
    };
    let mut bench = bench(2, &format!("measured\n{}{}", of(0), of(1)));
    for _ in 0..2 {
        for (core, commits) in [(0, 2), (0, 1), (1, 2), (1, 1)] {
            let notes = next(&mut bench, core, ONLY);
            let count = |word: &str| notes.iter().filter(|note| note.starts_with(word)).count();
            assert_eq!(count("commit"), commits, "{notes:?}");
            assert_eq!(count("lock"), count("unlock"), "{notes:?}");
        }
    }
}

#[test]
fn an_address_may_wait_for_the_load_before() {
    let text = "begin\nload 0\nload 64 16\nstore 128 1\nload 0\ncommit\n";
    let site = scripted(1, text);
    let mut loaded = Bench::new(entry("replay"), "addresses=loaded", &site).expect("a trace");
    let notes = next(&mut loaded, 0, ONLY);
    let loads: Vec<&String> = notes.iter().filter(|note| note.starts_with("load")).collect();
    let known = ["p0 known 0", "p64 known 10", "p72 known 10", "p0 known 20"];
    assert!(loads.iter().zip(known).all(|(load, known)| load.ends_with(known)), "{loads:?}");
    let again = next(&mut loaded, 0, ONLY);
    assert!(again.contains(&"load p0 known 30".to_owned()), "{again:?}");
}

#[test]
fn a_store_log_is_the_same_as_its_trace() {
    let log = "==12== pmemcheck-1.0\n==12== START|REGISTER_FILE;/mnt/pool;0x4000000;0x2000;0x0\
               |setup.BEGIN|STORE;0x4000000;0x102;0x8|setup.END|tx.BEGIN|STORE;0x4001008;0xff;0x1;on_STOP;g\
               |STORE;0x4000020;0x11000000000000000022;0x10|tx.END|FLUSH;0x4000000;0x80|FENCE\
               |REGISTER_FILE;/mnt/pool;0x4000000;0x2000;0x0|STOP\n==12== Number of stores: 3\n";
    let text = "region 0x4000000 0x2000\nmark a\nstore 0x4000000 0x102\nmark b\nbegin\nstore \
     0x4001008 255 1\n\
                bytes 0x4000020 22000000000000000011000000000000\ncommit\nflush 0x4000000 0x80\n\
                fence\n";
    let mut benches = [log, text].map(|text| bench(1, text));
    for _ in 0..2 {
        let [of_log, of_text] = benches.each_mut().map(|bench| next(bench, 0, ONLY));
        assert_eq!(of_log, of_text);
        assert_eq!(of_log.len(), 11, "{of_log:?}");
    }
}

#[test]
fn the_word_with_which_a_store_log_starts_may_be_elsewhere() {
    let steps = "START|STORE;0x0;0x1;0x8|FLUSH;0x0;0x40|FENCE|STOP\n";
    let led = format!("==1== Command: ./START|x\n==1== RESTARTED\n==00:00:00:01.2 1== {steps}");
    let [plain, led] = [steps, &led].map(|text| next(&mut bench(1, text), 0, ONLY));
    assert_eq!(plain, led);
    let text = "mark phase START|2\nstore 0 1 # if (s == START||s == 2)\nflush 0\nfence\n";
    let ours = next(&mut bench(1, text), 0, ONLY);
    assert_eq!(ours[0], "mark");
    assert_eq!(ours[1..], plain);
}

/// A trace, and a part of the sentence with which it is refused.
const WRONG: &[(&str, &str)] = &[
    ("", "mine.trace: there is nothing to measure"),
    ("# nothing\nstore 0 1\nmeasured\n", "mine.trace: there is nothing to measure"),
    (
        "\nstroe 0 1",
        "mine.trace, line 2: unknown operation `stroe`; there are: region, measured, interleaved, \
         thread, load, store, bytes, ntstore, flush, order, fence, mark, work, begin, commit, \
          abort, lock, unlock",
    ),
    ("load", "mine.trace, line 1: `load` must be written as `load ADDRESS [BYTES]`"),
    ("fence 1", "mine.trace, line 1: `fence` must be written as `fence`"),
    ("store 1", "mine.trace, line 1: `store` must be written as `store ADDRESS VALUE [BYTES]`"),
    ("mark", "mine.trace, line 1: `mark` must be written as `mark TEXT`"),
    (
        "mark a\nmeasured\nfence",
        "mine.trace, line 1: `mark` must come after `measured`; before it there may only be stores",
    ),
    ("load x", "mine.trace, line 1: `x` is not a number of 64 bits, such as 4096 or 0x1000"),
    ("load -8", "mine.trace, line 1: `-8` is not a number of 64 bits, such as 4096 or 0x1000"),
    ("load 0 0", "mine.trace, line 1: the number of bytes must be from 1 to 4096, not 0"),
    (
        "work 1000000000000\nwork 1000000000001",
        "mine.trace, line 2: the number of instructions must be from 0 to 1000000000000, not \
         1000000000001",
    ),
    ("store 0 1 9", "mine.trace, line 1: the number of bytes must be from 1 to 8, not 9"),
    ("store 0 ? 4097", "mine.trace, line 1: the number of bytes must be from 1 to 4096, not 4097"),
    ("store 0 256 1", "mine.trace, line 1: `256` does not fit in 1 byte"),
    ("store 0 0x10000 2", "mine.trace, line 1: `0x10000` does not fit in 2 bytes"),
    ("bytes 0 abc", "mine.trace, line 1: `abc` must be bytes of two hexadecimal digits each"),
    ("bytes 0 0x12", "mine.trace, line 1: `0x12` must be bytes of two hexadecimal digits each"),
    ("ntstore 4 1", "mine.trace, line 1: `ntstore` must be to an aligned word of 8 bytes"),
    ("begin\nntstore 8 1", "mine.trace, line 2: `ntstore` must be outside of transactions"),
    ("begin\nwork 1\nbegin", "mine.trace, line 3: the transaction of line 1 has not ended"),
    ("commit", "mine.trace, line 1: `commit` ends a transaction, and none has begun"),
    ("begin\nstore 0 1", "mine.trace, line 1: thread 0 never ends the transaction"),
    ("begin\nlock 1", "mine.trace, line 2: a lock must be taken before a transaction begins"),
    (
        "lock 1\nbegin\nunlock 1",
        "mine.trace, line 3: a lock must be released after the transaction has ended",
    ),
    ("lock 1", "mine.trace, line 1: lock 1 is never released"),
    ("unlock 1", "mine.trace, line 1: lock 1 is released, but was not taken"),
    (
        "lock 2\nlock 2",
        "mine.trace, line 2: lock 2 is taken after lock 2; locks must be taken in the order of \
         their numbers, so that no two threads wait for each other",
    ),
    (
        "interleaved\nlock 0\nwork 1\nthread 1\nlock 0\nunlock 0\nthread 0\nunlock 0",
        "mine.trace, line 5: lock 0 is taken while thread 0 has held it since line 2: in the order \
         of the file no thread could go on",
    ),
    ("lock 65536", "mine.trace, line 1: the lock's number must be from 0 to 65535, not 65536"),
    ("thread 64", "mine.trace, line 1: the thread's number must be from 0 to 63, not 64"),
    ("thread 1\nload 0", "mine.trace has a thread 1 but no thread 0; number threads from 0 up"),
    (
        "load 0\nmeasured\nload 0",
        "mine.trace, line 1: `load` must come after `measured`; before it there may only be stores",
    ),
    ("thread 0\nmeasured\nload 0", "mine.trace, line 1: threads must begin after `measured`"),
    ("measured\nload 0\nmeasured", "mine.trace, line 3: `measured` may appear only once"),
    ("region 8 64\nload 8", "mine.trace, line 1: a region must be whole lines of 64 bytes"),
    ("region 64 0\nload 8", "mine.trace, line 1: a region must be whole lines of 64 bytes"),
    (
        "region 0 0x300000000000000\nload 8",
        "mine.trace, line 1: the region must end within 57 bits of addresses",
    ),
    ("region 0 128\nregion 64 64\nload 8", "mine.trace, line 2: the region overlaps another one"),
    ("region 64 64\nload 0x78 16", "mine.trace, line 2: 16 bytes at 0x78 are partly in a region"),
    (
        "load 0xffffffffffffffff 1",
        "mine.trace, line 1: address 0xffffffffffffffff has more than 57 \
                                   bits",
    ),
    ("START|STOP", "mine.trace: there is nothing to measure"),
    (
        "==1== START|STORE;0x0;0x1;0x8|FLUSH;0x0;0x4",
        "mine.trace, operation 2: the log ends there without `STOP`, so the rest of it is missing",
    ),
    ("START|STORE;0x0;0x1ff;0x1|STOP", "mine.trace, operation 1: `0x1ff` does not fit in 1 byte"),
    (
        "START|FENCE|STORE;0x0;g;0x1|STOP",
        "mine.trace, operation 2: `g` is not a hexadecimal number",
    ),
    (
        "START|STORE;0x0;0x1|STOP",
        "mine.trace, operation 1: `STORE;0x0;0x1` is not an operation of a store \
                                  log; there are REGISTER_FILE, STORE, FLUSH, FENCE, and markers that end in \
                                  .BEGIN or .END",
    ),
    (
        "START|FLUSH;0xx;0x1|STOP",
        "mine.trace, operation 1: `0xx` is not a hexadecimal number of 64 bits",
    ),
    (
        "START|FENCE|REGISTER_FILE;pool|STOP",
        "mine.trace, operation 2: `REGISTER_FILE` must have a name, an address and a size",
    ),
];

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, said) in WRONG {
        assert_eq!(refused("", 1, text), *said, "{text}");
    }
}

#[test]
fn what_two_threads_store_to_has_a_lock_in_common() {
    let thread = |number: u64, at: u64, locks: &str| {
        let take: String = locks.split_whitespace().map(|lock| format!("lock {lock}\n")).collect();
        let give = take.replace("lock", "unlock");
        format!("thread {number}\n{take}begin\nstore {at} 1\ncommit\n{give}")
    };
    let pair = |left, right| format!("{}{}", thread(0, 0, left), thread(1, 8, right));
    let said = refused("", 2, &pair("1 2", "3"));
    assert_eq!(
        said,
        "mine.trace, line 12: thread 1 stores to a line to which thread 0 also stores in line \
         5, both in transactions without a common lock; take one, or, for a design that logs \
         words, --set workload.lock_grain=word"
    );
    let words = "lock_grain=word";
    for (settings, text, right) in [
        ("", pair("1 2", "2 3"), true),
        (words, pair("", ""), true),
        (words, format!("{}{}", thread(0, 0, "1"), thread(1, 4, "2")), false),
        ("", format!("{}{}", thread(0, 0, ""), thread(1, LINE_BYTES, "")), true),
        ("", format!("{}{}{}", pair("1 2", "2"), "", thread(0, 0, "1")), false),
    ] {
        let made = Bench::new(entry("replay"), settings, &scripted(2, &text));
        assert_eq!(made.is_ok(), right, "{settings} {text}");
    }
}

#[test]
fn what_is_interleaved_goes_on_in_the_order_of_the_file_once() {
    let text = "
        interleaved
        region 0x10000 4096
        measured
        thread 2
        thread 1
            store 0x10000 1
            begin
        thread 0
        thread 1
            store 0x10008 2
        thread 0
            load 0x10000
            mark seen
        thread 1
            commit
        thread 2
            work 5";
    let mut bench = bench(3, text);
    let place = (PAGE_BYTES, DRAM_BASE);
    let of = |bench: &mut Bench, core| (next(bench, core, place), next(bench, core, place));
    let ended = |notes: &[&str]| (notes.iter().map(|&note| note.to_owned()).collect(), vec![]);
    let zero = ["turn 1", "load p0 known 0", "mark", "pass", "begin", "commit"];
    assert_eq!(of(&mut bench, 0), ended(&zero));
    let store = |at, value| format!("store p{at} {value:#x} 0xffffffffffffffff");
    let (first, second) = (store(0, 1), store(8, 2));
    let one = [&first, "begin", &second, "pass", "turn 2", "commit", "pass"];
    assert_eq!(of(&mut bench, 1), ended(&one));
    assert_eq!(of(&mut bench, 2), ended(&["turn 3", "work 5", "begin", "commit"]));
    assert_eq!(
        refused("", 6, text),
        "an `interleaved` trace works with one copy of the trace's memory, and 6 cores have 2; \
         use --cores 3"
    );
}

#[test]
fn transactions_that_were_interleaved_need_no_lock_unless_they_overlap() {
    let trace = |end: &str, late: &str| {
        format!(
            "
            interleaved
            region 0x10000 4096
            measured
            begin
            store 0x10000 1
            {end}
            thread 1
            begin
            store 0x10008 2
            commit
            thread 0
            {late}"
        )
    };
    bench(2, &trace("commit", ""));
    let said = refused("", 2, &trace("", "commit"));
    let expect = "mine.trace, line 10: thread 1 stores to a line to which thread 0 also stores in \
                  line 6";
    assert!(said.starts_with(expect), "{said}");
}

#[test]
fn the_trace_that_ships_is_right_on_any_number_of_cores() {
    for cores in 1..=8 {
        let mut bench = Bench::new(entry("replay"), "", &site(cores, 1)).expect("a trace");
        bench.run(8).expect("transactions");
    }
}
