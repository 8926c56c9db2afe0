//! What the log's metadata words and its head say, and how they are written.
//!
//! ```text
//! a word of a metadata block (8 B), from the lowest bit:
//!   kind 2 | pass 2 | ...
//!   block   TxID 16 | TxCnt 8 | BLK-TAG 36
//!   early   core 6 | number 16 | BLK-TAG 36           a block of a transaction that runs
//!   note    what 2 | TxID 16 | of 12 | to 12 | n 18   TxCnt, a dependency pair, an adoption, a record
//! the head (8 B): TxID 16 | pass 2 | group 32
//! ```
//!
//! The widths are ours; the paper's are not known. The pass says how often the log had wrapped when
//! the word was written, so that words of the pass before are not taken for new ones. Each word has
//! its own, since a block may be torn between words.

use model::units::{CoreId, Line};

/// The place of a transaction among all that ended, from 0. In the log it is the TxID, cut to its
/// low bits.
pub type Place = u64;

/// A transaction while it runs: its core, and its number among those of its core that stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Running {
    pub core: CoreId,
    pub number: u64,
}

/// What a metadata word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The data block beside it is what a transaction left in a line. One entry of the transaction
    /// has its TxCnt, the others have 0.
    Block { line: Line, by: Place, count: u64 },
    /// The data block beside it is what a transaction that runs left in a line.
    Early { line: Line, running: Running },
    /// The TxCnt of `of`, in an entry of `by`.
    Count { by: Place, of: Place, count: u64 },
    /// The dependency pair <Tp, Tq, n> in an entry of `by`: n blocks of `from` are there only as
    /// blocks of `to`.
    Pair { by: Place, from: Place, to: Place, blocks: u64 },
    /// An entry of `by`, which says that the early entries of `running` are those of `of`.
    Adopt { by: Place, of: Place, running: Running },
    /// The commit record (H-WAL).
    Record { by: Place },
}

/// How many bits a TxID has in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub id_bits: u64,
}

/// Where the log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The group of the oldest entry that counts, in the log region, and its pass.
    pub group: u64,
    pub pass: u64,
    /// The first transaction that counts.
    pub first: Place,
}

/// The largest TxCnt that a block's own word has room for.
pub const COUNT_MAX: u64 = 0xff;

/// The most lines of a transaction that has a TxCnt: its note counts them, and the transaction's
/// notes as well, of which there are fewer than distances between transactions.
pub const LINES_MAX: u64 = (1 << BLOCKS) - (1 << DISTANCE);

const BLOCK: u64 = 1;
const EARLY: u64 = 2;
const NOTE: u64 = 3;
const KIND: u32 = 2;
const PASS: u32 = 2;
const ID: u32 = 16;
const COUNT: u32 = 8;
const TAG: u32 = 36;
const CORE: u32 = 6;
const WHAT: u32 = 2;
const DISTANCE: u32 = 12;
const BLOCKS: u32 = 18;

impl Format {
    /// How many transactions can be told apart: a TxID that is fewer than this many after the
    /// head's is a later one, any other an earlier one.
    pub fn reach(self) -> u64 {
        1 << (self.id_bits - 1)
    }

    fn cut(self, place: u64) -> u64 {
        place & ((1 << self.id_bits) - 1)
    }

    /// The place that a TxID means, if that is not before `first`.
    fn place(self, id: u64, first: Place) -> Option<Place> {
        let ahead = self.cut(id.wrapping_sub(first));
        (ahead < self.reach()).then_some(first + ahead)
    }

    /// The word of an entry.
    pub fn encode(self, entry: Entry, pass: u64) -> u64 {
        let (kind, fields) = match entry {
            Entry::Block { line, by, count } => {
                (BLOCK, [(self.cut(by), ID), (count, COUNT), (line.0, TAG), (0, 0), (0, 0)])
            }
            Entry::Early { line, running } => {
                let (core, number) = (u64::from(running.core.0), self.cut(running.number));
                (EARLY, [(core, CORE), (number, ID), (line.0, TAG), (0, 0), (0, 0)])
            }
            Entry::Count { by, of, count } => (NOTE, self.note(0, by, by - of, 0, count)),
            Entry::Pair { by, from, to, blocks } => {
                (NOTE, self.note(1, by, by - from, by - to, blocks))
            }
            Entry::Adopt { by, of, running } => {
                let core = u64::from(running.core.0);
                (NOTE, self.note(2, by, by - of, core, self.cut(running.number)))
            }
            Entry::Record { by } => (NOTE, self.note(3, by, 0, 0, 0)),
        };
        let mut packer = Packer::default();
        packer.put(kind, KIND);
        packer.put(pass % 4, PASS);
        fields.into_iter().for_each(|(value, bits)| packer.put(value, bits));
        packer.word
    }

    fn note(self, what: u64, by: Place, of: u64, to: u64, n: u64) -> [(u64, u32); 5] {
        [(what, WHAT), (self.cut(by), ID), (of, DISTANCE), (to, DISTANCE), (n, BLOCKS)]
    }

