//! What a campaign asks of the runs that it makes, and what it tells of their answers. The runs are
//! of designs that answer what a test wants.

use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use designs::scripted::{Raised, note_asked};
use designs::template::Template;
use designs::{Entry, Order};
use lab::Control;
use model::crash::{Crashes, Points, Recovery};
use model::engine::{Failure, Outcome};
use model::image::Cut;
use model::meters::Class;
use model::oracle::{Early, Promises, Violation};
use model::units::{Cycle, Line, Word};
use model::workload::Stop;
use serde_json::{Value, json};

use crate::check::{Bench, GOOD, VERIFY};
use crate::common::{bring, crash, request};

type Answer = Result<Outcome, Failure>;

/// Brings a design with two rules, all of whose runs are made by the test.
fn puppet(name: &'static str, run: impl Fn(Order<'_>) -> Answer + Sync + 'static) {
    let (run, rules) = (Box::leak(Box::new(run)), &[("one", " First."), ("two", " Second.")]);
    let (needless, needless_with): (&[_], &[_]) = (&[], &[]);
    let entry = designs::entry::<Template>();
    bring(name, Entry { run, rules, needless, needless_with, ..entry });
}

/// Makes a run with every rule, and changes what its campaign found.
fn changed(order: Order<'_>, change: impl FnOnce(&mut Crashes)) -> Answer {
    let run = designs::entry::<Template>().run;
    let mut outcome = run(Order { without: None, ..order })?;
    change(outcome.crashes.as_mut().expect("a campaign"));
    Ok(outcome)
}

fn wrong(text: &str) -> Violation {
    Violation {
        point: 7,
        order: 1,
        early: vec![Early { line: Line(5), class: Class::HomeWriteBack, bytes: 8 }],
        at: Cycle(90),
        nested: Some(3),
        nested_order: 2,
        text: text.into(),
        files: Vec::new(),
        marks: Vec::new(),
        account: None,
        word: Some(Word(5)),
        history: Vec::new(),
    }
}

/// Finds this violation if `is_wrong`, and nothing otherwise.
fn found(order: Order<'_>, is_wrong: bool, text: &str) -> Answer {
    changed(order, |crashes| crashes.violations.extend(is_wrong.then(|| wrong(text))))
}

fn seed(order: &Order<'_>) -> u64 {
    order.run.campaign.as_ref().expect("a campaign").seed
}

/// What runs note, and a test reads.
type Notes<T> = Arc<Mutex<Vec<T>>>;

fn note<T>(notes: &Notes<T>, what: T) {
    notes.lock().expect("no thread panicked").push(what);
}

fn noted<T>(notes: &Notes<T>) -> Vec<T> {
    std::mem::take(&mut notes.lock().expect("no thread panicked"))
}

fn ask(line: &str, control: &Control) -> Value {
    let answer = lab::crash(&request(line).to_string(), control).expect("a campaign");
    serde_json::from_str(&answer).expect("an answer is JSON")
}

