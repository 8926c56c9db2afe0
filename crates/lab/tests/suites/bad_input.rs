//! What a user gets wrong, and the one sentence that says how to mend it.

use crate::common::request;
use lab::Control;
use serde_json::{Value, json};

/// A request, as in `common`, and the whole sentence; `[all]` stands for a list of all names.
const MISTAKES: &[(&str, &str)] = &[
    ("sillo hash", "unknown design `sillo`; did you mean `silo`? there are: silo, [all]"),
    ("qqqq hash", "unknown design `qqqq`; there are: [all]"),
    (
        "bbb hash",
        "`bbb` is ordering hardware, which keeps no transaction whole; name a log on it: \
         count@bbb, redo@bbb, undo@bbb",
    ),
    (
        "undo hash",
        "`undo` is a software log; name the hardware, too: undo@bbb, undo@dpo, undo@eadr, \
         undo@hops, undo@ideal, undo@x86",
    ),
    (
        "silo hsh",
        "unknown workload `hsh`; did you mean `hash`? there are: hash, hashmap, hash-rand, [all]",
    ),
    (
        "silo hash machine=sillo",
        "unknown machine `sillo`; did you mean `silo`? there are: silo, [all]",
    ),
    (
        "silo hash machine=.",
        "machine file .: is a directory; name a file that can be read, or a preset",
    ),
    (
        "silo hash machine=/dev/zero",
        "machine file /dev/zero: is a device; name a file that can be read, or a preset",
    ),
    ("silo hash cores=0", "cores is 0; machine tiny takes 1 to 4 (core.cores_max)"),
    ("silo hash cores=5", "cores is 5; machine tiny takes 1 to 4 (core.cores_max)"),
    ("silo hash machine=silo cores=9", "cores is 9; machine silo takes 1 to 8 (core.cores_max)"),
    (
        "fwb hash core.migrate=10",
        "fwb keeps the state of a transaction at its core, so threads cannot move; leave \
         core.migrate at 0, or use one of count@eadr, count@ideal, count@x86, native, \
          redo@eadr, redo@ideal, redo@x86, s-wal, silo, undo@eadr, undo@ideal, undo@x86",
    ),
    ("silo hash txs=0", "txs is 0; it takes 1 or more"),
    (
        "silo hash mutants=undo_newest_frist",
        "unknown rule `undo_newest_frist` of design silo; did you mean `undo_newest_first`? there \
         are: undo_newest_first, [all]",
    ),
    (
        "loc-kiln hash mutants=count_committed",
        "no run can show that rule `count_committed` of design loc-kiln is switched off: who \
         absorbed a line and is not complete ends the prefix, and closure_trim then takes out the \
         transaction, too; --without count_committed cuts the power without it",
    ),
    (
        "silo hash seed=9223372036854775807 trials=all",
        "seed is 9223372036854775807; with trials or mutants, which also use the seeds after it, \
         it must be at most 9223372036854774807",
    ),
    (
        "silo hash controller.wpq=0",
        "controller.write_buffer_size (wpq): `0` is out of range; it takes 1 to 4096",
    ),
    (
        "silo hash workload.items=99999999999",
        "workload.items: `99999999999` is out of range; it takes 1 to 1000000000, or 0 for as many \
         as machine tiny has",
    ),
    (
        "silo hash controller.wpq=0x10",
        "controller.write_buffer_size (wpq): `0x10` is not a whole number; write one, such as 64",
    ),
    (
        "silo hash controller.wpq=4096B",
        "controller.write_buffer_size (wpq): `4096B` has a unit, but this counts things; write \
         4096",
    ),
    (
        "silo hash controler.wpq=4",
        "unknown section `controler`; did you mean `controller`? there are: controller, core, \
          workload, tlb, energy, l1d, l2, llc, dram, design, pm",
    ),
    (
        "silo hash controller.wqp=4",
        "unknown parameter `wqp` of controller; did you mean `write_buffer_size` (wpq)? there \
          are: write_low_thresh_perc, min_writes_per_switch, write_high_thresh_perc, battery_perc, \
          mem_sched_policy, write_buffer_size, writeback_buffer_size, count, intlv_size, \
          read_buffer_size, static_frontend_latency, static_backend_latency, noc_latency, \
          link_latency, arrival_jitter, domain, flush_bytes",
    ),
    (
        "silo hash pm.tREAD=50",
        "pm.tREAD: `50` lacks its unit; write a time in ps, ns, us, ms, s or cycles, such as \
          \"50ns\"",
    ),
    (
        "silo hash l1d.size=4KiB l1d.assoc=3",
        "machine tiny: l1d.assoc: 3 ways do not divide 4096 bytes of 64-byte lines; 2 and 4 do",
    ),
    (
        "silo hash design.entires=4",
        "unknown parameter `entires` of design silo; did you mean `entries`? there are: \
          entries, deliveries, update_interval, controller_hop, first_transaction, \
          buffer_latency, channel, told, overflow_batch, overflow",
    ),
    (
        "silo hash design.entries=0",
        "`entries` of design silo is out of range: `0`; it takes 1 to 4096",
    ),
    ("native hash design.entries=4", "design native has no parameter `entries`; it has none"),
    (
        "silo hash workload.item=4",
        "unknown parameter `item` of workload hash; did you mean `items`? there are: items, \
         contents, alignment, shared, distribution, bucket, buckets, operations, alloc_meta, value, \
         count",
    ),
    (
        "silo hash workload.shared=yes",
        "unknown value `yes` of `shared` of workload hash; there are: shared, private",
    ),
    ("silo hash points=0", "0 crash points check nothing; give a number or `all`"),
    ("silo hash points=some", "`some` is not a number of crash points; give a number or `all`"),
    (
        "silo hash cores=1 workload.items=1000000",
        "workload hash needs 68.6 MiB of simulated persistent memory in one piece, and 7.9 MiB \
         is free; raise it with --set pm.device_size=..., or lower --set workload.items=...",
    ),
    (
        "silo array cores=1 workload.items=1000000",
        "workload array needs 61 MiB of simulated persistent memory in one piece, and 7.9 MiB \
         is free; raise it with --set pm.device_size=..., or lower --set workload.items=...",
    ),
    (
        "silo probe workload.dependent=yes",
        "workload.dependent=yes works only with loads, whose value is the next place; add --set \
         workload.access=load",
    ),
    (
        "silo probe workload.memory=dram workload.items=1000000",
        "workload probe needs 55611392 more bytes of volatile memory than there are; raise it \
         with --set \
                 dram.device_size=..., or lower --set workload.items=...",
    ),
    // 25,160 locks, each in its line.
    (
        "silo tpcc cores=2 workload.shared=shared workload.warehouses=340 workload.stock=1 \
         workload.customers=1 workload.orders=1 dram.device_size=1MiB",
        "workload tpcc needs 561664 more bytes of volatile memory than there are; raise it with \
         --set \
                 dram.device_size=..., or lower --set workload.warehouses=...",
    ),
    (
        "silo ycsb cores=1 workload.items=1000000",
        "workload ycsb needs 961.3 MiB of simulated persistent memory in one piece, and 7.9 MiB \
         is free; raise it with --set pm.device_size=..., or lower --set workload.items=...",
    ),
    (
        "silo sqlite cores=1 workload.rows=100000000",
        "workload sqlite needs 4 KiB of simulated persistent memory in one piece, and 0 B \
         is free; raise it with --set pm.device_size=..., or lower --set workload.rows=...",
    ),
    (
        "silo tpcc cores=1 workload.stock=1000000",
        "workload tpcc needs 8 MiB of simulated persistent memory in one piece, and 7.9 MiB \
         is free; raise it with --set pm.device_size=..., or lower --set workload.stock=...",
    ),
    (
        "silo tpcc cores=1 workload.stock=1 workload.customers=9 workload.orders=1000000",
        "workload tpcc needs 8 MiB of simulated persistent memory in one piece, and 7.9 MiB \
         is free; raise it with --set pm.device_size=..., or lower --set workload.stock=..., \
         workload.customers=... or workload.orders=...",
    ),
    (
        "silo hash cores=1 workload.buckets=1000000000",
        "workload hash needs 8 GiB of simulated persistent memory in one piece, and 7.9 MiB \
         is free; raise it with --set pm.device_size=..., or lower --set workload.buckets=...",
    ),
    (
        "silo scribble pm.device_size=1MiB pm.log_size=1MiB cores=4",
        "machine tiny: pm.log_size: 4 logs of 1024KiB, one for each core, take more than half of \
         pm.device_size, 1024KiB: raise that to 8192KiB, or lower the log's to 128KiB",
    ),
];

