//! The timeline of a part of a run, by name: a trace for Perfetto, and the same as rows.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use model::config::{Config, Unit};
use model::control::Control;
use model::crash::{Campaign, Check, Points};
use model::device::Use;
use model::meters::{Class, Stall};
use model::oracle::Early;
use model::recorder::{SPANS_MAX, Span};
use model::timeline::{Asked, Awaits, Fetch, Happening, Recorded, Wanted};
use model::units::{CoreId, Line, Word};
use model::workload::Flush;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::InputError;
use crate::experiment::{Made, Recording, make};
use crate::lives::no_event;
use crate::perfetto::{self, Counter};
use crate::quantity;
use crate::results;
use crate::scripts;
use crate::spec::{Resolved, Spec, Usual};

/// What is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    run: Spec,
    /// The time after measuring begins at which recording begins.
    from: String,
    /// How long is recorded.
    length: String,
    /// The crash point of a campaign, as a violation names it, up to which is recorded instead.
    event: Option<u64>,
    /// An address: only what touches its line is shown.
    address: Option<String>,
}

/// An event of a timeline as it is shown.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The group of lanes that it belongs to: a core, a controller, the design.
    pub group: String,
    /// The lane in that group.
    pub lane: String,
    /// The places of the two: of the group among groups, and of the lane in the group.
    pub place: (usize, usize),
    /// What happened, in a few words.
    pub name: String,
    /// When it began, in cycles since measuring began.
    pub from: u64,
    /// When it ended.
    pub until: u64,
    /// What else is known of the event.
    pub args: Vec<(&'static str, Arg)>,
    /// The write that the event is a part of: its arrival and its stay in a queue have the same
    /// one.
    pub flow: Option<u64>,
    /// The first line that the event touches, and how many it touches.
    lines: Option<(Line, u64)>,
    instant: bool,
}

impl Shown {
    /// Whether the event takes no time by its nature.
    pub fn is_instant(&self) -> bool {
        self.instant
    }
}

/// Something known of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// A number.
    Number(u64),
    /// Anything else.
    Text(String),
}

/// Runs an experiment and records a part of it: the answer as JSON, and the trace for Perfetto.
/// Of a run that fails, the answer has what was recorded of that part, and the error.
///
/// # Errors
/// A sentence that says what is unknown or impossible.
///
/// # Panics
/// On a defect of the simulator or of a design.
pub fn trace(request: &str, control: &Control) -> Result<(String, Vec<u8>), InputError> {
    let mut request: Request = serde_json::from_str(request).map_err(InputError::not_understood)?;
    request.run = request.run.checked()?;
    let spec = &request.run;
    let usual = if request.event.is_some() { Usual::CAMPAIGN } else { Usual::RUN };
    let mut resolved = spec.resolve(usual)?;
    let config = &resolved.machine.config.clone();
    let length = cycles(&request.length, "for", config)?;
    if length == 0 {
        return Err(InputError::new("for is 0 cycles; it must be a time such as 20us"));
    }
    let line = request.address.as_deref().map(line_of).transpose()?;
    let mut part = match request.event {
        Some(event) => Asked::Until { point: event, length },
        None => Asked::From { after: cycles(&request.from, "from", config)?, length },
    };
    let (mut recorded, mut made) = record(&resolved, part, spec.epochs, control);
    let is_in_warmup = recorded.as_ref().is_some_and(|recorded| recorded.window.is_empty());
    if made.is_err() && is_in_warmup && resolved.warmup > 0 {
        let warmup = std::mem::take(&mut resolved.warmup);
        resolved.txs += warmup;
        let told = "it failed in the warm-up, whose last part is shown; cycle 0 is its beginning";
        resolved.notes.push(told.into());
        part = Asked::Last { length };
        (recorded, made) = record(&resolved, part, spec.epochs, control);
    }
    let (recorded, made) = match (recorded, made) {
        (Some(recorded), Err(error)) if recorded.has_reached(part) => (recorded, Err(error)),
        (_, Err(error)) => return Err(error),
        (recorded, Ok(made)) => {
            let recorded = recorded.expect("a timeline was asked for");
            has_window(&recorded, &made, &request, config)?;
            (recorded, Ok(made))
        }
    };
    if let Some(holds) = recorded.holds {
        return Err(match made {
            Err(error) => error,
            Ok(_) => too_long(&request.length, holds, config),
        });
    }
    let since = |cycle: u64| cycle.saturating_sub(recorded.started);
    let frequency = config.core.frequency;
    let window = since(recorded.window.start)..since(recorded.window.end.min(recorded.ended));
    let mut shown = show(&recorded, resolved.design.card.name, &Called::default());
    let touched = touched(&shown);
    let counters = occupancy(&shown, &window);
    if let Some(line) = line {
        shown.retain(|event| event.group == POWER || event.touches(line));
    }
    let trace = perfetto::encode(&shown, &counters, frequency);
    let (run, error) = match made {
        Ok(made) => (made.row(spec, &resolved), None),
        Err(error) => (results::unfinished(&resolved), Some(error.text)),
    };
    let answer = json!({
        "run": run,
        "error": error,
        "frequency": frequency,
        "started": recorded.started,
        "from": window.start,
        "until": window.end,
        "event": request.event,
        "cut": recorded.cut.map(since),
        "translates": resolved.design.translates,
        "touched": touched,
        "events": shown.iter().map(row).collect::<Vec<_>>(),
    });
    Ok((answer.to_string(), trace))
}

