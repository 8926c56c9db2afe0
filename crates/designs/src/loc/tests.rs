//! The window, the log and recovery without a machine: transactions are logged, any of their
//! entries survive, and recovery must make of them what the first few transactions left, no fewer
//! than had been acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use model::config::Config;
use model::contents::Contents;
use model::design::Shape;
use model::image::Image;
use model::meters::Class;
use model::params::Rules as _;
use model::units::{CoreId, Cycle, LINE_BYTES, Line, LineData, Word, mix};

use super::WalRules;
use super::entry::{Entry, Format, Running};
use super::recovery::{Layout, recover};
use super::ring::{Area, BLOCKS, Grouping, Ring};
use super::window::{Commit, Composed, Issue, Number, Transaction, Version, Window};

/// The core, whose stores leave at once.
const CORE: (CoreId, Cycle) = (CoreId(0), Cycle(0));
const FORMAT: Format = Format { id_bits: 16 };
const IN_BLOCKS: Grouping = Grouping { turned: true, in_burst: false };
const CARRY: Commit = Commit { record: false, pin: false, entries: true };
const PIN: Commit = Commit { record: false, pin: true, entries: true };

/// Transactions of one core, and the log's entries so far.
struct Stream {
    window: Window,
    how: Commit,
    rules: WalRules,
    entries: Vec<Composed>,
    /// The newest version of each line.
    newest: BTreeMap<Line, (u64, Number)>,
    /// The number under which the running transaction writes to the log.
    number: u64,
}

/// What an aborted transaction leaves in the lines that leave the caches early.
const ABORTED: u64 = 200;

/// What a transaction leaves in a line: its number, from 1, in every byte.
fn bytes(transaction: u64) -> LineData {
    [transaction as u8; LINE_BYTES as usize]
}

impl Stream {
    fn new(how: Commit, rules: WalRules) -> Stream {
        let how = Commit { entries: rules.second.count_entries, ..how };
        let (window, newest) = (Window::default(), BTreeMap::new());
        Stream { window, how, rules, entries: Vec::new(), newest, number: 0 }
    }

    /// Ends a transaction that stored to some lines.
    fn end(&mut self, lines: &[u64]) {
        self.end_with(lines, 0);
    }

    /// Ends a transaction that stored to some lines, the first `early` of which left the caches
    /// before.
    fn end_with(&mut self, lines: &[u64], early: u64) {
        let place = self.window.next();
        let running = self.log_early(lines, early, place + 1);
        let versions = (0..).zip(lines).map(|(index, &line)| {
            let state = if index < early { Issue::Sent } else { Issue::Kept };
            Version { line: Line(line), data: bytes(place + 1), state }
        });
        let running = (early > 0 && self.rules.second.adopt_early).then_some(running);
        let receipt = place as usize;
        self.window.push(Transaction::new(CORE, running, early, receipt));
        self.number += 1;
        for version in versions {
            let line = version.line;
            let number = self.window.push_version(version);
            if let Some(before) = self.newest.insert(line, (place, number)) {
                self.window.absorb(place, before, self.how, &self.rules.first);
            }
        }
    }

    /// Aborts a transaction that had stored to some lines, the first `early` of which had left the
    /// caches.
    fn abort_with(&mut self, lines: &[u64], early: u64) {
        self.log_early(lines, early, ABORTED);
        let receipt = self.window.next() as usize;
        self.window.push(Transaction::aborted(CORE, receipt, &self.rules.second));
        self.number += u64::from(self.rules.second.abandon_early);
    }

    fn log_early(&mut self, lines: &[u64], early: u64, number: u64) -> Running {
        let (by, running) = (self.window.next(), Running { core: CoreId(0), number: self.number });
        for line in lines.iter().take(early as usize).map(|&line| Line(line)) {
            let entry = Entry::Early { line, running };
            self.entries.push(Composed { by, entry, data: Some(bytes(number)) });
        }
        running
    }

    /// Sends the newest version of a line to the log.
    fn evict(&mut self, line: u64) {
        if let Some(&(by, number)) = self.newest.get(&Line(line))
            && let Some(data) = self.window.issue(by, number)
        {
            let entry = Entry::Block { line: Line(line), by, count: 0 };
            self.entries.push(Composed { by, entry, data: Some(data) });
        }
    }

    fn drain(&mut self, end: u64) {
        let end = self.window.closure(end).max(self.window.drained);
        self.window.compose(end, self.how, &self.rules.first, &mut self.entries);
    }

