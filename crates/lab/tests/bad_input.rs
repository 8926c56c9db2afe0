//! What a user gets wrong, and the one sentence that says how to mend it.

mod common;

use common::request;
use lab::Control;
use serde_json::{Value, json};

/// A request, as in `common`, and the whole sentence.
const MISTAKES: &[(&str, &str)] = &[
    ("sillo hash", ""),
    ("qqqq hash", ""),
    ("silo hsh", ""),
    ("silo hash machine=sillo", ""),
    ("silo hash cores=0", ""),
    ("silo hash cores=5", ""),
    ("silo hash machine=silo cores=9", ""),
    ("silo hash txs=0", ""),
    ("silo hash controller.wpq=0", ""),
    ("silo hash controller.wpq=4096B", ""),
    ("silo hash controler.wpq=4", ""),
    ("silo hash controller.wqp=4", ""),
    ("silo hash pm.tREAD=50", ""),
    ("silo hash l1d.size=4KiB l1d.assoc=3", ""),
    ("silo hash design.entires=4", ""),
    ("silo hash design.entries=0", ""),
    ("native hash design.entries=4", ""),
    ("silo hash workload.item=4", ""),
    ("silo hash workload.shared=yes", ""),
    ("silo hash points=0", ""),
    ("silo hash points=some", ""),
    ("silo hash points=-1", ""),
    ("silo hash seed=-1", ""),
    ("silo hash corse=2", ""),
    ("silo hash machine=silo pm.device_size=64MiB workload.items=100000000", ""),
    ("silo array machine=silo pm.device_size=64MiB workload.items=100000000", ""),
    ("silo ycsb machine=silo pm.device_size=64MiB workload.items=100000000", ""),
    ("silo sqlite machine=silo pm.device_size=64MiB workload.rows=100000000", ""),
    ("silo scribble pm.device_size=1MiB pm.log_size=1MiB cores=4", ""),
    ("undo@x86 scribble pm.log_size=1KiB cores=1", ""),
];

fn error(request: &Value, ask: fn(&str, &Control) -> Result<String, lab::InputError>) -> String {
    match ask(&request.to_string(), &Control::default()) {
        Ok(answer) => panic!("{request} is answered: {answer}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_mistake_is_one_sentence() {
    let mut differ = String::new();
    for (line, expect) in MISTAKES {
        let request = request(line);
        for ask in [lab::run, lab::crash] {
            let error = error(&request, ask);
            assert!(!error.contains('\n'), "{error:?} is more than one line");
            if error != *expect {
                differ += &format!("{line}\n    {error}\n");
            }
        }
    }
    assert!(differ.is_empty(), "{differ}");
}

/// A workload, a script, and the whole sentence.
const SCRIPTS: &[(&str, &str, &str)] = &[
    ("hash", "SELECT 1;", ""),
    ("sqlite", "CREATE TABLE t(a);\nSELCT 1;\n", ""),
    ("sqlite", "CREATE TABLE t(a);\nINSERT INTO u VALUES (1);\n", ""),
    ("sqlite", "", ""),
    ("sqlite", "CREATE TABLE t(a", ""),
    ("ycsb", "recordcount=100\nreadproportion=much\n", ""),
    ("ycsb", "recordcount=100\n\nrecordcount\n", ""),
    ("ycsb", "requestdistribution=sideways\n", ""),
    ("ycsb", "recordcount=0\n", ""),
    ("ycsb", "readproportion=0\nupdateproportion=0\n", ""),
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
            differ += &format!("{workload} {script:?}\n    {error}\n");
        }
    }
    assert!(differ.is_empty(), "{differ}");
}

#[test]
fn an_unknown_list_or_name_to_explain_says_what_there_is() {
    let error =
        |result: Result<String, lab::InputError>| result.expect_err("a mistake").to_string();
    assert_eq!(error(lab::list("desings")), "");
    assert_eq!(error(lab::list("")), "");
    assert_eq!(error(lab::explain("sillo", &[], None)), "");
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