    /// The entry that a word holds, if it is of the given pass (`None` for any) and of a
    /// transaction that is not before `first`.
    pub fn decode(self, word: u64, pass: Option<u64>, first: Place) -> Option<Entry> {
        let mut bits = Unpacker { word };
        let kind = bits.take(KIND);
        let of_pass = bits.take(PASS);
        if pass.is_some_and(|pass| pass % 4 != of_pass) {
            return None;
        }
        match kind {
            BLOCK => {
                let by = self.place(bits.take(ID), first)?;
                let count = bits.take(COUNT);
                Some(Entry::Block { line: Line(bits.take(TAG)), by, count })
            }
            EARLY => {
                let core = CoreId(bits.take(CORE) as u8);
                let running = Running { core, number: bits.take(ID) };
                Some(Entry::Early { line: Line(bits.take(TAG)), running })
            }
            NOTE => {
                let what = bits.take(WHAT);
                let by = self.place(bits.take(ID), first)?;
                let (of, to) = (bits.take(DISTANCE), bits.take(DISTANCE));
                let (number, of) = (bits.take(BLOCKS), by.checked_sub(of)?);
                Some(match what {
                    0 => Entry::Count { by, of, count: number },
                    1 => Entry::Pair { by, from: of, to: by.checked_sub(to)?, blocks: number },
                    2 => {
                        let running = Running { core: CoreId(to as u8), number };
                        Entry::Adopt { by, of, running }
                    }
                    _ => Entry::Record { by },
                })
            }
            _ => None,
        }
    }

    /// Whether a word is an entry of the given pass (`None` for any), of whichever transaction.
    pub fn is_entry(self, word: u64, pass: Option<u64>) -> bool {
        let mut bits = Unpacker { word };
        let kind = bits.take(KIND);
        let of_pass = bits.take(PASS);
        kind != 0 && pass.is_none_or(|pass| pass % 4 == of_pass)
    }

    /// Whether a word is an entry of the given pass that has no data block.
    pub fn is_note(self, word: u64, pass: Option<u64>) -> bool {
        self.is_entry(word, pass) && Unpacker { word }.take(KIND) == NOTE
    }

    /// The word of a head.
    pub fn encode_head(self, head: Head) -> u64 {
        let mut packer = Packer::default();
        packer.put(self.cut(head.first), ID);
        packer.put(head.pass % 4, PASS);
        packer.put(head.group, 32);
        packer.word
    }

    /// The head that a word holds. A word of 0 is the head of a new log.
    pub fn decode_head(self, word: u64) -> Head {
        let mut bits = Unpacker { word };
        let (first, pass) = (bits.take(ID), bits.take(PASS));
        Head { first, pass, group: bits.take(32) }
    }
}

#[derive(Default)]
struct Packer {
    word: u64,
    used: u32,
}

impl Packer {
    fn put(&mut self, value: u64, bits: u32) {
        if bits == 0 {
            return;
        }
        assert!(value >> bits == 0, "{value} fits {bits} bits");
        self.word |= value << self.used;
        self.used += bits;
    }
}

struct Unpacker {
    word: u64,
}

impl Unpacker {
    fn take(&mut self, bits: u32) -> u64 {
        let value = self.word & ((1 << bits) - 1);
        self.word >>= bits;
        value
    }
}

const _: () = assert!(KIND + PASS + ID + COUNT + TAG == 64, "a block's word");
const _: () = assert!(KIND + PASS + CORE + ID + TAG <= 64, "an early block's word");
const _: () = assert!(KIND + PASS + WHAT + ID + 2 * DISTANCE + BLOCKS == 64, "a note's word");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_was_written() {
        let running = Running { core: CoreId(63), number: 7 };
        let format = Format { id_bits: 16 };
        for entry in [
            Entry::Block { line: Line((1 << 36) - 1), by: 70_000, count: 255 },
            Entry::Early { line: Line(5), running },
            Entry::Count { by: 70_010, of: 70_003, count: 200_000 },
            Entry::Pair { by: 70_010, from: 70_003, to: 70_009, blocks: 12 },
            Entry::Adopt { by: 70_010, of: 70_010, running },
            Entry::Record { by: 70_010 },
        ] {
            let word = format.encode(entry, 6);
            assert_eq!(format.decode(word, Some(2), 69_990), Some(entry), "the pass is modulo 4");
            assert_eq!(format.decode(word, Some(3), 69_990), None, "of another pass");
            assert!(format.is_entry(word, Some(2)) && !format.is_entry(word, Some(3)));
        }
        assert_eq!(format.decode(0, None, 0), None, "padding");
        assert!(!format.is_entry(0, None), "padding");
    }

    #[test]
    fn a_transaction_before_the_head_does_not_count() {
        let format = Format { id_bits: 6 };
        let word = |by| format.encode(Entry::Record { by }, 0);
        assert_eq!(format.decode(word(99), Some(0), 100), None);
        assert_eq!(format.decode(word(131), Some(0), 100), Some(Entry::Record { by: 131 }));
        assert_eq!(format.decode(word(132), Some(0), 100), None, "out of reach");
    }

    #[test]
    fn a_head_is_one_word() {
        let format = Format { id_bits: 16 };
        let head = Head { group: 123_456, pass: 3, first: 65_535 };
        assert_eq!(format.decode_head(format.encode_head(head)), head);
        assert_eq!(format.decode_head(0), Head { group: 0, pass: 0, first: 0 });
    }
}
