//! What the suites share: a request written as one line, and its answer.
//!
//! A request reads `DESIGN WORKLOAD key=value ...`: a key with a dot is a setting, any other one a
//! field of the spec. Runs are on the machine `tiny`, and machines have one life, unless the line
//! says otherwise.

use std::collections::BTreeMap;
use std::sync::Mutex;

use designs::{Entry, Order};
use lab::Control;
use lab::scripts::found_by;
use lab::spec::{Spec, Usual};
use model::config::Config;
use model::crash::Campaign;
use model::design::{Durability, Granularity};
use model::engine::{Outcome, Run};
use model::params::Field;
use model::workload::Workload;
use serde_json::{Map, Value, json};

/// The names of `ONLY=mine,yours`, if that is in the environment: designs, and ordering hardware,
/// which stands for itself and for every design on it.
///
/// When nothing has such a name: everything would pass.
pub fn only() -> Option<String> {
    let only = std::env::var("ONLY").ok()?;
    let every = || designs::ALL.iter().chain(designs::ORDERS);
    for name in only.split(',') {
        assert!(
            every().any(|entry| is_of(entry, name)),
            "ONLY names neither a design nor ordering hardware: `{name}`; `indelible list designs` \
             has the designs, `indelible litmus` the hardware"
        );
    }
    Some(only)
}

fn is_of(entry: &Entry, name: &str) -> bool {
    entry.card.name == name || entry.stands_on == Some(name)
}

fn chosen(entries: &'static [Entry]) -> impl Iterator<Item = &'static Entry> {
    let only = only();
    entries.iter().filter(move |entry| {
        only.as_ref().is_none_or(|only| only.split(',').any(|name| is_of(entry, name)))
    })
}

/// Every design, or those of [`only`].
pub fn all() -> impl Iterator<Item = &'static Entry> {
    chosen(designs::ALL)
}

/// All ordering hardware, or that of [`only`].
pub fn orders() -> impl Iterator<Item = &'static Entry> {
    chosen(designs::ORDERS)
}

/// The designs that promise something.
pub fn durable() -> impl Iterator<Item = &'static Entry> {
    all().filter(|entry| entry.card.durability != Durability::None)
}

/// The designs that promise nothing.
pub fn fragile() -> impl Iterator<Item = &'static Entry> {
    all().filter(|entry| entry.card.durability == Durability::None)
}

static BROUGHT: Mutex<BTreeMap<&str, &Entry>> = Mutex::new(BTreeMap::new());

/// Has a design that is in no list found by this name in requests.
pub fn bring(name: &'static str, entry: Entry) {
    found_by(|name| Ok(BROUGHT.lock().expect("no thread panicked").get(name).copied()));
    let entry = Box::leak(Box::new(entry));
    BROUGHT.lock().expect("no thread panicked").insert(name, entry);
}

/// Whether a design versions or logs whole lines.
pub fn is_line_granular(entry: &Entry) -> bool {
    entry.card.granularity == Granularity::Line
}

/// A request as the JSON that `lab` reads.
pub fn request(line: &str) -> Value {
    let mut words = line.split_whitespace();
    let mut spec = Map::new();
    let mut settings = Map::new();
    for name in ["design", "workload"] {
        spec.insert(name.into(), words.next().expect("a design and a workload").into());
    }
    spec.insert("machine".into(), "tiny".into());
    spec.insert("lives".into(), 1.into());
    for word in words {
        let (key, value) = word.split_once('=').expect("key=value");
        if key.contains('.') {
            settings.insert(key.into(), value.into());
        } else {
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            spec.insert(key.into(), value);
        }
    }
    spec.insert("settings".into(), settings.into());
    spec.into()
}

/// The answer to a request for a run.
pub fn run(line: &str) -> Value {
    answer(line, lab::run)
}

/// The answer to a request for a crash campaign.
pub fn crash(line: &str) -> Value {
    answer(line, lab::crash)
}

/// The answer to a request for a crash campaign, as JSON.
pub fn crash_as(request: &Value) -> Value {
    let text = lab::crash(&request.to_string(), &Control::default());
    let text = text.unwrap_or_else(|error| panic!("{request}: {error}"));
    serde_json::from_str(&text).expect("an answer is JSON")
}

fn answer(line: &str, ask: fn(&str, &Control) -> Result<String, lab::InputError>) -> Value {
    let text = ask(&request(line).to_string(), &Control::default());
    let text = text.unwrap_or_else(|error| panic!("{line}: {error}"));
    serde_json::from_str(&text).expect("an answer is JSON")
}

