//! Recovery: scans the log from its head, and replays what the longest closed prefix of complete
//! transactions left.
//!
//! A transaction is complete if as many of its entries are there as its TxCnt says. Entries whose
//! place a later transaction's have taken count if that transaction is complete, too. An aborted
//! transaction has a TxCnt that counts nothing but its own entry, and no transaction has its early
//! entries.

use std::collections::BTreeMap;

use model::image::{Image, PowerLoss};
use model::params::Both;
use model::units::{LINE_BYTES, Line, WORD_BYTES, Word};

use super::entry::{Entry, Format, Head, Place, Running};
use super::ring::{Area, BLOCKS};
use super::{CountingRules, LocRules, WalRules};

/// What recovery knows of the log, beside what is in it.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub area: Area,
    pub format: Format,
    /// Whether transactions are committed by a record and not by a count.
    pub record: bool,
    /// How many groups without an entry of their pass may lie before a group with one: each of them
    /// has a write under way.
    pub gap_max: u64,
}

/// What the log says of one transaction.
#[derive(Default)]
pub struct Found {
    /// How many entries it has, and how many there should be.
    entries: u64,
    count: Option<u64>,
    /// How many of its blocks are there only as blocks of another transaction, for each of these.
    pairs: Vec<(Place, u64)>,
    /// Its blocks: their places in the order of the log, their lines, and where their bytes are.
    pub blocks: Vec<(u64, Line, Line)>,
    recorded: bool,
}

/// What a scan of the log found.
#[derive(Default)]
pub struct Scan {
    transactions: BTreeMap<Place, Found>,
    early: BTreeMap<Running, Vec<(u64, Line, Line)>>,
    adopted: Vec<(Place, Running)>,
    any: bool,
}

/// Added to places, so that those before the head's are numbers, too.
const BASE: Place = 1 << 32;

/// Replays what is durable and empties the log.
pub fn recover(image: &mut Image<'_>, layout: &Layout, rules: &WalRules) -> Result<(), PowerLoss> {
    let Both { first: counting, second: rules } = rules;
    let head = layout.format.decode_head(image.word(layout.area.head()));
    let head = Head { first: BASE + head.first, ..head };
    let mut scan = scan(image, layout, head, rules);
    if !scan.any {
        return Ok(());
    }
    scan.adopt(rules);
    let mut committed = scan.committed(head.first, layout.record, counting);
    if !rules.replay_in_order {
        committed.reverse();
    }
    // The last entry of a line wins; each line is then written once.
    let mut homes: BTreeMap<Line, Line> = BTreeMap::new();
    for place in committed {
        for &(_, line, bytes) in &scan.of(place).blocks {
            homes.insert(line, bytes);
        }
    }
    for (line, bytes) in homes {
        let bytes = *image.line(bytes);
        image.set_line(line, &bytes, u64::MAX)?;
    }
    if rules.fence_before_log_is_dropped {
        image.fence();
    }
    // No entry that is there counts from here on, neither by its TxID nor by its pass.
    let last = scan.transactions.keys().next_back().map_or(head.first, |last| last + 1);
    let empty = Head { first: last, pass: head.pass + 2, ..head };
    image.set_word(layout.area.head(), layout.format.encode_head(empty))
}

/// Erases what is left in the log before it is used again, and returns where the log begins. The
/// two bits of a pass are too few for a log that power failures keep from wrapping.
///
/// # Errors
/// [`PowerLoss`] when the power fails again. Nothing in the log counts all the while.
pub fn boot(image: &mut Image<'_>, layout: &Layout, rules: &WalRules) -> Result<Head, PowerLoss> {
    let groups = if rules.second.erase_log_at_boot { layout.area.groups } else { 0 };
    for line in (0..groups).map(|group| layout.area.metadata(group)) {
        if image.line(line).iter().any(|&byte| byte != 0) {
            image.set_line(line, &[0; LINE_BYTES as usize], u64::MAX)?;
        }
    }
    for word in (0..groups).filter_map(|group| layout.area.lane(group)) {
        if image.word(word) != 0 {
            image.set_word(word, 0)?;
        }
    }
    Ok(layout.format.decode_head(image.word(layout.area.head())))
}