/// A sentence and the one that was expected, below the request that they answer.
fn difference(request: &str, error: &str, expect: &str) -> String {
    format!("{request}\n    says      {error}\n    expected  {expect}\n")
}

fn error(request: &Value, ask: fn(&str, &Control) -> Result<String, lab::InputError>) -> String {
    match ask(&request.to_string(), &Control::default()) {
        Ok(answer) => panic!("{request} is answered: {answer}"),
        Err(error) => error.to_string(),
    }
}

/// Whether a sentence lists every design, every workload, every machine or every rule of a design.
fn lists_all(error: &str) -> bool {
    let listed = |name: &str| error.split([' ', ',']).any(|word| word == name);
    designs::ALL.iter().all(|entry| listed(entry.card.name))
        || workloads::ALL.iter().all(|entry| listed(entry.about.name))
        || lab::machines::names().into_iter().all(listed)
        || designs::ALL.iter().any(|entry| {
            !entry.rules.is_empty() && entry.rules.iter().all(|(rule, _)| listed(rule))
        })
}

#[test]
fn a_mistake_is_one_sentence() {
    let mut differ = String::new();
    for (line, expect) in MISTAKES {
        let request = request(line);
        for ask in [lab::run, lab::crash] {
            let error = error(&request, ask);
            assert!(!error.contains('\n'), "{error:?} is more than one line");
            let as_expected = match expect.strip_suffix("[all]") {
                Some(beginning) => error.starts_with(beginning) && lists_all(&error),
                None => error == *expect,
            };
            if !as_expected {
                differ += &difference(line, &error, expect);
                // The other call says the same.
                break;
            }
        }
    }
    assert!(differ.is_empty(), "{differ}");
}