    /// How many transactions have been acknowledged if these entries are durable.
    fn acknowledged(&self, survives: impl Fn(usize) -> bool) -> u64 {
        let lost = |place: u64| {
            let mut own = self.entries.iter().enumerate().filter(|(_, entry)| entry.by == place);
            own.any(|(index, _)| !survives(index))
        };
        self.window.settled(|transaction| !lost(transaction.receipt as u64), &self.rules.first)
    }
}

/// What the lines 1 to 16 hold after recovery from the entries that survive.
fn recovered(stream: &Stream, rules: &WalRules, survives: impl Fn(usize) -> bool) -> Vec<u64> {
    let mut config = Config::default();
    (config.pm.capacity, config.pm.log) = (1 << 20, 64 << 10);
    let shape = Shape::new(&config, 1);
    let memory = Contents::new(0, config.pm.capacity).expect("room");
    let mut image = Image::over(&memory);
    let mut ring = Ring::new(Area::new(&shape, IN_BLOCKS), FORMAT);
    for (index, composed) in stream.entries.iter().enumerate() {
        let (group, write) = ring.append(composed.entry, composed.data, 0);
        if !survives(index) {
            continue;
        }
        let word = FORMAT.encode(composed.entry, 0);
        let slot = index as u64 % BLOCKS;
        let metadata = ring.area.metadata(group).first_word().0 + slot;
        image.set_word(Word(metadata), word).expect("power");
        if let Some(write) = write {
            image.set_line(write.line, &write.data, write.mask).expect("power");
        }
    }
    let layout =
        Layout { area: ring.area, format: FORMAT, record: false, gap_max: ring.area.groups };
    recover(&mut image, &layout, rules).expect("power");
    (1..=16).map(|line| u64::from(image.line(Line(line))[0])).collect()
}

/// What the first transactions left in the lines 1 to 16.
fn left(transactions: &[Vec<u64>]) -> Vec<u64> {
    let mut lines = vec![0; 16];
    for (number, stored) in (1..).zip(transactions) {
        stored.iter().for_each(|&line| lines[line as usize - 1] = number);
    }
    lines
}

/// The length of the longest prefix of the transactions that left the lines so, if there is one.
fn prefix(transactions: &[Vec<u64>], lines: &[u64]) -> Option<u64> {
    let is = |count: &usize| left(&transactions[..*count]) == lines;
    (0..=transactions.len()).rev().find(is).map(|count| count as u64)
}

/// The transactions of the slides: A to G are the lines 1 to 7.
fn slides() -> Vec<Vec<u64>> {
    vec![vec![1, 2, 3, 4], vec![1, 6], vec![2, 3, 5], vec![4, 5, 6, 7]]
}

/// The four transactions of the slides in one window, drained together, with every set of their
/// entries that may survive: their blocks, the dependency pairs, and the carried TxCnt.
#[test]
fn the_slides_example_is_all_or_nothing_whatever_survives() {
    let mut stream = Stream::new(CARRY, WalRules::default());
    slides().iter().for_each(|lines| stream.end(lines));
    stream.drain(4);
    let blocks: Vec<u64> = stream
        .entries
        .iter()
        .filter_map(|composed| Some((composed.data?, composed)))
        .map(|(data, composed)| {
            let Entry::Block { line, .. } = composed.entry else { panic!("a block") };
            line.0 * 10 + u64::from(data[0])
        })
        .collect();
    assert_eq!(
        blocks,
        [12, 23, 33, 44, 54, 64, 74],
        "A to G are written once, as the last left them"
    );
    assert_eq!(stream.entries.len(), 7 + 5 + 1, "five pairs, and the TxCnt of T1");
    let rules = WalRules::default();
    for set in 0..1_u64 << stream.entries.len() {
        let survives = |index: usize| set >> index & 1 == 1;
        let whole = set + 1 == 1 << stream.entries.len();
        let lines = recovered(&stream, &rules, survives);
        let expected = left(&slides()[..if whole { 4 } else { 0 }]);
        assert_eq!(lines, expected, "{set:#b}");
        assert_eq!(stream.acknowledged(survives), if whole { 4 } else { 0 }, "{set:#b}");
    }
}

/// T1's D left the caches before T4 ended: it is there twice, and <T1, T4> is not.
#[test]
fn the_slides_example_with_a_block_that_left_early() {
    let mut stream = Stream::new(CARRY, WalRules::default());
    for (number, lines) in slides().iter().enumerate() {
        if number == 3 {
            stream.evict(4);
        }
        stream.end(lines);
    }
    stream.drain(4);
    assert_eq!(stream.entries.len(), 1 + 7 + 4 + 1);
    let rules = WalRules::default();
    for set in 0..1_u64 << stream.entries.len() {
        let survives = |index: usize| set >> index & 1 == 1;
        let lines = recovered(&stream, &rules, survives);
        let known = prefix(&slides(), &lines).unwrap_or_else(|| panic!("{set:#b}: {lines:?}"));
        assert!(known >= stream.acknowledged(survives), "{set:#b}: {known}");
    }
}

