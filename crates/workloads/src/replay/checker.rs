//! The check, by a program of the user's, of the memory that a power failure leaves of a trace.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use model::checker::{Account, Checker, Examiner, Piece, Reached, Refusal, Rejection, Shown};
use model::image::Image;
use model::units::{CoreId, LINE_BYTES, Line, LineData, Word};
use model::workload::{Pm, Step, Stop};

use super::Replay;
use super::history::History;
use super::told::Told;
use super::trace::Op;
use crate::rng::mix;

/// Returns contents that no checker may accept: unrelated words.
fn garbage(line: Line) -> LineData {
    let mut data = [0; LINE_BYTES as usize];
    for (word, bytes) in (line.first_word().0..).zip(data.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&mix(word).to_le_bytes());
    }
    data
}

/// The memory of a trace with one copy, as the user's program examines it.
#[derive(Debug)]
pub struct Examined {
    examiner: Arc<dyn Examiner>,
    /// The addresses of the regions.
    regions: Vec<Range<u64>>,
    /// The lines to which the trace stores, in order; the others are zeros.
    lines: Vec<Line>,
    /// The lines that change after `measured`, in which images differ.
    changing: Vec<Line>,
    /// The texts of the threads' marks.
    marks: Vec<Vec<String>>,
    told: Told,
    /// Whether the program accepts garbage, too.
    accepts_garbage: bool,
    /// Digests of the memories and marks that the program has examined.
    seen: RefCell<BTreeSet<u64>>,
    /// How many of these the program refused for each reason ([`Account::reason`]).
    refused: RefCell<BTreeMap<String, u64>>,
    /// How many it refused since the last reason that was new.
    nothing_new: Cell<u64>,
}

/// The number of refusals that show nothing new after which a campaign ends (ours: a program is run
/// for 2 to 3 ms, so that these take a few seconds).
const NOTHING_NEW: u64 = 1_000;

impl Examined {
    /// Makes the examined memory of the one copy of a trace.
    ///
    /// # Errors
    /// [`Stop::NotAccepted`] when the program refuses the memory after the whole trace.
    pub fn new(examiner: &Arc<dyn Examiner>, replay: &Replay) -> Step<Examined> {
        let (trace, copy) = (&replay.trace, replay.copies[0]);
        let placed = trace.regions.iter().map(|region| {
            let start = copy.of(region.to);
            start..start + (region.from.end - region.from.start)
        });
        let mut regions: Vec<Range<u64>> = placed.collect();
        if regions.is_empty() {
            regions.push(copy.of(0)..copy.of(trace.persistent));
        }
        let history = history(replay)?;
        let lines = lines_of(history.words());
        let left: Vec<LineData> = lines.iter().map(|&line| history.line(line)).collect();
        let mut examined = Examined {
            examiner: Arc::clone(examiner),
            regions,
            lines,
            changing: lines_of(history.stored()),
            marks: trace.threads.iter().map(|thread| thread.marks.clone()).collect(),
            told: Told::new(history, trace),
            accepts_garbage: false,
            seen: RefCell::default(),
            refused: RefCell::default(),
            nothing_new: Cell::default(),
        };
        // The final memory of several threads depends on their order, unless that was recorded.
        let all: Vec<u64> = examined.marks.iter().map(|marks| marks.len() as u64).collect();
        if trace.threads.len() == 1 || trace.is_interleaved {
            examined.examine(&left, &all).map_err(|refused| {
                let (name, why) = (examiner.name(), refused.text);
                Stop::NotAccepted(format!(
                    "--check {name}: {why}, on what the trace leaves when no power fails"
                ))
            })?;
        }
        let garbage: Vec<LineData> = examined.lines.iter().map(|&line| garbage(line)).collect();
        // Of a program that has promised nothing yet, garbage may be taken for a pool that is still
        // to be made: it is shown as what the whole trace leaves.
        // Without lines there is no garbage to show, and a cancelled examiner accepts everything.
        let is_shown = !garbage.is_empty();
        examined.accepts_garbage =
            is_shown && examined.examine(&garbage, &all).is_ok() && !examined.is_cancelled();
        Ok(examined)
    }

    /// Returns the program's judgement of memory when threads have made so many marks.
    fn examine(&self, lines: &[LineData], marks: &[u64]) -> Result<(), Rejection> {
        self.examiner.examine(&self.pieces(lines), &self.said(marks))
    }

    /// What each thread has said last, having said so many things.
    fn said(&self, marks: &[u64]) -> Vec<&str> {
        let said = self.marks.iter().zip(marks).map(|(texts, &made)| {
            let last = (made as usize).checked_sub(1).and_then(|last| texts.get(last));
            last.map_or("", String::as_str)
        });
        said.collect()
    }

    fn pieces(&self, lines: &[LineData]) -> Vec<Piece> {
        let before = |address: u64| self.lines.partition_point(|line| line.address() < address);
        let piece = |region: &Range<u64>| {
            let within = before(region.start)..before(region.end);
            let each = self.lines[within.clone()].iter().zip(&lines[within]);
            let lines = each.map(|(line, data)| (line.address() - region.start, *data));
            Piece { length: region.end - region.start, lines: lines.collect() }
        };
        self.regions.iter().map(piece).collect()
    }