/// If transactions share the lines of their words, a line-granular design takes back more than an
/// aborted transaction stored.
#[test]
fn an_abort_in_lines_that_are_shared_is_a_mistake() {
    for design in ["undo@dpo", "undo@x86"] {
        let line = format!(
            "{design} scribble cores=3 txs=400 workload.lock_grain=word workload.aborts=100"
        );
        let error = error(&request(&line), lab::run);
        let told = error.contains("an abort left") && error.contains("locks on words let");
        assert!(told, "{line}: {error}");
    }
}

/// What a log cannot hold ends the run with a sentence, or the design goes on without the log; it
/// never overwrites what recovery may need.
#[test]
fn a_transaction_that_does_not_fit_its_log_is_refused_or_right() {
    for entry in crate::common::durable() {
        let line = format!(
            "{} scribble cores=1 txs=100 nested=false pm.log_size=1KiB workload.large=40 \
             workload.words=1024 workload.lock_grain=word llc.size=256B l2.size=128B l1d.size=128B",
            entry.card.name
        );
        match lab::crash(&request(&line).to_string(), &Control::default()) {
            Ok(text) => {
                let answer: Value = serde_json::from_str(&text).expect("it is JSON");
                assert_eq!(answer["violations"], json!([]), "{line}");
            }
            Err(error) => assert!(error.to_string().contains("pm.log_size"), "{line}: {error}"),
        }
    }
}

/// What a log cannot hold is the user's to mend, not a panic.
#[test]
fn a_transaction_that_does_not_fit_its_log_is_a_mistake() {
    for design in ["count@x86", "lad", "redo-log", "redo@x86", "undo-log", "undo@x86"] {
        let line = format!(
            "{design} scribble cores=1 pm.log_size=1KiB workload.words=1024 \
             workload.lock_grain=word"
        );
        let error = error(&request(&line), lab::run);
        assert!(error.contains("pm.log_size"), "{line}: {error}");
    }
}