/// Makes a run and records a part of it, which there is of a run that fails, too.
fn record(
    resolved: &Resolved,
    part: Asked,
    epochs: bool,
    control: &Control,
) -> (Option<Recorded>, Result<Made, InputError>) {
    let kept = RefCell::new(None);
    let ends_at_cut = matches!(part, Asked::Until { .. });
    let recording = Recording {
        epochs,
        timeline: Some(Wanted { part, kept: &kept }),
        crashes: ends_at_cut.then(|| counting(resolved.seed)),
    };
    let made = scripts::caught(|| make(resolved, recording, control));
    (kept.take(), made)
}

/// Refuses a window that a run which has ended well has not come to.
fn has_window(
    recorded: &Recorded,
    made: &Made,
    request: &Request,
    config: &Config,
) -> Result<(), InputError> {
    let cancelled = made.outcome.report.cancelled;
    if let Some(event) = request.event
        && recorded.cut.is_none()
        && !cancelled
    {
        let points = made.outcome.crashes.as_ref().map_or(0, |crashes| crashes.passed);
        return Err(no_event(event, points));
    }
    if recorded.window.start >= recorded.ended && !cancelled {
        let ended = recorded.ended.saturating_sub(recorded.started);
        return Err(InputError::new(format!(
            "the run ends {} after measuring begins, and from is {}; lower it, or raise txs",
            quantity::print(picoseconds(ended, config.core.frequency), Unit::Time),
            request.from
        )));
    }
    Ok(())
}

/// The first and the last byte of the lines that events touch, in each memory; null if they touch
/// none there.
fn touched(shown: &[Shown]) -> Value {
    let range = |is_of_it: fn(Line) -> bool| {
        let all = || shown.iter().filter_map(|event| event.lines);
        let lines = || all().filter(|(first, _)| is_of_it(*first));
        let first = lines().map(|(first, _)| first.address()).min()?;
        let last = lines().map(|(first, count)| Line(first.0 + count).address() - 1).max()?;
        Some([first, last].map(|address| format!("{address:#x}")))
    };
    json!({
        "persistent": range(Line::is_persistent),
        "volatile": range(|line| !line.is_persistent()),
    })
}

/// A campaign that counts crash points and cuts the power at none.
fn counting(seed: u64) -> Campaign {
    Campaign {
        points: Points::Count,
        nested: false,
        reorders: 0,
        violations_max: 1,
        seed,
        keep: 0,
        check: Check::Transactions,
    }
}

/// Converts a time that the user wrote to cycles.
fn cycles(text: &str, name: &str, config: &Config) -> Result<u64, InputError> {
    let time = quantity::parse(text, Unit::Time, config.core.frequency)
        .map_err(|error| InputError::new(format!("{name}: {error}")))?;
    Ok(config.cycles(time))
}

