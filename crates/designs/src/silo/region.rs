//! Silo's log region: where a core's logs go when the buffer overflows or the power fails.
//!
//! ```text
//! first line   word 0  head 4, records 4   word 1  ID tuples   word 7  armed (of core 0 only)
//! then         a ring of lines of the on-DIMM buffer; from the head on lie
//!              records of 18 bytes: flush-bit 1, thread 1, transaction 2, address 6, data 8; none is
//!              in two lines, so that an overflow's batch is one line
//!              ID tuples of 8 bytes, from the next line on: transaction 2, place of its commit 6
//! ```
//!
//! Records that are appended after a truncation lie behind the old ones, in a line of their own, as
//! in any log. In the places of the old ones they would merge with them in the write-pending queue
//! and in the on-DIMM buffer, and most would never reach the cells.
//!
//! Only the battery writes the first line, the armed word last; without that word there is nothing
//! to recover. Recovery clears it with its last write.

use std::collections::{BTreeMap, VecDeque};

use model::design::{Gasp, Setup, Shape};
use model::device::Write;
use model::image::{Image, PowerLoss};
use model::meters::Class;
use model::units::{CoreId, LINE_BYTES, Line, TxId, Word};

use super::Silo;

/// Bytes of a record.
const RECORD_BYTES: u64 = 18;
const TUPLE_BYTES: u64 = 8;
const ARMED: u64 = 56;

/// The log region of one core, with the registers that say how much of it is in use. The battery
/// keeps these registers.
#[derive(Clone, Debug)]
pub struct Region {
    base: u64,
    bytes: u64,
    /// Bytes of a line of the on-DIMM buffer.
    line: u64,
    /// The line of the ring where the first record lies, or will lie.
    head: u64,
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

    fn from_bytes(bytes: &[u8; RECORD_BYTES as usize]) -> Record {
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
        Region { base, bytes, line: shape.config.pm.xpline, head: 0, records: 0 }
    }

    /// Forgets every record: the head becomes the tail.
    pub fn truncate(&mut self) {
        if self.records > 0 {
            self.head = (self.head + self.lines_of(self.records)) % self.lines();
            self.records = 0;
        }
    }

    /// Returns the writes that put records behind the others, or none if the region would then lack
    /// room for `reserve` logs at a power failure. The records count once [`Region::keep`] says so.
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
            .flat_map(|(index, record)| (self.place(index)..).zip(record.to_bytes()));
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

    /// Whether the region has room for this many more records and as many ID tuples.
    pub fn holds(&self, records: u64) -> bool {
        let tuples = records.div_ceil(self.line / TUPLE_BYTES);
        self.lines_of(self.records + records) + tuples <= self.lines()
    }

    /// How many bytes hold this many records and as many ID tuples, wherever the region begins.
    pub fn bytes_for(&self, records: u64) -> u64 {
        let tuples = records.div_ceil(self.line / TUPLE_BYTES);
        (1 + self.lines_of(records) + tuples) * self.line
    }

    /// Bytes of the region.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts records whose writes are durable.
    pub fn keep(&mut self, records: u64) {
        self.records += records;
    }

    /// Has the battery save records and ID tuples behind the records that are there, and then the
    /// numbers of both.
    pub fn save(
        &self,
        records: impl Iterator<Item = Record>,
        committed: &VecDeque<(TxId, u64)>,
        gasp: &mut Gasp<'_, '_>,
    ) -> Result<(), PowerLoss> {
        let mut count = self.records;
        for record in records {
            gasp.save(self.place(count), &record.to_bytes())?;
            count += 1;
        }
        for (index, &(tx, commit)) in (0..).zip(committed) {
            let tuple = u64::from(tx.0 as u16) | commit << 16;
            gasp.save_words(self.place_of_tuple(count, index), &[tuple])?;
        }
        gasp.save_words(self.base, &[self.head | count << 32, committed.len() as u64])
    }

    /// Reads where the first record is and how many there are. Returns how many ID tuples there
    /// are.
    fn read(&mut self, image: &Image<'_>) -> u64 {
        let registers = image.word(Word::of(self.base));
        (self.head, self.records) = (registers & u64::from(u32::MAX), registers >> 32);
        image.word(Word::of(self.base + 8))
    }

    /// Sets the armed word, by which the battery says that everything is saved.
    pub fn arm(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        gasp.save_words(self.base + ARMED, &[1])
    }

    /// The address at which a record begins.
    fn place(&self, record: u64) -> u64 {
        self.in_ring(record, RECORD_BYTES)
    }

    /// The address at which an ID tuple behind this many records begins.
    fn place_of_tuple(&self, records: u64, tuple: u64) -> u64 {
        let in_line = self.line / TUPLE_BYTES;
        self.in_ring(self.lines_of(records) * in_line + tuple, TUPLE_BYTES)
    }

    /// The address at which the `index`-th item of `bytes` bytes begins, if the first item lies in
    /// the head's line and no item lies in two lines.
    fn in_ring(&self, index: u64, bytes: u64) -> u64 {
        let in_line = self.line / bytes;
        let line = (self.head + index / in_line) % self.lines();
        self.first() + line * self.line + index % in_line * bytes
    }