/// Where it is known which size would do, that size does, and a KiB less does not.
#[test]
fn a_log_that_is_too_small_is_told_the_size_that_would_do() {
    let large = "workload.words=1024 workload.lock_grain=word";
    for line in [
        format!("count@x86 scribble cores=1 {large}"),
        format!("redo@x86 scribble cores=1 {large}"),
        format!("s-wal scribble cores=1 {large}"),
        "silo scribble cores=1 design.entries=400".into(),
        "silo scribble cores=1 design.entries=400 pm.xpline=1KiB".into(),
        "lad scribble cores=2 controller.wpq=256".into(),
        "h-wal scribble cores=1".into(),
        "loc-wal scribble cores=1".into(),
        "ec-wal scribble cores=1 design.metadata=burst".into(),
    ] {
        let with = |kib: u64| request(&format!("{line} pm.log_size={kib}KiB txs=200"));
        let asked = |kib: u64| {
            let error = lab::run(&with(kib).to_string(), &Control::default()).err()?.to_string();
            let (_, size) = error.split_once("--set pm.log_size=").expect("a size");
            // While a transaction runs it is not known how much more it stores.
            let (size, _) = size.split_once("KiB")?;
            Some(size.parse::<u64>().unwrap_or_else(|_| panic!("{line}: {error}")))
        };
        let mut kib = 1;
        while let Some(more) = asked(kib) {
            assert!(more > kib, "{line}: {more}KiB is no more than {kib}KiB");
            assert!(more - 1 == kib || asked(more - 1).is_some(), "{line}: {more}KiB is too much");
            kib = more;
        }
    }
}

/// The setting that limits LAD's undo areas is the one that gives them more room.
#[test]
fn a_full_undo_area_is_raised_by_what_limits_it() {
    for (settings, flag) in
        [("pm.log_size=2KiB", "pm.log_size"), ("design.undo_entries=1", "design.undo_entries")]
    {
        let line =
            format!("lad scribble cores=1 {settings} workload.words=1024 workload.lock_grain=word");
        let error = error(&request(&line), lab::run);
        assert!(error.ends_with(&format!("raise it with --set {flag}=...")), "{line}: {error}");
    }
}

/// A workload, a script, and the whole sentence.
const SCRIPTS: &[(&str, &str, &str)] = &[
    (
        "hash",
        "SELECT 1;",
        "workload hash takes no script: --replay is for replay, --sql is for sqlite, --ycsb \
         is for ycsb",
    ),
    (
        "sqlite",
        "CREATE TABLE t(a);\nSELCT 1;\n",
        "script `mine.txt`, line 2: near \"SELCT\": syntax error",
    ),
    (
        "sqlite",
        "CREATE TABLE t(a);\nINSERT INTO u VALUES (1);\n",
        "script `mine.txt`, line 2: no such table: u",
    ),
    ("sqlite", "", "script `mine.txt`, line 1: the script ends, and has no statement to measure"),
    (
        "sqlite",
        "CREATE TABLE t(a);\n-- measured\n",
        "script `mine.txt`, line 2: the script ends, and has no statement to measure: put what is \
         to be measured after a line `-- measured`",
    ),
    (
        "sqlite",
        "CREATE TABLE t(a PRIMARY KEY);\n-- measured\nINSERT INTO t VALUES (1);\n",
        "script `mine.txt`, line 3: UNIQUE constraint failed: t.a (in pass 2: what is measured is \
         repeated; what is to be done once belongs before a line `-- measured`)",
    ),
    ("sqlite", "CREATE TABLE t(a", "script `mine.txt`, line 1: incomplete input"),
    (
        "ycsb",
        "recordcount=100\nreadproportion=much\n",
        "mine.txt, line 2: `readproportion` must be a number from 0 to 1000000000, not `much`",
    ),
    (
        "ycsb",
        "recordcount=100\n\nrecordcount\n",
        "mine.txt, line 3: expected `name=value`, a comment or nothing, not `recordcount`",
    ),
    (
        "ycsb",
        "requestdistribution=sideways\n",
        "mine.txt, line 1: `requestdistribution` must be `uniform`, `zipfian` or `latest`, not \
          `sideways`",
    ),
    (
        "ycsb",
        "recordcount=0\n",
        "mine.txt, line 1: `recordcount` must be a whole number from 1 to 4294967296, not `0`",
    ),
    (
        "ycsb",
        "readproportion=0\nupdateproportion=0\n",
        "mine.txt: the proportions of all operations are 0; one must be above 0",
    ),
    (
        "ycsb",
        "recordcount=1000000\n",
        "workload ycsb needs 961.3 MiB of simulated persistent memory in one piece, and 7.9 MiB \
         is free; raise it with --set pm.device_size=..., or lower `recordcount` in mine.txt",
    ),
    (
        "ycsb",
        "fieldlength=60000\n",
        "workload ycsb needs 13.7 MiB of simulated persistent memory in one piece, and 7.9 MiB \
         is free; raise it with --set pm.device_size=..., or lower --set workload.items=...",
    ),
    (
        "ycsb",
        "minscanlength=7\nmaxscanlength=6\n",
        "mine.txt: `minscanlength` must not be above `maxscanlength`, 6; it is 7",
    ),
    (
        "sqlite",
        "CREATE TABLE t(a);\nINSERT INTO t VALUES (zeroblob(99999999));\n",
        "workload sqlite needs 4 KiB of simulated persistent memory in one piece, and 0 B \
         is free; raise it with --set pm.device_size=..., or let mine.txt insert less",
    ),
    (
        "sqlite",
        "CREATE TABLE t(a);\nINSERT INTO t VALUES (zeroblob(9999999 * :rows));\n",
        "workload sqlite needs 4 KiB of simulated persistent memory in one piece, and 0 B \
         is free; raise it with --set pm.device_size=..., or lower --set \
         workload.rows=..., which is :rows in mine.txt",
    ),
];