/// With SD = 2, T1 and T2 are drained before T3 and T4: only neighbours absorb.
#[test]
fn a_window_of_two_absorbs_between_neighbours() {
    let mut stream = Stream::new(CARRY, WalRules::default());
    for (number, lines) in (1..).zip(slides()) {
        stream.end(&lines);
        if number % 2 == 0 {
            stream.drain(number);
        }
    }
    let blocks = stream.entries.iter().filter(|composed| composed.data.is_some()).count();
    assert_eq!((blocks, stream.entries.len()), (5 + 6, 5 + 6 + 2));
}

/// A transaction whose lines left the caches is aborted between two others: whatever survives,
/// nothing of it is there, and what was acknowledged after it is.
#[test]
fn an_aborted_transaction_is_complete_and_empty() {
    let mut stream = Stream::new(CARRY, WalRules::default());
    stream.end(&[1, 2]);
    stream.abort_with(&[2, 3, 4], 2);
    stream.end_with(&[3, 5], 1);
    stream.drain(3);
    let transactions = [vec![1, 2], vec![], vec![3, 5]];
    assert_eq!(stream.entries.len(), 2 + (2 + 1) + (1 + 1 + 1), "a TxCnt marks the aborted one");
    for set in 0..1_u64 << stream.entries.len() {
        let survives = |index: usize| set >> index & 1 == 1;
        let lines = recovered(&stream, &stream.rules, survives);
        let known = prefix(&transactions, &lines).unwrap_or_else(|| panic!("{set:#b}: {lines:?}"));
        assert!(known >= stream.acknowledged(survives), "{set:#b}: {known}");
    }
}

/// An aborted transaction has taken the place of no version: the next transaction that stores to
/// the line absorbs the version before it.
#[test]
fn a_version_before_an_aborted_one_is_the_newest_again() {
    let mut stream = Stream::new(CARRY, WalRules::default());
    stream.end(&[1, 2]);
    stream.abort_with(&[1, 3], 1);
    stream.end(&[1]);
    stream.drain(3);
    assert_eq!(stream.window.get(0).absorbed, [(2, 1)]);
    assert_eq!(recovered(&stream, &stream.rules, |_| true)[..4], [3, 1, 0, 0]);
}

/// Whether recovery is right with one random stream and one random set of survivors.
fn is_right(seed: u64, how: Commit, rules: &WalRules) -> bool {
    let mut state = seed;
    let mut draw = |below: u64| {
        state = mix(state);
        state % below
    };
    let mut stream = Stream::new(how, rules.clone());
    let mut transactions = Vec::new();
    for _ in 0..3 + draw(8) {
        let mut lines: Vec<u64> = (0..1 + draw(4)).map(|_| 1 + draw(8)).collect();
        lines.sort_unstable();
        lines.dedup();
        let early = draw(3).min(lines.len() as u64);
        if early > 0 && draw(3) == 0 {
            stream.abort_with(&lines, early);
            transactions.push(Vec::new());
            continue;
        }
        stream.end_with(&lines, early);
        transactions.push(lines);
        match draw(6) {
            0 => stream.drain(stream.window.drained + 1),
            1 => stream.drain(stream.window.next()),
            2 => stream.evict(1 + draw(8)),
            _ => (),
        }
    }
    // Most entries survive, since little is acknowledged otherwise.
    let odds = [2, 8, 40][draw(3) as usize];
    let survivors: Vec<bool> = stream.entries.iter().map(|_| draw(odds) > 0).collect();
    let lines = recovered(&stream, rules, |index| survivors[index]);
    let acknowledged = stream.acknowledged(|index| survivors[index]);
    prefix(&transactions, &lines).is_some_and(|known| known >= acknowledged)
}

const STREAMS: u64 = 20_000;

#[test]
fn recovery_is_a_prefix_and_no_shorter_than_what_was_acknowledged() {
    for how in [CARRY, PIN] {
        for seed in 0..STREAMS {
            assert!(is_right(seed, how, &WalRules::default()), "{how:?}, seed {seed}");
        }
    }
}

/// Rules of the window and of its recovery, found to be needed without a machine.
#[test]
fn each_wrong_rule_is_found() {
    for rule in [
        "commit_in_order",
        "closure_trim",
        "acknowledge_closed",
        "acknowledge_in_order",
        "carry_count",
        "rehome_pairs",
        "count_without_blocks",
        "replay_in_order",
        "absorb_unissued",
        "adopt_early",
        "abandon_early",
        "mark_aborted",
    ] {
        let rules = WalRules::default().without(rule);
        assert!((0..STREAMS).any(|seed| !is_right(seed, CARRY, &rules)), "{rule}");
    }
}

