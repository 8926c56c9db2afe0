//! Log records, in the widths of the papers (Silo, HPCA 2023; FWB, HPCA 2018).
//!
//! ```text
//! header   kind and flag 1, thread 1, transaction 2, address 6        10 bytes
//! data     undo word 8, redo word 8, as the kind has them             18 or 26 bytes in all
//! commit   kind and flag 1, thread 1, transaction 2, nothing 3         7 bytes
//! count    kind and flag 1, thread 1, transaction 2, redo records 3    7 bytes
//! packed   after the header a byte that says which bytes of the word follow, and only those
//! ```
//!
//! With the last byte of its line ([`super::ring`]) a commit record is 8 bytes.

use model::units::{CoreId, TxId, Word, spread};

/// Bytes of the longest record: a packed one in which every byte of both words differs.
pub const LONGEST: usize = 27;
const HEADER: usize = 10;
/// Bytes of the shortest records: a commit, and a count.
pub const SHORTEST: usize = 7;
const PACKED: u8 = 8;

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The old value of a word and a new one.
    UndoRedo = 1,
    /// A new value of a word.
    Redo = 2,
    /// The old value of a word.
    Undo = 3,
    /// That a transaction has committed.
    Commit = 4,
    /// How many redo records follow the record of a commit.
    Count = 5,
}

impl Kind {
    /// Whether it has an old value.
    pub fn undoes(self) -> bool {
        matches!(self, Kind::UndoRedo | Kind::Undo)
    }

    /// Whether it has a new value.
    pub fn redoes(self) -> bool {
        matches!(self, Kind::UndoRedo | Kind::Redo)
    }
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it holds.
    pub kind: Kind,
    /// The core whose transaction it is.
    pub core: CoreId,
    /// The transaction; its number has 16 bits.
    pub tx: u16,
    /// The word.
    pub word: Word,
    /// The bytes of the word that the record covers, one bit each.
    pub bytes: u8,
    /// The word before the store.
    pub undo: u64,
    /// The word after the store; or how many redo records there are.
    pub redo: u64,
}

impl Record {
    /// A record of a store.
    pub fn of(core: CoreId, tx: TxId, word: Word, undo: u64, redo: u64) -> Record {
        Record { kind: Kind::UndoRedo, core, tx: tx.0 as u16, word, bytes: u8::MAX, undo, redo }
    }

    /// The record of a commit.
    pub fn commit(core: CoreId, tx: TxId) -> Record {
        Record { kind: Kind::Commit, ..Record::of(core, tx, Word(0), 0, 0) }
    }

    /// The record that says how many redo records follow the record of a commit.
    pub fn count(core: CoreId, tx: TxId, records: u64) -> Record {
        Record { kind: Kind::Count, ..Record::of(core, tx, Word(0), 0, records) }
    }

    /// The record as bytes, and how many bytes that is.
    pub fn encode(&self) -> ([u8; LONGEST], usize) {
        let mut out = [0; LONGEST];
        let packed = self.bytes != u8::MAX;
        out[0] = self.kind as u8 | if packed { PACKED } else { 0 };
        out[1] = self.core.0;
        out[2..4].copy_from_slice(&self.tx.to_le_bytes());
        if matches!(self.kind, Kind::Commit | Kind::Count) {
            out[4..SHORTEST].copy_from_slice(&self.redo.to_le_bytes()[..3]);
            return (out, SHORTEST);
        }
        out[4..HEADER].copy_from_slice(&self.word.address().to_le_bytes()[..6]);
        let mut length = HEADER;
        if packed {
            out[length] = self.bytes;
            length += 1;
        }
        let words = [(self.kind.undoes(), self.undo), (self.kind.redoes(), self.redo)];
        for (_, value) in words.into_iter().filter(|(has, _)| *has) {
            if !packed {
                out[length..length + 8].copy_from_slice(&value.to_le_bytes());
                length += 8;
                continue;
            }
            for (place, byte) in value.to_le_bytes().into_iter().enumerate() {
                if self.bytes >> place & 1 == 1 {
                    out[length] = byte;
                    length += 1;
                }
            }
        }
        (out, length)
    }

