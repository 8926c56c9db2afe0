//! Silo's log region: where a core's logs go when the buffer overflows or the power fails.
//!
//! ```text
//! first line   word 0  records          word 1  ID tuples     word 7  armed (of core 0 only)
//! then         records of 18 bytes: flush-bit 1, thread 1, transaction 2, address 6, data 8; none is
//!              in two lines of the on-DIMM buffer, so that an overflow's batch of 14 is one
//! then         ID tuples of 8 bytes: transaction 2, place of its commit 6
//! ```
//!
//! The first line is written by the battery only, the armed word last: without it there is nothing
//! to recover. Recovery clears it with its last write.

use std::collections::{BTreeMap, VecDeque};

use model::design::{Gasp, Setup, Shape};
use model::device::Write;
use model::image::{Image, PowerLoss};
use model::meters::Class;
use model::units::{CoreId, LINE_BYTES, Line, TxId, Word};

use super::Silo;

/// Bytes of a record.
pub const RECORD_BYTES: u64 = 18;
const TUPLE_BYTES: u64 = 8;
const ARMED: u64 = 56;

/// The log region of one core: the registers that say how much of it is in use, which the battery
/// keeps.
#[derive(Clone, Debug)]
pub struct Region {
    base: u64,
    bytes: u64,
    /// Bytes of a line of the on-DIMM buffer.
    line: u64,
    records: u64,
}

/// An undo or redo record: which of the two it is follows from the ID tuple and the flush-bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    flushed: bool,
    core: CoreId,
    tx: u16,
    word: Word,
    data: u64,
}

impl Record {
    /// A record with a flush-bit of 0.
    pub fn of(core: CoreId, tx: TxId, word: Word, data: u64) -> Record {
        Record { flushed: false, core, tx: tx.0 as u16, word, data }
    }

    /// This record with the given flush-bit.
    pub fn with_flush_bit(self, flushed: bool) -> Record {
        Record { flushed, ..self }
    }

