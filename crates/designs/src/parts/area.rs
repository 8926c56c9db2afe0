//! The log area of one core, as hardware writes it: a ring of words behind a line of marks.
//!
//! ```text
//! first line   marks: eight words, each written alone, so each is there whole or not at all
//! then         the ring: the word of position p is the (p modulo its size)-th
//! ```
//!
//! Positions only grow. A mark that holds one says in which lap it was left, and a record that
//! carries its own is not taken for one of another lap.

use model::controller::Notify;
use model::design::{Below, Shape};
use model::device::Write;
use model::meters::Class;
use model::units::{CoreId, Cycle, LINE_BYTES, LINE_WORDS, Line, WORD_BYTES, Word};

/// The ring is a multiple of two lines, so that records of two lines lie in one piece.
const PIECE_WORDS: u64 = 2 * LINE_WORDS;

/// Where the log area of a core is.
#[derive(Clone, Debug)]
pub struct Area {
    base: u64,
    bytes: u64,
    words: u64,
}

impl Area {
    /// The area of a core.
    pub fn new(shape: &Shape, core: CoreId) -> Area {
        let words = (shape.log_bytes - LINE_BYTES) / WORD_BYTES;
        Area {
            base: shape.log_of(core),
            bytes: shape.log_bytes,
            words: words - words % PIECE_WORDS,
        }
    }

    /// How many bytes it has, the marks included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many words the ring holds.
    pub fn words(&self) -> u64 {
        self.words
    }

    /// Whether a write of so many words at a position begins a new lap.
    pub fn wraps(&self, position: u64, words: u64) -> bool {
        position / self.words != (position + words) / self.words
    }

    /// A mark.
    pub fn mark(&self, index: u64) -> Word {
        Word::of(self.base + index * WORD_BYTES)
    }

    /// The word of a position.
    pub fn word(&self, position: u64) -> Word {
        Word::of(self.base + LINE_BYTES + position % self.words * WORD_BYTES)
    }

    /// Sends words to the ring, past the caches: a write for each line, one a cycle. `notify` is
    /// told of each one that is durable. Returns how many writes there are.
    pub fn append<E: Copy>(
        &self,
        position: u64,
        words: &[u64],
        at: Cycle,
        notify: Notify<E>,
        below: &mut Below<E>,
    ) -> u64 {
        let mut writes = 0;
        let mut open: Option<Write> = None;
        for (place, &value) in (position..).zip(words) {
            let word = self.word(place);
            if let Some(full) = open.take_if(|write| write.line != word.line()) {
                below.send_direct(at + below.shape.path + writes, full, notify);
                writes += 1;
            }
            let write = open.get_or_insert(empty(word.line(), Class::Log));
            put(write, word, value, below);
        }
        if let Some(last) = open {
            below.send_direct(at + below.shape.path + writes, last, notify);
            writes += 1;
        }
        writes
    }

    /// Sends a mark, past the caches.
    pub fn set_mark<E: Copy>(
        &self,
        index: u64,
        value: u64,
        at: Cycle,
        notify: Notify<E>,
        below: &mut Below<E>,
    ) {
        let word = self.mark(index);
        let mut write = empty(word.line(), Class::Commit);
        put(&mut write, word, value, below);
        below.send_direct(at + below.shape.path, write, notify);
    }
}

fn empty(line: Line, class: Class) -> Write {
    Write { line, data: [0; LINE_BYTES as usize], mask: 0, class }
}

/// Puts a word into a write of its line. The view has it from now on, like every write that is
/// under way: where the caches survive, what is under way is saved from there.
fn put<E>(write: &mut Write, word: Word, value: u64, below: &mut Below<E>) {
    let place = word.place() * WORD_BYTES as usize;
    write.data[place..place + WORD_BYTES as usize].copy_from_slice(&value.to_le_bytes());
    write.mask |= word.mask();
    below.view.set_word(word, value);
}

#[cfg(test)]
mod tests {
    use model::config::Config;

    use super::*;

    fn area(log: u64) -> Area {
        let mut config = Config::default();
        config.pm.log = log;
        Area::new(&Shape::new(&config, 2), CoreId(1))
    }

    #[test]
    fn a_ring_holds_whole_pieces_and_goes_round() {
        let area = area(1024);
        assert_eq!(area.words(), 112, "seven pieces of two lines, one line of marks");
        assert_eq!(area.word(112), area.word(0));
        assert_eq!(area.word(0).address(), area.mark(0).address() + LINE_BYTES);
        assert!(area.word(111).address() < area.base + area.bytes());
    }

    #[test]
    fn a_lap_ends_where_the_ring_does() {
        let area = area(1024);
        assert!(!area.wraps(0, 111) && area.wraps(0, 112) && area.wraps(96, 16));
        assert!(!area.wraps(112, 16));
    }
}