fn picoseconds(cycles: u64, frequency: u64) -> u64 {
    (u128::from(cycles) * 1_000_000_000_000 / u128::from(frequency)) as u64
}

/// The error that more happens in a time than a timeline holds. It names a shorter time, with two
/// digits, that a timeline holds.
fn too_long(asked: &str, holds: u64, config: &Config) -> InputError {
    let holds = picoseconds(holds, config.core.frequency);
    let size = 10_u64.pow(holds.checked_ilog10().unwrap_or(0).saturating_sub(1));
    InputError::new(format!(
        "more happens in {asked} than a timeline holds, {SPANS_MAX} events of a kind; lower --for \
         to {}",
        quantity::print(holds / size * size, Unit::Time)
    ))
}

/// The line of an address that the user wrote, hexadecimal or not.
fn line_of(text: &str) -> Result<Line, InputError> {
    let wrong =
        || InputError::new(format!("`{text}` is not an address; write one such as 0x3f1080"));
    quantity::integer(text).map(Line::of).ok_or_else(wrong)
}

/// The group of what concerns the whole machine.
const POWER: &str = "power";

/// Describes what was recorded of a machine with a design.
pub(crate) fn show(recorded: &Recorded, design: &str, called: &Called) -> Vec<Shown> {
    let end = recorded.cut.unwrap_or(u64::MAX);
    let time = |cycle: u64| cycle.min(end).saturating_sub(recorded.started);
    let spans = recorded.spans.iter().map(|span| {
        let shown = name(span, design, called);
        Shown { from: time(span.from), until: time(span.until), ..shown }
    });
    spans.collect()
}

/// What words of memory are called, and the lines that they are in: the others have addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Called(pub Vec<(String, Word)>);

impl Called {
    /// A word.
    pub(crate) fn word(&self, word: Word) -> String {
        let found = self.0.iter().find(|(_, other)| *other == word);
        found.map_or_else(|| format!("{:#x}", word.address()), |(name, _)| name.clone())
    }

    /// A line, by all its words that have a name.
    pub(crate) fn line(&self, line: Line) -> String {
        let words = self.0.iter().filter(|(_, word)| word.line() == line);
        let names: Vec<&str> = words.map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { format!("{:#x}", line.address()) } else { names.join(", ") }
    }

    /// A sentence of a violation, in which addresses of words stand behind `at` and `to`.
    pub(crate) fn in_sentence(&self, text: &str) -> String {
        let mut is_place = false;
        let parts = text.split_inclusive(' ').map(|part| {
            let word = part.trim_end_matches([' ', ',']);
            let was_place = std::mem::replace(&mut is_place, ["at", "to"].contains(&word));
            let digits = word.strip_prefix("0x").filter(|_| was_place);
            match digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
                Some(address) => self.word(Word::of(address)) + &part[word.len()..],
                None => part.to_owned(),
            }
        });
        parts.collect()
    }
}