    /// Whether the trace makes any store that the program could find wrong.
    pub fn has_stores(&self) -> bool {
        !self.changing.is_empty()
    }

    /// Returns the program's judgement of an image that it has not seen before; a refusal also says
    /// which of the trace's stores the image has. Of those for one reason only the first is one.
    fn judge(&self, image: &Image<'_>, reached: &Reached, held: &[u64]) -> Result<(), Refusal> {
        let lines: Vec<LineData> = self.lines.iter().map(|&line| *image.line(line)).collect();
        let Err(rejection) = self.examine(&lines, reached.marks()) else { return Ok(()) };
        let (told, mut account) = self.told.of(|word| image.word(word), reached, held);
        account.reason = format!("{}; {}", without_numbers(&rejection.text), account.reason);
        if rejection.is_late {
            // A program that does not end costs too much time to look for other mistakes: each
            // such image counts as one of its own.
            account.reason += &format!(" in image {}", self.seen.borrow().len());
        }
        *self.refused.borrow_mut().entry(account.reason.clone()).or_default() += 1;
        if self.alike(&account) > 0 {
            self.nothing_new.set(self.nothing_new.get() + 1);
            return Ok(());
        }
        self.nothing_new.set(0);
        let mut text = format!("{}; {told}", rejection.text);
        let files = self.examiner.keep(&self.pieces(&lines), self.shown().images + 1);
        let files = files.unwrap_or_else(|why| {
            text += &format!("; it is not kept: {why}");
            Vec::new()
        });
        let marks = self.said(reached.marks()).into_iter().map(str::to_owned).collect();
        Err(Refusal { text, files, marks, account: Some(Box::new(account)) })
    }
}

/// Returns what a program says with each number replaced, which may differ from image to image. Its
/// exit code, in front of what it says, stays.
fn without_numbers(text: &str) -> String {
    let Some((how, said)) = text.split_once(": ") else { return text.to_owned() };
    let is_part = |letter: char| letter.is_ascii_alphanumeric();
    let pieces = said.split_inclusive(|letter| !is_part(letter)).map(|piece| {
        let word = piece.trim_end_matches(|letter| !is_part(letter));
        match word.contains(|letter: char| letter.is_ascii_digit()) {
            true => format!("#{}", &piece[word.len()..]),
            false => piece.to_owned(),
        }
    });
    format!("{how}: {}", pieces.collect::<String>())
}

/// The lines of words that are in order.
fn lines_of(words: impl Iterator<Item = Word>) -> Vec<Line> {
    let mut lines: Vec<Line> = words.map(Word::line).collect();
    lines.dedup();
    lines
}

/// Returns all stores of a trace, in the order of the file if it is interleaved, or else thread by
/// thread.
fn history(replay: &Replay) -> Step<History> {
    let (trace, copy) = (&replay.trace, replay.copies[0]);
    let mut history = History::default();
    let mut before = replay.before(copy);
    for op in &trace.before {
        before.perform(op, &mut Pm::simulated(&mut history, CoreId(0)))?;
    }
    history.measure();
    let each = trace.threads.iter().enumerate().flat_map(|(number, thread)| {
        thread.ops.iter().zip(&thread.places).map(move |(op, place)| (number, op, *place))
    });
    let mut all: Vec<(usize, &Op, usize)> = each.collect();
    if trace.is_interleaved {
        all.sort_by_key(|(_, _, place)| *place);
    }
    let mut replayers: Vec<_> =
        (0..trace.threads.len()).map(|number| replay.replayer(copy, number)).collect();
    for (number, op, place) in all {
        // If the order of the threads' operations is known, they are reported as one thread.
        history.at(number, if trace.is_interleaved { 0 } else { number }, place);
        replayers[number].perform(op, &mut Pm::simulated(&mut history, CoreId(0)))?;
    }
    Ok(history)
}

impl Checker for Examined {
    fn check(&self, image: &Image<'_>, reached: &Reached, held: &[u64]) -> Result<(), Refusal> {
        let mut hasher = DefaultHasher::new();
        self.changing.iter().for_each(|&line| image.line(line).hash(&mut hasher));
        reached.marks().hash(&mut hasher);
        let key = hasher.finish();
        // The same error is reported once, so that others are reported, too.
        if self.seen.borrow().contains(&key) {
            return Ok(());
        }
        let answer = self.judge(image, reached, held);
        if !self.is_cancelled() {
            self.seen.borrow_mut().insert(key);
        }
        answer
    }

    fn is_cancelled(&self) -> bool {
        self.examiner.is_cancelled()
    }

    fn has_enough(&self) -> bool {
        self.nothing_new.get() >= NOTHING_NEW
    }

    fn shown(&self) -> Shown {
        let images = self.seen.borrow().len() as u64;
        let refused = self.refused.borrow().values().sum();
        let has_enough = self.has_enough();
        Shown { images, refused, accepts_garbage: self.accepts_garbage, has_enough }
    }

    fn alike(&self, account: &Account) -> u64 {
        self.refused.borrow().get(&account.reason).map_or(0, |count| count - 1)
    }
}