    /// The record at the start of `bytes` and its length; none if there is none.
    pub fn decode(bytes: &[u8]) -> Option<(Record, usize)> {
        let kind = match bytes.first()? & !PACKED {
            1 => Kind::UndoRedo,
            2 => Kind::Redo,
            3 => Kind::Undo,
            4 => Kind::Commit,
            5 => Kind::Count,
            _ => return None,
        };
        let packed = bytes[0] & PACKED != 0;
        let core = CoreId(*bytes.get(1)?);
        if matches!(kind, Kind::Commit | Kind::Count) {
            let tx = TxId(u64_of(bytes.get(2..4)?));
            let records = u64_of(bytes.get(4..SHORTEST)?);
            return Some((Record { kind, ..Record::count(core, tx, records) }, SHORTEST));
        }
        // The transaction and the address at once.
        let header = u64::from_le_bytes(*bytes.get(2..)?.first_chunk()?);
        let (tx, word) = (TxId(header), Word::of(header >> 16));
        let mut record = Record { kind, ..Record::of(core, tx, word, 0, 0) };
        let mut length = HEADER;
        if packed {
            record.bytes = *bytes.get(length)?;
            length += 1;
        }
        let mut read = |has: bool| {
            let mut left = if has { record.bytes } else { 0 };
            if left == u8::MAX {
                length += 8;
                return Some(u64::from_le_bytes(*bytes.get(length - 8..)?.first_chunk()?));
            }
            let mut value = 0;
            while left != 0 {
                value |= u64::from(*bytes.get(length)?) << (8 * left.trailing_zeros());
                left &= left - 1;
                length += 1;
            }
            Some(value)
        };
        record.undo = read(kind.undoes())?;
        record.redo = read(kind.redoes())?;
        Some((record, length))
    }

    /// A bit mask of the word's bits that the record covers.
    pub fn bits(&self) -> u64 {
        spread(self.bytes)
    }
}

/// The bytes in which two words differ, one bit each.
pub fn differing(one: u64, other: u64) -> u8 {
    let differ = (one ^ other).to_le_bytes();
    (0..8).filter(|&place| differ[place] != 0).fold(0, |bytes, place| bytes | 1 << place)
}

fn u64_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Record {
        Record::of(CoreId(3), TxId(0x1_0002), Word::of(0x1234_5678), u64::MAX, 7)
    }

    #[test]
    fn a_record_has_the_bytes_of_the_papers() {
        let length = |kind| Record { kind, ..full() }.encode().1;
        assert_eq!(length(Kind::UndoRedo), 26);
        assert_eq!((length(Kind::Redo), length(Kind::Undo)), (18, 18));
        assert_eq!((length(Kind::Commit), length(Kind::Count)), (7, 7));
        assert_eq!(full().tx, 2, "transaction numbers wrap at 16 bits");
    }

    #[test]
    fn what_is_written_is_read() {
        for kind in [Kind::UndoRedo, Kind::Redo, Kind::Undo] {
            for bytes in [0xff, 0x01, 0x80, 0x5a, 0] {
                let bits = spread(bytes);
                let undo = if kind.undoes() { 0x1122_3344_5566_7788 & bits } else { 0 };
                let redo = if kind.redoes() { 0x99aa_bbcc_ddee_ff01 & bits } else { 0 };
                let record = Record { kind, bytes, undo, redo, ..full() };
                let (out, length) = record.encode();
                assert_eq!(Record::decode(&out[..length]), Some((record, length)));
                assert_eq!(Record::decode(&out[..length - 1]), None, "a part is no record");
            }
        }
        let count = Record::count(CoreId(3), TxId(9), 0x1_2345);
        assert_eq!(Record::decode(&count.encode().0), Some((count, 7)));
        assert_eq!(Record::decode(&[0; 64]), None);
    }

    #[test]
    fn a_packed_record_has_only_the_bytes_that_differ() {
        assert_eq!(differing(0x0100, 0x0200), 0b10);
        let record = Record { bytes: differing(0x0100, 0x0200), ..full() };
        assert_eq!(record.encode().1, 10 + 1 + 2);
    }
}