/// Describes something that happened.
fn name(span: &Span<Happening>, design: &str, called: &Called) -> Shown {
    let core = |id: CoreId, lane, name| of((2, usize::from(id.0)), id.to_string(), lane, name);
    let controller = |index, lane, name: String| {
        of((3, index), format!("controller {index}"), (lane, LANES[lane]), name)
    };
    let hexadecimal = |value: u64| Arg::Text(format!("{value:#x}"));
    match &span.what {
        Happening::Transaction(id, tx) => core(*id, PROGRAM, format!("transaction {}", tx.0)),
        Happening::Commit(id, tx) => core(*id, (1, "commits"), format!("commit {}", tx.0)),
        Happening::Wait(id, stall) => core(*id, (2, "waits"), stall_name(*stall)),
        Happening::Store(id, word, old, new) => {
            let name = format!("store {}", called.word(*word));
            core(*id, PROGRAM, name)
                .instant()
                .about(word.line())
                .with("new", hexadecimal(*new))
                .with("old", hexadecimal(*old))
        }
        Happening::Flush(id, line, how) => {
            let name = format!("{} {}", flush_name(*how), called.line(*line));
            core(*id, PROGRAM, name).instant().about(*line)
        }
        Happening::Fence(id, Awaits::Order) => core(*id, PROGRAM, "fence, order".into()).instant(),
        Happening::Fence(id, Awaits::Durability) => {
            core(*id, PROGRAM, "fence, durability".into()).instant()
        }
        Happening::Aborted(id, tx) => core(*id, PROGRAM, format!("aborted {}", tx.0)).instant(),
        Happening::Fetch(id, Fetch { line, write, earlier }) => {
            let why = if *write { "fetch to write" } else { "fetch" };
            let name = format!("{why} {}", called.line(*line));
            let shown = core(*id, (3, "fetches"), name).about(*line);
            if *earlier == 0 { shown } else { shown.with("earlier", Arg::Number(*earlier)) }
        }
        Happening::Arriving(index, sent) => {
            let name = format!("{} {}", class_name(sent.class), called.line(sent.line));
            let shown = controller(*index, 0, name)
                .about(sent.line)
                .with("bytes", Arg::Number(sent.bytes.into()))
                .following(Some(sent.number));
            if sent.accepted { shown } else { shown.with("accepted", Arg::Text("no".into())) }
        }
        Happening::Queued(index, queued) => {
            let class = queued.class.map_or("kept by the design".into(), class_name);
            controller(*index, 1, format!("{class} {}", called.line(queued.line)))
                .about(queued.line)
                .with("writes", Arg::Number(queued.writes))
                .following(queued.first)
        }
        Happening::Bank(index, used) => bank((3, *index), used, "bank", 2),
        Happening::VolatileBank(index, used) => bank((3, *index), used, "DRAM bank", 1_000),
        Happening::Design(event) => {
            of((1, 0), design.to_owned(), (0, "events"), in_words(event, called)).instant()
        }
        Happening::PowerLoss => {
            of((0, 0), POWER.into(), (0, POWER), "power failure".into()).instant()
        }
    }
}

/// Writes the numbers in the text of a design's event as a person does.
fn in_words(event: &str, called: &Called) -> String {
    let line = |number: u64| called.line(Line(number));
    let word = |number: u64| called.word(Word(number));
    let mut text = event.to_owned();
    for (kind, shown) in [
        ("CoreId(", &(|number| format!("core {number}")) as &dyn Fn(u64) -> String),
        ("TxId(", &|number| format!("transaction {number}")),
        ("Line(", &line),
        ("Word(", &word),
    ] {
        let mut from = 0;
        while let Some(place) = text[from..].find(kind).map(|place| from + place) {
            let digits = place + kind.len();
            let Some(length) = text[digits..].find(')') else { break };
            let Ok(number) = text[digits..digits + length].parse() else { break };
            let shown = shown(number);
            text.replace_range(place..=digits + length, &shown);
            from = place + shown.len();
        }
    }
    text
}

const PROGRAM: (usize, &str) = (0, "program");

/// The lanes of a controller before its banks.
const LANES: [&str; 2] = ["arriving", "write-pending queue"];

fn bank((group, index): (usize, usize), used: &Use, what: &str, first: usize) -> Shown {
    let verb = if used.write { "write" } else { "read" };
    let name = format!("{verb} {:#x}", used.line.address());
    let place = (group, index);
    let lane = format!("{what} {}", used.bank);
    let shown = of(place, format!("controller {index}"), (first + used.bank, &lane), name);
    Shown { lines: Some((used.line, used.lines)), ..shown }
}

fn of(
    (kind, index): (usize, usize),
    group: String,
    (rank, lane): (usize, &str),
    name: String,
) -> Shown {
    Shown {
        group,
        lane: lane.to_owned(),
        // There are fewer groups of each kind than that.
        place: (kind * 1_000 + index, rank),
        name,
        from: 0,
        until: 0,
        args: Vec::new(),
        flow: None,
        lines: None,
        instant: false,
    }
}

impl Shown {
    fn instant(self) -> Shown {
        Shown { instant: true, ..self }
    }

    fn about(self, line: Line) -> Shown {
        Shown { lines: Some((line, 1)), ..self }
    }

    fn with(mut self, name: &'static str, arg: Arg) -> Shown {
        self.args.push((name, arg));
        self
    }