/// The line of a request with which one core replays a trace once, without a warm-up.
pub fn replayed(line: &str, trace: &str) -> String {
    format!("{line} cores=1 txs={} warmup=0", trace.matches("commit\n").count())
}

/// The events of the whole timeline of such a replay.
pub fn timeline(line: &str, trace: &str) -> Vec<Value> {
    let mut request = request(&replayed(line, trace));
    request["script"] = json!(["a.trace", trace]);
    let asked = json!({ "run": request, "from": "0ns", "length": "1s" });
    let (answer, _) = lab::trace(&asked.to_string(), &Control::default()).expect("a timeline");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    answer["events"].as_array().expect("events").clone()
}

/// When the controllers' queues accept the writes of a class that the replay of a trace makes on
/// one core of the machine `silo`, in order.
pub fn accepted(line: &str, trace: &str, class: &str) -> Vec<u64> {
    let events = timeline(&format!("{line} machine=silo"), trace);
    let queued = events.iter().filter(|event| event["lane"] == "write-pending queue");
    let of = queued.filter(|event| event["what"].as_str().expect("text").starts_with(class));
    let mut times: Vec<u64> = of.map(|event| event["from"].as_u64().expect("cycles")).collect();
    times.sort_unstable();
    times
}

/// The violations of a campaign, as text that says how to see them again; empty if there are none.
pub fn violations(line: &str, answer: &Value) -> String {
    let found = answer["violations"].as_array().expect("a list");
    match found.first() {
        None => String::new(),
        Some(first) => format!("{}\n  {first:#}\n", command(line)),
    }
}

/// The command that makes a campaign again.
pub fn command(line: &str) -> String {
    let request = request(line);
    let mut text = "indelible crash".to_owned();
    for (key, value) in request.as_object().expect("an object") {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match key.as_str() {
            "settings" => (),
            "nested" if value == "false" => text.push_str(" --no-nested"),
            "nested" => (),
            _ => text.push_str(&format!(" --{key} {value}")),
        }
    }
    for (path, value) in request["settings"].as_object().expect("an object") {
        text.push_str(&format!(" --set {path}={}", value.as_str().unwrap_or_default()));
    }
    text
}

/// Cuts the power of every line's run and panics with all violations, if there are any, and with
/// the campaigns that checked too little for a verdict.
pub fn all_hold(lines: impl IntoIterator<Item = String>) {
    let mut found = String::new();
    for line in lines {
        let answer = crash(&line);
        found += &violations(&line, &answer);
        if answer["checked"] != true {
            found += &format!("{}\n  checks too little\n", command(&line));
        }
    }
    assert!(found.is_empty(), "{found}");
}

/// The setting that gives a design a window of `sd` transactions, if it announces transactions by
/// the window: too few of them would be announced where a run is short.
pub fn window(entry: &Entry, sd: u8) -> String {
    let has_window = entry.fields.iter().any(|field| field.name == "sd");
    if has_window { format!("design.sd={sd}") } else { String::new() }
}

/// What a request comes to, for tests that go past the answers.
pub fn resolve(line: &str) -> lab::spec::Resolved {
    let spec = Spec::read(&request(line).to_string()).expect("a spec");
    spec.resolve(Usual::RUN).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// A run of a workload by every core, once each, with every rule and parameter as it is by default.
pub fn order<'a>(
    config: &'a Config,
    cores: u8,
    workload: Box<dyn Workload>,
    campaign: Option<Campaign>,
    control: &'a Control,
) -> Order<'a> {
    let run = Run { campaign, ..Run::new(config, cores, workload, control) };
    Order { settings: &[], without: None, run }
}

/// Runs a workload on a machine with a design, every rule and parameter as it is by default.
pub fn play(
    design: &Entry,
    config: &Config,
    cores: u8,
    workload: Box<dyn Workload>,
    transactions: u64,
    campaign: Option<Campaign>,
) -> Outcome {
    let control = Control::default();
    let order = order(config, cores, workload, campaign, &control);
    (design.run)(Order { run: Run { transactions, ..order.run }, ..order }).expect("the run ends")
}

/// The answer without what depends on the host.
pub fn without_host(mut answer: Value) -> String {
    let host = answer.as_object_mut().expect("an object").remove("host");
    assert_ne!(host, None, "a row says how long it took");
    answer["host"] = json!({});
    answer.to_string()
}

/// The settings that make a design's structures as small as mutants have them.
pub fn tight(entry: &designs::Entry) -> String {
    let is_tight = |field: &&Field| !field.tight.is_empty() && field.name != "log_lines";
    let fields = entry.fields.iter().filter(is_tight);
    let set = |field: &Field| format!(" design.{}={}", field.name, field.tight[0]);
    fields.map(set).collect()
}