#[test]
fn every_life_has_a_seed_of_its_own_and_its_share_of_the_work() {
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    puppet("sower", move |order| {
        let campaign = order.run.campaign.clone().expect("a campaign");
        let boot = order.run.boot.map(|boot| boot.seed);
        note(&seen, (boot, campaign.seed, order.run.transactions, campaign.points.clone()));
        changed(order, |crashes| {
            // Which points are chosen is then up to the seed alone.
            if campaign.points == Points::Count {
                crashes.passed = 100;
            }
        })
    });
    let answer = crash("sower scribble cores=1 txs=240 lives=3 points=64 seed=5 nested=false");
    assert_eq!(answer["boots"], 16);
    let cut: Vec<_> =
        noted(&notes).into_iter().filter(|(.., points)| *points != Points::Count).collect();
    let different = |of: &dyn Fn(usize) -> String| {
        (0..cut.len()).map(of).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(cut.len(), 17);
    assert_eq!(different(&|run| format!("{:?}", cut[run].0.unwrap_or(5))), 17, "seeds");
    assert!(different(&|run| format!("{:?}", cut[run].3)) > 15, "points");
    for (run, (boot, seed, txs, points)) in cut.iter().enumerate() {
        assert_eq!(boot.unwrap_or(5), *seed);
        let Points::These(points) = points else { panic!("{points:?}") };
        let expect = if run == 0 { (240, 64) } else { (30, 8) };
        assert_eq!((*txs, points.len()), expect);
    }
}

#[test]
fn what_later_lives_find_is_counted_together_and_told_with_all_that_came_before() {
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    puppet("old", move |order| {
        let cut = order.run.boot.map(|boot| boot.remains.cut);
        let is_last = order.run.campaign.as_ref().is_some_and(|campaign| campaign.keep == 0);
        changed(order, |crashes| {
            let Some(cut) = cut else { return };
            // A cut that says something in each of its fields.
            if is_last && cut.order > 0 && cut.nested.is_some() {
                crashes.violations.push(wrong("old"));
            }
            note(&seen, (is_last, cut, crashes.points, crashes.nested_points));
        })
    });
    let answer = crash("old scribble cores=1 txs=20 lives=3");
    let lives = noted(&notes);
    assert_eq!(answer["boots"], lives.len());
    assert_eq!(answer["later_points"], lives.iter().map(|life| life.2).sum::<u64>());
    assert_eq!(answer["later_nested_points"], lives.iter().map(|life| life.3).sum::<u64>());
    assert_eq!(answer["stopped"], true);
    let told = &answer["violations"][0];
    let after = told["after"].as_array().expect("a list");
    assert_eq!((&told["life"], after.len()), (&json!(3), 2), "{told}");
    let cut = lives.last().expect("a life").1;
    let expect = json!({ "event": cut.point, "order": cut.order, "nested": cut.nested });
    assert_eq!(after[1], expect);
    let is_first = |cut: &Cut| cut.point == after[0]["event"];
    assert!(lives.iter().any(|(is_last, cut, ..)| !is_last && is_first(cut)), "{told}");
    let early = json!([{ "line": "0x140", "class": "home_write_back", "bytes": 8 }]);
    assert_eq!(told["early"], early);
    let names = ["event", "order", "cycle", "nested", "nested_order", "address"];
    let expect = [json!(7), json!(1), json!(90), json!(3), json!(2), json!("0x28")];
    assert_eq!(names.map(|name| told[name].clone()), expect);
}

/// Without that a user could not tell what the image holds.
#[test]
fn an_image_in_which_writes_came_early_says_which_did() {
    let answer = crash("undo@x86 queue without=order_log_before_store");
    let told = &answer["violations"][0];
    assert_ne!(told["order"], 0, "{told}");
    let address = told["address"].as_str().and_then(|text| text.strip_prefix("0x"));
    let address = address.and_then(|hex| u64::from_str_radix(hex, 16).ok()).expect("an address");
    let line = json!(format!("{:#x}", address & !63));
    let early = told["early"].as_array().expect("a list");
    assert!(early.iter().any(|write| write["line"] == line && write["bytes"] == 64), "{told}");
    let first = |seed| {
        let answer = crash(&format!("undo@x86 queue seed={seed} without=flush_data"));
        answer["violations"][0].clone()
    };
    let timely = (1..=10).map(first).find(|told| told["order"] == 0);
    assert_eq!(timely.expect("a crash at which no write comes early")["early"], json!([]));
}

#[test]
fn machines_boot_only_from_what_a_right_life_left() {
    let wrong = crash("native scribble txs=20 lives=2");
    assert_eq!(wrong["boots"], 0);
    assert_eq!(wrong["violations"].as_array().map(Vec::len), Some(5));
    assert_eq!(wrong["stopped"], true);
    // One violation is enough for a design that is known to be wrong.
    let line = "redo@x86 scribble txs=60 lives=2 without=fence_waits";
    let broken = crash(line);
    assert_eq!(broken["violations"].as_array().map(Vec::len), Some(1), "{broken}");
    assert_eq!(broken["stopped"], true);
    assert_eq!(crash("silo scribble txs=20 lives=2")["stopped"], false);
}

/// It is enough if an image of any life was checked.
#[test]
fn a_campaign_has_checked_something_if_one_of_its_lives_has() {
    for checks in 0..3 {
        let name = ["first", "second", "third"][checks];
        let runs = Mutex::new(0);
        puppet(name, move |order| {
            let mut run = runs.lock().expect("no thread panicked");
            let checked = *run == checks;
            *run += 1;
            changed(order, |crashes| crashes.checked = checked)
        });
        let answer = crash(&format!("{name} scribble cores=1 txs=20 lives=2 nested=false"));
        assert_eq!(answer["checked"], true, "{name}");
        assert_eq!(answer["announced_few"], false, "{name}");
    }
}

/// All lives count together: a window of transactions that are not durable may be open at the end
/// of each. But one core does not answer for another.
#[test]
fn a_campaign_says_something_if_half_of_what_each_core_acknowledged_was_announced() {
    for (name, announced) in [("mute", [0, 0]), ("shy", [5, 5]), ("open", [6, 6]), ("odd", [6, 2])]
    {
        puppet(name, move |order| {
            let first = announced.map(|announced| Promises { acknowledged: 6, announced });
            let later = [Promises { acknowledged: 2, announced: 0 }; 2];
            let of_life = if order.run.boot.is_none() { first } else { later };
            changed(order, |crashes| crashes.promises = of_life.to_vec())
        });
        for lives in [1, 2] {
            let line = format!("{name} scribble cores=2 txs=2 points=3 lives={lives} nested=false");
            let answer = crash(&line);
            let of_core = 6 + 2 * answer["boots"].as_u64().expect("a number");
            let is_few = announced.iter().any(|announced| 2 * announced < of_core);
            assert_eq!(answer["acknowledged"], 2 * of_core, "{answer}");
            assert_eq!(answer["announced"], announced.iter().sum::<u64>(), "{answer}");
            assert_eq!(answer["announced_few"], is_few, "{answer}");
            assert_eq!(answer["checked"], !is_few, "{answer}");
        }
    }
    assert_ne!(crash("shy scribble cores=2 txs=2 points=3 lives=2")["boots"], 0);
}

#[test]
fn what_recovery_takes_is_told_as_a_mean_and_the_most() {
    puppet("reader", |order| {
        let recovery = Recovery { count: 2, read: 6, read_most: 4, written: 10, written_most: 7 };
        changed(order, |crashes| (crashes.recovery, crashes.nested_points) = (recovery, 11))
    });
    let answer = crash("reader scribble cores=1 txs=2");
    let expect = json!({
        "lines_read_mean": 3.0,
        "lines_read_max": 4,
        "lines_written_mean": 5.0,
        "lines_written_max": 7,
    });
    assert_eq!((&answer["recovery"], &answer["nested_points"]), (&expect, &json!(11)));
}

/// Otherwise a program that fails is the user's mistake, and a deadlock is a defect of ours.
#[test]
fn a_later_life_a_rule_that_is_off_and_a_users_design_are_to_blame_for_a_bad_end() {
    puppet("stuck", |order| match order.without.is_some() || order.run.boot.is_some() {
        true => Err(Failure::Deadlock("all wait".into())),
        false => changed(order, |_| ()),
    });
    puppet("failing", |order| match order.run.boot {
        Some(_) => Err(Failure::Stopped(Stop::Failed("a key is lost".into()))),
        None => changed(order, |_| ()),
    });
    let run = Box::leak(Box::new(|_: Order<'_>| Err(Failure::Deadlock("all wait".into()))));
    bring("mine", Entry { run, script: Some("mine"), ..designs::entry::<Template>() });
    for (line, life, text) in [
        ("stuck scribble txs=2 without=one", 1, "liveness: all wait"),
        ("stuck scribble txs=2 lives=2", 2, "liveness: all wait"),
        ("failing scribble txs=2 lives=2", 2, "workload: a key is lost"),
        ("mine scribble txs=2", 1, "liveness: all wait"),
    ] {
        let answer = crash(line);
        let told = &answer["violations"][0];
        assert_eq!((&told["life"], &told["text"]), (&json!(life), &json!(text)), "{line}");
        assert_eq!(answer["checked"], true, "{line}");
    }
}

/// A rule that makes no difference is not called caught.
#[test]
fn a_mutant_is_caught_only_where_the_same_run_with_the_rule_is_right() {
    puppet("wrong-too", |order| {
        let is_trial = seed(&order) == 3;
        let is_wrong = order.without == Some("one") || is_trial;
        let text = if order.without.is_none() { "with it, too" } else { "without it" };
        found(order, is_wrong, text)
    });
    let answer = crash("wrong-too scribble cores=1 txs=2 mutants=true");
    let [one, two] = [0, 1].map(|row| &answer["mutants"][row]);
    assert_eq!((&one["caught"], one.get("intact")), (&json!(true), None), "{one}");
    assert_eq!((&two["caught"], &two["intact"]), (&json!(false), &json!("with it, too")), "{two}");
    // The run is told in which the design itself is wrong.
    assert_eq!((&two["seed"], &two["event"], &two["life"]), (&json!(3), &json!(7), &json!(1)));
    assert_eq!((&two["workload"], &two["text"]), (&json!("scribble"), &two["intact"]), "{two}");
    assert!(two["cores"].is_u64() && two["txs"].is_u64() && two["settings"].is_object(), "{two}");
}

/// A rule that no hook of a script asks for is not looked for in every run that there is.
#[test]
fn a_rule_that_no_hook_asks_for_is_told_after_a_few_runs() {
    puppet("unasked", |order| {
        if let Some(rule) = order.without {
            note_asked(false);
            // The second rule is asked for in one run.
            note_asked(rule == "two" && seed(&order) == 9);
            // Runs that are refused show nothing either, and take no time.
            if rule == "two" && seed(&order) > 60 {
                return Err(Failure::Stopped(Stop::Input("too small".into())));
            }
        }
        changed(order, |_| ())
    });
    let answer = crash("unasked scribble cores=1 txs=2 mutants=true");
    let [one, two] = [0, 1].map(|row| &answer["mutants"][row]);
    assert_eq!((&one["caught"], &one["unasked"]), (&json!(false), &json!(40)), "{one}");
    assert_eq!((&two["caught"], two.get("unasked")), (&json!(false), None), "{two}");
    assert!(two["refusal"].as_str().is_some_and(|text| text.contains("too small")), "{two}");
    assert!(two["unmade"].as_u64() > Some(200), "{two}");
}

/// A log that is too small says so with its rule, and is written over without it, which shows.
#[test]
fn a_mutant_is_caught_where_the_same_run_with_the_rule_is_refused() {
    puppet("small", |order| match (order.without, seed(&order)) {
        (None, 2) => Err(Failure::Stopped(Stop::Input("too small".into()))),
        // A run that is refused without the rule shows nothing.
        (Some("two"), 2) => Err(Failure::Stopped(Stop::Input("too small".into()))),
        (without, seed) => {
            let is_wrong = without.is_some() && (seed == 2 || seed == 3);
            found(order, is_wrong, "written over")
        }
    });
    let answer = crash("small scribble cores=1 txs=2 mutants=true");
    let [one, two] = [0, 1].map(|row| &answer["mutants"][row]);
    assert_eq!((&one["caught"], &one["seed"]), (&json!(true), &json!(2)), "{one}");
    assert!(one["refused"].as_str().is_some_and(|text| text.contains("too small")), "{one}");
    assert_eq!((&two["caught"], &two["refused"]), (&json!(true), &Value::Null), "{two}");
    assert_eq!((&two["seed"], two.get("unmade")), (&json!(3), None), "{two}");
}

/// What a mutant raises is not what the rule is for; and a mutant that raises again and again is
/// not tried any further.
#[test]
fn a_mutant_that_only_raises_is_not_caught() {
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    puppet("raiser", move |order| {
        note(&seen, order.without.is_some());
        if order.without.is_some() {
            resume_unwind(Box::new(Raised { text: "no key".into(), declined: false }));
        }
        changed(order, |_| ())
    });
    let answer = crash("raiser scribble cores=1 txs=2 mutants=true");
    let row = &answer["mutants"][0];
    assert_eq!((&row["caught"], &row["raises"]), (&json!(false), &json!("raises: no key")));
    assert_eq!(noted(&notes).into_iter().filter(|without| *without).count(), 2 * 20);
}

#[test]
fn a_mutant_is_looked_for_in_the_users_run_first_or_where_it_was_caught_before() {
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    puppet("known", move |order| {
        let campaign = order.run.campaign.as_ref().expect("a campaign");
        let what = (campaign.seed, order.run.transactions, campaign.points.clone());
        let without = order.without;
        if without.is_some() {
            note(&seen, what);
        }
        let is_wrong = without.is_some() && order.run.boot.is_some();
        found(order, is_wrong, "in a later life")
    });
    let mut asked = request("known scribble cores=1 txs=50 mutants=true lives=1 points=9");
    asked["caught_with"] = json!({ "two": 242 });
    let answer = crate::common::crash_as(&asked);
    let [one, two] = [0, 1].map(|row| &answer["mutants"][row]);
    for row in [one, two] {
        assert_eq!((&row["life"], &row["lives"]), (&json!(2), &json!(3)), "{row}");
    }
    let runs = noted(&notes);
    assert_eq!(runs[..2], [(1, 20, Points::All), (1, 50, Points::All)], "of the first rule");
    let of_two = runs.iter().rposition(|(seed, ..)| *seed == 242).expect("it was looked for there");
    assert_ne!(runs[of_two - 1].0, 1, "the second was looked for there first");
    assert_eq!(two["seed"], 242);
}

#[test]
fn trials_are_other_runs_than_the_users_and_end_with_the_first_that_is_wrong() {
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    puppet("tried", move |order| {
        let campaign = order.run.campaign.as_ref().expect("a campaign");
        let (nested, seed, is_first) = (campaign.nested, campaign.seed, order.run.boot.is_none());
        assert_eq!(order.without, Some("one"));
        if seed == 2 || seed == 3 {
            return Err(Failure::Stopped(Stop::Input(format!("too small for {seed}"))));
        }
        changed(order, |crashes| {
            crashes.checked = seed != 4;
            crashes.violations.extend((seed == 5).then(|| wrong("tried")));
            note(
                &seen,
                (is_first.then_some((seed, nested)), crashes.points + crashes.nested_points),
            );
        })
    });
    // Settings of the user's workload are not carried to the workload of trials.
    let line = "tried hash cores=1 txs=2 nested=false without=one trials=9 workload.buckets=8";
    let trials = &crash(line)["trials"];
    let runs = noted(&notes);
    let firsts: Vec<_> = runs.iter().filter_map(|(first, _)| *first).collect();
    // The campaign itself comes first. The first trial has its recoveries interrupted, and every
    // third has more lives.
    let expect = [(1, false), (1, true), (241, false), (4, false), (242, false), (5, false)];
    assert_eq!(firsts, expect);
    assert!(runs.len() > firsts.len(), "later lives");
    assert_eq!((&trials["runs"], &trials["checked"]), (&json!(5), &json!(4)));
    assert_eq!(trials["points"], runs[1..].iter().map(|(_, points)| points).sum::<u64>());
    assert_eq!((&trials["wrong"]["seed"], &trials["wrong"]["nested"]), (&json!(5), &json!(false)));
    assert_eq!(trials["refused"], 2);
    let refusal = trials["refusal"].as_str().expect("a sentence");
    assert!(refusal.contains("too small for 2"), "{refusal}");
}

#[test]
fn a_trial_says_whether_its_recoveries_were_interrupted() {
    puppet("nested", |order| {
        let is_nested = order.run.campaign.as_ref().is_some_and(|asked| asked.nested);
        found(order, is_nested, "nested")
    });
    let answer = crash("nested scribble cores=1 txs=2 nested=false trials=1");
    assert_eq!(answer["trials"]["wrong"]["nested"], true, "{answer}");
    // No trials are made of a design that is wrong as it is.
    assert_eq!(crash("nested scribble cores=1 txs=2 trials=1")["trials"], Value::Null);
}

#[test]
fn what_is_to_be_done_is_done_in_the_end() {
    puppet("busy", |order| match seed(&order) {
        2 => Err(Failure::Stopped(Stop::Input("too small".into()))),
        _ => {
            let is_wrong = order.without.is_some();
            found(order, is_wrong, "without the rule")
        }
    });
    let total = |rest: &str| {
        let control = Control::default();
        ask(&format!("busy scribble cores=1 txs=20 {rest}"), &control);
        assert_eq!(control.done(), control.total(), "{rest}");
        assert_eq!(control.part(), "", "{rest}");
        control.total()
    };
    // Where some crash points are chosen they are counted first.
    assert_eq!(total("lives=2 points=3"), 2 * total("lives=2"));
    total("trials=4");
    total("mutants=true");
}

/// Runs that were begun come to their end, and no other begins.
#[test]
fn a_campaign_that_is_interrupted_says_so_and_begins_nothing() {
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    puppet("cut", move |order| {
        let control = order.run.control;
        let what = (order.run.boot.is_some(), order.without.is_some(), seed(&order) == 241);
        let answer = found(order, false, "");
        note(&seen, what);
        if what != (false, false, false) {
            control.cancel();
        }
        answer
    });
    // The campaign itself is the first run; the third trial has more lives.
    for (rest, runs) in [("lives=2", 2), ("mutants=true", 2), ("trials=9", 4)] {
        let control = Control::default();
        let answer = ask(&format!("cut scribble cores=1 txs=20 {rest}"), &control);
        assert_eq!(answer["cancelled"], true, "{rest}");
        assert_eq!(noted(&notes).len(), runs, "{rest}");
        if rest == "lives=2" {
            assert_eq!(answer["boots"], 1);
            assert!(control.done() < control.total(), "not all was done");
        }
    }
}

/// A trace with three flushes and a fence.
const TRACE: &str = "region 0x10000 4096\nmeasured\nstore 0x10000 1\nflush 0x10000\n\
    flush 0x10040\nflush 0x10080\nfence";

#[test]
fn a_checker_sees_more_orders_and_each_run_that_leaves_something_out_ends_when_it_is_noticed() {
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    puppet("asked", move |order| {
        let campaign = order.run.campaign.clone().expect("a campaign");
        note(&seen, (order.run.exact, campaign.reorders, campaign.violations_max, campaign.nested));
        assert_eq!(order.without, None);
        changed(order, |_| ())
    });
    let bench = Bench::new("exit 0");
    bench.ask("asked replay leave_out=2", TRACE).expect("a campaign");
    assert_eq!(noted(&notes), [(true, 8, 5, true), (true, 8, 1, false), (true, 8, 1, false)]);
    bench.ask("asked replay workload.leave_out=4", TRACE).expect("a campaign");
    assert_eq!(noted(&notes), [(true, 8, 1, true)]);
    crash("asked scribble txs=2");
    assert_eq!(noted(&notes), [(false, 2, 5, true)]);
}

#[test]
fn which_flushes_and_fences_are_left_out_is_up_to_the_seed() {
    puppet("chooser", |order| found(order, false, ""));
    let bench = Bench::new("exit 0");
    let places = |rest: &str| {
        let answer = bench.ask(&format!("chooser replay {rest}"), TRACE).expect("a campaign");
        let rows = answer["left_out"].as_array().expect("a list").iter();
        rows.map(|row| row["place"].as_u64().expect("a line")).collect::<Vec<_>>()
    };
    assert_eq!(places("leave_out=9"), [4, 5, 6, 7]);
    let mut seen: Vec<u64> =
        (1..=8).flat_map(|seed| places(&format!("leave_out=1 seed={seed}"))).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [4, 5, 6, 7]);
}

/// What an interruption left undone might have been noticed, or not.
#[test]
fn what_was_not_left_out_to_the_end_is_not_called_unnoticed() {
    for is_wrong in [false, true] {
        let name = if is_wrong { "late" } else { "early" };
        let notes = Notes::default();
        let seen = Arc::clone(&notes);
        puppet(name, move |order| {
            assert_eq!(order.without, Some("one"));
            let control = order.run.control;
            let is_second = order.run.campaign.as_ref().is_some_and(|asked| !asked.nested) && {
                note(&seen, ());
                seen.lock().expect("no thread panicked").len() == 2
            };
            let answer = found(order, is_second && is_wrong, "noticed");
            control.cancelled.fetch_or(is_second, Ordering::Relaxed);
            answer
        });
        let line = format!("{name} replay leave_out=all without=one");
        let answer = Bench::new("exit 0").ask(&line, TRACE).expect("a campaign");
        let rows = answer["left_out"].as_array().expect("a list").iter();
        let noticed: Vec<_> = rows.map(|row| row["noticed"].as_bool()).collect();
        assert_eq!(noticed, [Some(false), is_wrong.then_some(true), None, None]);
        assert_eq!(noted(&notes).len(), 2);
    }
}

#[test]
fn only_what_is_wrong_with_the_campaign_itself_is_kept() {
    let bench = Bench::new(VERIFY);
    let folder = tempfile::TempDir::new().expect("a folder");
    let images = folder.path().join("images");
    let line = format!("undo@x86 replay leave_out=all mutants=true images={}", images.display());
    let answer = bench.ask(&line, GOOD).expect("a campaign");
    assert_eq!(answer["left_out"][0]["noticed"], true, "{answer}");
    assert_eq!(answer["mutants"][0]["caught"], true, "{answer}");
    let kept = std::fs::read_dir(images).map_or(0, Iterator::count);
    assert_eq!(kept, 0);
}

/// This holds after the campaign itself was done, too.
#[test]
fn a_checker_that_cannot_be_run_any_more_ends_whatever_it_was_asked_for() {
    let runs = r#"echo >> "$0.runs"; "#;
    let plain = Bench::new(&format!("{runs}{VERIFY}"));
    let images =
        plain.ask("undo@x86 replay", GOOD).expect("a campaign")["checker"]["images"].clone();
    // The checker was asked about garbage, too.
    let most = images.as_u64().expect("a number") + 1;
    let script = format!("{runs}[ $(wc -l < \"$0.runs\") -le {most} ] || exec ./nothing\n{VERIFY}");
    for rest in ["leave_out=all", "mutants=true"] {
        let error = Bench::new(&script).ask(&format!("undo@x86 replay {rest}"), GOOD);
        let text = error.expect_err("it cannot be run").to_string();
        assert!(text.contains("exit code 127"), "{text}");
    }
}

/// A counter that stayed 0 is listed, in the order of the design, and one that did not is not.
#[test]
fn what_never_happened_is_told() {
    puppet("idle", |order| {
        let is_later = order.run.boot.is_some();
        changed(order, |crashes| {
            let counted = [("none", 0), ("also", 0), ("some", 3), ("most_max", 0), ("x_cycles", 0)];
            crashes.counted = Some(if is_later { vec![("later", 0)] } else { counted.to_vec() });
        })
    });
    assert_eq!(crash("idle scribble cores=2 txs=5 lives=2")["never"], json!(["none", "also"]));
    puppet("ended", |order| changed(order, |crashes| crashes.counted = None));
    assert_eq!(crash("ended scribble cores=2 txs=5 lives=1")["never"], Value::Null);
    assert_eq!(crash("undo@x86 hash cores=2 txs=5 lives=1")["never"], json!([]), "it has none");
}