    fn following(self, flow: Option<u64>) -> Shown {
        Shown { flow, ..self }
    }

    fn touches(&self, line: Line) -> bool {
        self.lines.is_some_and(|(first, count)| (first.0..first.0 + count).contains(&line.0))
    }
}

fn stall_name(stall: Stall) -> String {
    let name = Stall::ALL.iter().find(|(other, _)| *other == stall).map(|(_, name)| *name);
    name.expect("every stall has a name").replace('_', " ")
}

fn class_name(class: Class) -> String {
    class.name().replace('_', " ")
}

fn flush_name(how: Flush) -> &'static str {
    match how {
        Flush::WriteBack => "clwb",
        Flush::Evict => "clflushopt",
        Flush::EvictInOrder => "clflush",
    }
}

/// How many lines each controller's write-pending queue holds, over a window of time.
fn occupancy(shown: &[Shown], window: &Range<u64>) -> Vec<Counter> {
    let mut changes: BTreeMap<(usize, &str), Vec<(u64, i64)>> = BTreeMap::new();
    for event in shown.iter().filter(|event| event.lane == LANES[1]) {
        let changes = changes.entry((event.place.0, &event.group)).or_default();
        let ends = (event.until <= window.end).then_some((event.until, -1));
        changes.extend([(event.from.max(window.start), 1)].into_iter().chain(ends));
    }
    let counter = |((place, group), mut changes): ((usize, &str), Vec<(u64, i64)>)| {
        changes.sort_unstable();
        let mut values: Vec<(u64, i64)> = Vec::new();
        for (at, change) in changes {
            let before = values.last().map_or(0, |&(_, value)| value);
            match values.last_mut() {
                Some((last, value)) if *last == at => *value += change,
                _ => values.push((at, before + change)),
            }
        }
        let group = group.to_owned();
        Counter { group, place, name: "write-pending queue, lines", values }
    };
    changes.into_iter().map(counter).collect()
}

/// An event as JSON.
pub(crate) fn row(shown: &Shown) -> Value {
    let mut row = json!({
        "where": shown.group,
        "lane": shown.lane,
        "what": shown.name,
        "from": shown.from,
        "until": shown.until,
    });
    let args: Map<String, Value> = shown
        .args
        .iter()
        .map(|(name, arg)| match arg {
            Arg::Number(number) => ((*name).to_owned(), json!(number)),
            Arg::Text(text) => ((*name).to_owned(), json!(text)),
        })
        .collect();
    if !args.is_empty() {
        row["args"] = args.into();
    }
    row
}

/// Writes that arrived early in an image, as JSON.
pub(crate) fn early(writes: &[Early], called: &Called) -> Value {
    let row = |of: &Early| {
        let line = called.line(of.line);
        json!({ "line": line, "class": of.class.name(), "bytes": of.bytes })
    };
    writes.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_events_are_written_as_people_do() {
        let of = |event| in_words(event, &Called::default());
        assert_eq!(of("Arrive(CoreId(3))"), "Arrive(core 3)");
        assert_eq!(of("Sent(CoreId(1), TxId(7), Line(2))"), "Sent(core 1, transaction 7, 0x80)");
        assert_eq!(of("Plain"), "Plain");
        assert_eq!(of("Line(2"), "Line(2");
    }

    #[test]
    fn what_has_a_name_is_called_by_it() {
        let words = [("A", 8), ("B", 9), ("C", 24)].map(|(name, at)| (name.to_owned(), Word(at)));
        let called = Called(words.into());
        assert_eq!([8, 9, 10].map(|word| called.word(Word(word))), ["A", "B", "0x50"]);
        assert_eq!([1, 2, 3].map(|line| called.line(Line(line))), ["A, B", "0x80", "C"]);
        assert_eq!(in_words("Sent(Line(3), Word(9), Word(11))", &called), "Sent(C, B, 0x58)");
        let told = "holds 0x48 at 0x40 and lacks 0xc0, the store of 0x40 to 0xc0, not to 0x50";
        let named = "holds 0x48 at A and lacks 0xc0, the store of 0x40 to C, not to 0x50";
        assert_eq!(called.in_sentence(told), named);
    }
}