    fn to_bytes(self) -> [u8; RECORD_BYTES as usize] {
        let mut bytes = [0; RECORD_BYTES as usize];
        bytes[0] = u8::from(self.flushed);
        bytes[1] = self.core.0;
        bytes[2..4].copy_from_slice(&self.tx.to_le_bytes());
        bytes[4..10].copy_from_slice(&self.word.address().to_le_bytes()[..6]);
        bytes[10..].copy_from_slice(&self.data.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Record {
        let mut address = [0; 8];
        address[..6].copy_from_slice(&bytes[4..10]);
        Record {
            flushed: bytes[0] == 1,
            core: CoreId(bytes[1]),
            tx: u16::from_le_bytes([bytes[2], bytes[3]]),
            word: Word::of(u64::from_le_bytes(address)),
            data: u64::from_le_bytes(bytes[10..18].try_into().expect("8 bytes")),
        }
    }
}

impl Region {
    /// The empty region of a core.
    pub fn new(shape: &Shape, core: CoreId) -> Region {
        let (base, bytes) = (shape.log_of(core), shape.log_bytes);
        Region { base, bytes, line: shape.config.pm.xpline, records: 0 }
    }

    /// Forgets every record: the head becomes the tail.
    pub fn truncate(&mut self) {
        self.records = 0;
    }

    /// The writes that put records behind the others, if the region then still has room for
    /// `reserve` logs at a power failure. They count once [`Region::keep`] says so.
    pub fn append(
        &self,
        records: impl Iterator<Item = Record>,
        reserve: u64,
    ) -> Option<Vec<Write>> {
        let records: Vec<(u64, Record)> = (self.records..).zip(records).collect();
        if !self.holds(records.len() as u64 + reserve) {
            return None;
        }
        let bytes = records
            .into_iter()
            .flat_map(|(index, record)| (self.end(index)..).zip(record.to_bytes()));
        let mut writes: Vec<Write> = Vec::new();
        for (address, byte) in bytes {
            let line = Line::of(address);
            if writes.last().is_none_or(|write| write.line != line) {
                let data = [0; LINE_BYTES as usize];
                writes.push(Write { line, data, mask: 0, class: Class::Log });
            }
            let write = writes.last_mut().expect("a write was just made");
            let place = address % LINE_BYTES;
            write.data[place as usize] = byte;
            write.mask |= 1 << place;
        }
        Some(writes)
    }

    /// Whether it has room for so many records and as many ID tuples behind those that are there.
    pub fn holds(&self, records: u64) -> bool {
        self.end(self.records + records) + TUPLE_BYTES * records <= self.base + self.bytes
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts records whose writes are durable.
    pub fn keep(&mut self, records: u64) {
        self.records += records;
    }

    /// The battery saves records and ID tuples behind the records that are there, and then how
    /// many there are.
    pub fn save(
        &self,
        records: impl Iterator<Item = Record>,
        committed: &VecDeque<(TxId, u64)>,
        gasp: &mut Gasp<'_, '_>,
    ) -> Result<(), PowerLoss> {
        let mut count = self.records;
        for record in records {
            gasp.save(self.end(count), &record.to_bytes())?;
            count += 1;
        }
        let tuples = self.end(count);
        for (index, &(tx, commit)) in committed.iter().enumerate() {
            let tuple = u64::from(tx.0 as u16) | commit << 16;
            gasp.save_words(tuples + TUPLE_BYTES * index as u64, &[tuple])?;
        }
        gasp.save_words(self.base, &[count, committed.len() as u64])
    }

    /// The battery says that everything is saved.
    pub fn arm(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        gasp.save_words(self.base + ARMED, &[1])
    }

    /// Where so many records end and the next one begins.
    fn end(&self, records: u64) -> u64 {
        let in_line = self.line / RECORD_BYTES;
        let first = (self.base + LINE_BYTES).next_multiple_of(self.line);
        first + records / in_line * self.line + records % in_line * RECORD_BYTES
    }
}

/// Replays what committed and revokes what did not.
pub fn recover(image: &mut Image<'_>, setup: &Setup<'_, Silo>) -> Result<(), PowerLoss> {
    let armed = Word::of(setup.shape.log_of(CoreId(0)) + ARMED);
    if image.word(armed) == 0 {
        return Ok(());
    }
    let mut redo: Vec<(u64, Record)> = Vec::new();
    let mut undo: Vec<Record> = Vec::new();
    for core in (0..setup.shape.cores).map(CoreId) {
        let region = Region::new(setup.shape, core);
        let records = image.word(Word::of(region.base));
        let tuples = image.word(Word::of(region.base + 8));
        let commits: BTreeMap<u16, u64> = (0..tuples)
            .map(|index| {
                let bytes = read(image, region.end(records) + TUPLE_BYTES * index, TUPLE_BYTES);
                let tuple = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
                (tuple as u16, tuple >> 16)
            })
            .collect();
        let mut own = Vec::new();
        for index in 0..records {
            let record = Record::from_bytes(&read(image, region.end(index), RECORD_BYTES));
            match commits.get(&record.tx) {
                Some(&commit) if !record.flushed => redo.push((commit, record)),
                // The undo record of an overflow of a transaction that committed.
                Some(_) => (),
                None => own.push(record),
            }
        }
        if setup.rules.undo_newest_first {
            own.reverse();
        }
        undo.extend(own);
    }
    if setup.rules.replay_in_commit_order {
        redo.sort_by_key(|&(commit, _)| commit);
    }
    for record in redo.into_iter().map(|(_, record)| record).chain(undo) {
        image.set_word(record.word, record.data)?;
    }
    if setup.rules.fence_before_log_is_dropped {
        image.fence();
    }
    image.set_word(armed, 0)
}

fn read(image: &Image<'_>, address: u64, length: u64) -> Vec<u8> {
    let byte = |at: u64| image.line(Line::of(at))[(at % LINE_BYTES) as usize];
    (address..address + length).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use model::config::Config;
    use model::contents::Contents;
    use model::units::Cycle;

    use super::*;

    /// At a power failure, each record that it said to hold may be of another transaction that has
    /// committed: all their ID tuples lie in the region, too.
    #[test]
    fn what_a_region_holds_lies_in_it_with_its_tuples() {
        let mut config = Config::default();
        (config.pm.log, config.pm.capacity) = (2048, 1 << 20);
        let shape = Shape::new(&config, 2);
        for kept in [0, 10] {
            let mut region = Region::new(&shape, CoreId(0));
            region.keep(kept);
            let most = (0..).find(|&count| !region.holds(count + 1)).expect("it is finite");
            let lines = (kept + most) / 14;
            let used = lines * 256 + (kept + most) % 14 * 18 + most * 8;
            assert!((2048 - 256 - 2 * (18 + 8)..=2048 - 256).contains(&used), "{most}");
            let record = Record::of(CoreId(0), TxId(1), Word(0), u64::MAX);
            let records = (0..most).map(|_| record);
            let committed: VecDeque<(TxId, u64)> =
                (0..most).map(|tx| (TxId(tx), u64::MAX >> 16)).collect();
            let memory = Contents::new(0, config.pm.capacity).expect("room");
            let mut image = Image::over(&memory);
            let mut gasp = Gasp::new(&mut image, Cycle(0), u64::MAX);
            region.save(records, &committed, &mut gasp).expect("energy");
            let end = Line::of(shape.log_of(CoreId(1)));
            assert!(image.changed_lines().all(|line| line < end), "the next core's region");
        }
    }

    #[test]
    fn a_record_is_eighteen_bytes() {
        let record = Record::of(CoreId(3), TxId(0x1_0002), Word::of(0x1234_5678), u64::MAX);
        let record = record.with_flush_bit(true);
        assert_eq!(Record::from_bytes(&record.to_bytes()), record);
        assert_eq!(record.tx, 2, "transaction numbers wrap at 16 bits");
    }
}