#[test]
fn a_mistake_in_a_script_names_its_line() {
    let mut differ = String::new();
    for (workload, script, expect) in SCRIPTS {
        let mut request = request(&format!("silo {workload} cores=1 txs=3"));
        request["script"] = json!(["mine.txt", script]);
        let error = error(&request, lab::run);
        assert!(!error.contains('\n'), "{error:?} is more than one line");
        if error != *expect {
            differ += &difference(&format!("{workload} {script:?}"), &error, expect);
        }
    }
    assert!(differ.is_empty(), "{differ}");
}

#[test]
fn what_else_has_a_name_is_told() {
    let also = |name: &str| {
        let answer = lab::explain(name, &[], None, None).expect("it is one");
        let answer: serde_json::Value = serde_json::from_str(&answer).expect("an object");
        answer["also"].clone()
    };
    assert_eq!(also("silo"), serde_json::json!(["machine:silo"]));
    assert_eq!(also("hops"), serde_json::json!(["order:hops", "machine:hops"]));
    assert_eq!(also("order:hops"), serde_json::json!(["design:hops", "machine:hops"]));
    assert_eq!(also("lad"), serde_json::json!([]));
}

#[test]
fn an_unknown_list_or_name_to_explain_says_what_there_is() {
    let error =
        |result: Result<String, lab::InputError>| result.expect_err("a mistake").to_string();
    assert_eq!(
        error(lab::list("desings")),
        "unknown list `desings`; did you mean `designs`? there are: designs, machines, profiles, \
         orders, workloads"
    );
    assert_eq!(
        error(lab::list("")),
        "unknown list ``; there are: designs, orders, workloads, profiles, machines"
    );
    for (name, against, told) in [
        ("tiny", None, "tiny"),
        ("machine:tiny", None, "machine:tiny"),
        ("tiny", Some("silo"), "machine:tiny"),
    ] {
        let text = error(lab::explain(name, &[], against, Some(("nosuch", None))));
        let rest = "is not a design, so it has no hardware on machine nosuch; `indelible explain \
            machine:nosuch` explains the machine";
        assert_eq!(text, format!("{told} {rest}"));
    }
    let text = error(lab::explain("sillo", &[], None, None));
    let start = "unknown design, workload, machine or ordering hardware `sillo`; did you mean \
        `silo`? there are: silo, ";
    assert!(text.starts_with(start), "{text}");
    let text = error(lab::explain("undo", &[], None, None));
    assert!(text.starts_with("`undo` is a software log; name the hardware, too: "), "{text}");
    let known = |name: &str| lab::explain(name, &[], None, None).expect("it is one");
    assert_eq!(known("design:silo"), known("silo"));
    assert_eq!(known("workload:btree-rand"), known("btree-rand"));
    assert!(
        error(lab::explain("design:hash", &[], None, None)).starts_with("unknown design `hash`")
    );
    let text = error(lab::explain("workload:silo", &[], None, None));
    assert!(text.starts_with("unknown workload `silo`"), "{text}");
    let text = error(lab::explain("order:silo", &[], None, None));
    assert!(text.starts_with("unknown ordering hardware `silo`; there are: "), "{text}");
}

#[test]
fn what_is_not_a_request_is_refused() {
    for (text, expect) in
        [("", ""), ("{}", ""), (r#"{"design": "silo", "workload": "hash", "cores": "two"}"#, "")]
    {
        let error = lab::run(text, &Control::default()).expect_err("a mistake").to_string();
        assert!(error.starts_with("the request is not understood: "), "{error}");
        assert!(error.contains(expect), "{error}");
    }
}