/// Reads the log from its head on. Its writes are not in order, so a group without an entry does
/// not end it; more such groups in a row than there can be do.
fn scan(image: &Image<'_>, layout: &Layout, head: Head, rules: &LocRules) -> Scan {
    let mut scan = Scan::default();
    let mut gap = 0;
    for step in 0..layout.area.groups {
        let group = head.group + step;
        let pass = head.pass + group / layout.area.groups;
        let pass = rules.reject_stale_pass.then_some(pass);
        gap += 1;
        for (slot, word) in (0..).zip(words(image, layout, group, pass)) {
            if rules.scan_past_truncated && layout.format.is_entry(word, pass) {
                gap = 0;
            }
            if let Some(entry) = layout.format.decode(word, pass, head.first) {
                let order = step * BLOCKS + slot;
                scan.add(entry, order, layout.area.block(group, slot));
                gap = 0;
            }
        }
        if gap > layout.gap_max {
            break;
        }
    }
    scan
}

/// The words of a group's entries, and of a commit record. A block with its metadata in its burst
/// holds words if the word in the burst says so; otherwise it holds data.
fn words(image: &Image<'_>, layout: &Layout, group: u64, pass: Option<u64>) -> Vec<u64> {
    let beside = layout.area.lane(group).map(|lane| image.word(lane));
    let mut words: Vec<u64> = beside.into_iter().collect();
    if beside.is_none_or(|word| layout.format.is_note(word, pass)) {
        let first = layout.area.metadata(group).first_word().0;
        words.extend((first..first + LINE_BYTES / WORD_BYTES).map(|word| image.word(Word(word))));
    }
    words
}

impl Scan {
    /// Adds an entry, the `order`-th of the log; the bytes of its block are in the line `bytes`.
    pub fn add(&mut self, entry: Entry, order: u64, bytes: Line) {
        self.any = true;
        match entry {
            Entry::Block { line, by, count } => {
                let found = self.of(by);
                found.entries += 1;
                found.blocks.push((order, line, bytes));
                if count > 0 {
                    found.count = Some(count);
                }
            }
            Entry::Early { line, running } => {
                self.early.entry(running).or_default().push((order, line, bytes));
            }
            Entry::Count { by, of: whose, count } => {
                self.of(by).entries += 1;
                self.of(whose).count = Some(count);
            }
            Entry::Pair { by, from, to, blocks } => {
                self.of(by).entries += 1;
                self.of(from).pairs.push((to, blocks));
            }
            Entry::Adopt { by, of: whose, running } => {
                self.of(by).entries += 1;
                self.adopted.push((whose, running));
            }
            Entry::Record { by } => self.of(by).recorded = true,
        }
    }

    /// What was found of a transaction.
    pub fn of(&mut self, place: Place) -> &mut Found {
        self.transactions.entry(place).or_default()
    }

    /// Gives the entries of transactions that had not ended to the transactions that adopt them.
    fn adopt(&mut self, rules: &LocRules) {
        for (place, running) in std::mem::take(&mut self.adopted) {
            let early = self.early.remove(&running).unwrap_or_default();
            let found = self.of(place);
            found.entries += early.len() as u64;
            found.blocks.extend(early);
        }
        for found in self.transactions.values_mut() {
            found.blocks.sort_unstable();
            if !rules.later_slot_wins {
                found.blocks.reverse();
            }
        }
    }

    /// The transactions that are committed, in the order in which they are replayed: the longest
    /// closed prefix, from the head's on, of complete transactions.
    pub fn committed(&self, first: Place, record: bool, rules: &CountingRules) -> Vec<Place> {
        let complete = self.complete(record, rules);
        let is_complete = |place: &Place| complete.get(place) == Some(&true);
        let mut end = (first..).find(|place| !is_complete(place)).expect("the log has an end");
        let outside = |place: &Place, end: Place| {
            let found = self.transactions.get(place);
            found.is_some_and(|found| found.pairs.iter().any(|&(by, _)| by >= end))
        };
        while rules.closure_trim
            && let Some(place) = (first..end).find(|place| outside(place, end))
        {
            end = place;
        }
        let places = complete.keys().copied().filter(|&place| place >= first);
        places
            .filter(|place| *place < end || is_complete(place) && !rules.commit_in_order)
            .collect()
    }

    /// Which transactions are complete.
    fn complete(&self, record: bool, rules: &CountingRules) -> BTreeMap<Place, bool> {
        let mut complete: BTreeMap<Place, bool> = BTreeMap::new();
        // Pairs point forward, so a transaction that took the place of a block is decided before.
        for (&place, found) in self.transactions.iter().rev() {
            let elsewhere = found
                .pairs
                .iter()
                .filter(|(by, _)| !rules.count_committed || complete.get(by) == Some(&true));
            let there = found.entries + elsewhere.map(|&(_, blocks)| blocks).sum::<u64>();
            let is = if record { found.recorded } else { found.count == Some(there) };
            complete.insert(place, is);
        }
        complete
    }
}