    /// How many lines this many records take.
    fn lines_of(&self, records: u64) -> u64 {
        records.div_ceil(self.line / RECORD_BYTES)
    }

    /// How many lines the ring has.
    fn lines(&self) -> u64 {
        (self.base + self.bytes).saturating_sub(self.first()) / self.line
    }

    /// The address at which the ring begins.
    fn first(&self) -> u64 {
        (self.base + LINE_BYTES).next_multiple_of(self.line)
    }
}

/// How many records lie in a line of the on-DIMM buffer.
pub fn records_in_line(shape: &Shape) -> u64 {
    shape.config.pm.xpline / RECORD_BYTES
}

/// Replays the transactions that committed and revokes those that did not.
pub fn recover(image: &mut Image<'_>, setup: &Setup<'_, Silo>) -> Result<(), PowerLoss> {
    let armed = Word::of(setup.shape.log_of(CoreId(0)) + ARMED);
    if image.word(armed) == 0 {
        return Ok(());
    }
    let mut redo: Vec<(u64, Record)> = Vec::new();
    let mut undo: Vec<Record> = Vec::new();
    for core in (0..setup.shape.cores).map(CoreId) {
        let mut region = Region::new(setup.shape, core);
        let tuples = region.read(image);
        let records = region.records;
        let commits: BTreeMap<u16, u64> = (0..tuples)
            .map(|index| {
                let tuple = u64::from_le_bytes(image.bytes(region.place_of_tuple(records, index)));
                (tuple as u16, tuple >> 16)
            })
            .collect();
        let mut own = Vec::new();
        for index in 0..records {
            let record = Record::from_bytes(&image.bytes(region.place(index)));
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

#[cfg(test)]
mod tests {
    use model::config::Config;
    use model::contents::Contents;
    use model::units::Cycle;

    use super::*;

    /// At a power failure each record for which the region said to have room may belong to another
    /// committed transaction: the ID tuples of all of them must lie in the region, too.
    #[test]
    fn what_a_region_holds_lies_in_it_with_its_tuples() {
        let mut config = Config::default();
        (config.pm.log, config.pm.capacity) = (2048, 1 << 20);
        let shape = Shape::new(&config, 2);
        for (kept, head) in [(0, 0), (10, 0), (10, 5)] {
            let mut region = Region::new(&shape, CoreId(0));
            (region.head, region.records) = (head, kept);
            let most = (0..).find(|&count| !region.holds(count + 1)).expect("it is finite");
            let lines = |records: u64, tuples: u64| records.div_ceil(14) + tuples.div_ceil(32);
            assert!(lines(kept + most, most) <= 7 && lines(kept + most + 1, most + 1) > 7);
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
            let mut found = Region::new(&shape, CoreId(0));
            assert_eq!(found.read(&image), most);
            assert_eq!((found.head, found.records), (head, kept + most));
            let mut places: Vec<u64> = (kept..kept + most).map(|at| found.place(at)).collect();
            places.extend((0..most).map(|tuple| found.place_of_tuple(kept + most, tuple)));
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len() as u64, 2 * most, "nothing lies over something else");
        }
    }

    /// The tail goes on: a batch begins a line of the on-DIMM buffer, and does not lie where the
    /// batch before it lay, which is forgotten.
    #[test]
    fn what_follows_a_truncation_lies_behind_it() {
        let mut config = Config::default();
        (config.pm.log, config.pm.capacity) = (2048, 1 << 20);
        let mut region = Region::new(&Shape::new(&config, 1), CoreId(0));
        let record = Record::of(CoreId(0), TxId(1), Word(0), 1);
        let mut batch = |records: usize| {
            let writes = region.append(std::iter::repeat_n(record, records), 0).expect("room");
            region.keep(records as u64);
            region.truncate();
            let place = writes[0].line.address() - region.first();
            assert!(
                writes
                    .iter()
                    .all(|write| write.line.address() / 256 == writes[0].line.address() / 256)
            );
            (place / 256, place % 256)
        };
        let places: Vec<(u64, u64)> = [14, 3, 14, 14, 14, 14, 14, 14].map(&mut batch).to_vec();
        let lines = [0, 1, 2, 3, 4, 5, 6, 0];
        assert_eq!(places, lines.map(|line| (line, 0)), "and goes round");
    }

    /// The paper's figure for lines of four sizes (HPCA'23).
    #[test]
    fn a_batch_follows_the_lines_of_the_buffer() {
        let mut config = Config::default();
        (config.pm.log, config.pm.capacity) = (4096, 1 << 20);
        let in_line = [64, 128, 256, 512].map(|bytes| {
            config.pm.xpline = bytes;
            records_in_line(&Shape::new(&config, 1))
        });
        assert_eq!(in_line, [3, 7, 14, 28]);
    }

    #[test]
    fn a_record_is_eighteen_bytes() {
        let record = Record::of(CoreId(3), TxId(0x1_0002), Word::of(0x1234_5678), u64::MAX);
        let record = record.with_flush_bit(true);
        assert_eq!(Record::from_bytes(&record.to_bytes()), record);
        assert_eq!(record.tx, 2, "transaction numbers wrap at 16 bits");
    }
}