/// A block's own word has room for a count of 255: with more blocks, the count is an entry.
#[test]
fn a_count_that_no_block_has_room_for_is_an_entry() {
    for lines in [1, 255, 256, 300] {
        let mut stream = Stream::new(CARRY, WalRules::default());
        stream.end(&(1..=lines).collect::<Vec<u64>>());
        stream.drain(1);
        let mut counts = Vec::new();
        for composed in &stream.entries {
            let word = FORMAT.encode(composed.entry, 0);
            match FORMAT.decode(word, Some(0), 0).expect("an entry") {
                Entry::Block { count, .. } | Entry::Count { count, .. } => counts.push(count),
                _ => panic!("no other entries"),
            }
        }
        let note = u64::from(lines > 255);
        assert_eq!(counts.len() as u64, lines + note);
        counts.retain(|&count| count > 0);
        assert_eq!(counts, [lines + note], "once, of all entries of the transaction");
    }
}

#[test]
fn what_the_log_writes_is_counted_as_what_it_is() {
    let mut config = Config::default();
    (config.pm.log, config.pm.capacity) = (4096, 1 << 20);
    let mut ring = Ring::new(Area::new(&Shape::new(&config, 1), IN_BLOCKS), FORMAT);
    let entry = Entry::Block { line: Line(1), by: 0, count: 1 };
    let (group, block) = ring.append(entry, Some(bytes(1)), 0);
    ring.close();
    let metadata = ring.metadata(group, false);
    let writes = [block, metadata, Some(ring.record(group, 0)), Some(ring.head(group, 0))];
    let classes = writes.map(|write| write.expect("a write").class);
    assert_eq!(classes, [Class::Log, Class::Metadata, Class::Commit, Class::Metadata]);
}

/// Counting absorbed blocks of a transaction that is not complete does no harm as long as the
/// prefix is closed, since that transaction ends it. Without a closed prefix it does harm.
#[test]
fn counting_what_is_committed_follows_from_the_closed_prefix() {
    let counted = WalRules::default().without("count_committed");
    assert!((0..STREAMS).all(|seed| is_right(seed, CARRY, &counted)));
    let open = counted.without("closure_trim");
    let of = |rules: &WalRules| (0..STREAMS).filter(|&seed| !is_right(seed, CARRY, rules)).count();
    assert!(of(&open) > of(&WalRules::default().without("closure_trim")));
}

/// With metadata in bursts a block holds words of entries only if the word beside it says so. While
/// data are written over such words, the word beside is still of the pass before, and the part of
/// the data that is there may look like entries.
#[test]
fn data_are_not_taken_for_entries() {
    let mut config = Config::default();
    (config.pm.capacity, config.pm.log) = (1 << 20, 4096);
    let area = Area::new(&Shape::new(&config, 1), Grouping { in_burst: true, ..IN_BLOCKS });
    let layout = Layout { area, format: FORMAT, record: false, gap_max: area.groups };
    let memory = Contents::new(0, config.pm.capacity).expect("room");
    let note = Entry::Count { by: 0, of: 0, count: 9 };
    for (pass_beside, is_read) in [(3, false), (0, true)] {
        let mut image = Image::over(&memory);
        let beside = area.lane(0).expect("metadata are in bursts");
        image.set_word(beside, FORMAT.encode(note, pass_beside)).expect("power");
        image.set_word(area.block(0, 0).first_word(), FORMAT.encode(note, 0)).expect("power");
        recover(&mut image, &layout, &WalRules::default()).expect("power");
        assert_eq!(image.word(area.head()) != 0, is_read, "the log is emptied if it has entries");
    }
}

/// The lines of a group are its own, and metadata go through all banks that take turns by line.
#[test]
fn groups_that_are_turned_share_no_line_and_no_bank() {
    let mut config = Config::default();
    (config.pm.capacity, config.pm.log) = (1 << 20, 64 << 10);
    let shape = Shape::new(&config, 1);
    for (turned, banks) in [(true, 8), (false, 1)] {
        let area = Area::new(&shape, Grouping { turned, ..IN_BLOCKS });
        let lines = |group| (0..=BLOCKS).map(move |slot| area.block(group, slot).0);
        let all: BTreeSet<u64> = (0..area.groups).flat_map(lines).collect();
        assert_eq!(all.len() as u64, area.groups * (BLOCKS + 1));
        let metadata: BTreeSet<u64> = (0..8).map(|group| area.metadata(group).0 % 8).collect();
        assert_eq!(metadata.len(), banks);
    }
}
