//! The log area of one core, as hardware writes it: a ring of words behind a line of marks.
//!
//! ```text
//! first line   marks: eight words, each of which is there whole or not at all
//! then         the ring: the word of position p is the (p modulo its size)-th
//! ```
//!
//! Positions only grow. A mark that holds a position says in which lap it was left, and a record
//! that carries its position is not taken for one of another lap.

use model::controller::Notify;
use model::design::{Below, Shape};
use model::device::Write;
use model::meters::Class;
use model::units::{CoreId, Cycle, LINE_BYTES, LINE_WORDS, Line, WORD_BYTES, Word};

/// The ring is a multiple of two lines, so that records of two lines lie in one piece.
const PIECE_WORDS: u64 = 2 * LINE_WORDS;

/// The log area of a core, and its place.
#[derive(Clone, Debug)]
pub struct Area {
    base: u64,
    bytes: u64,
    words: u64,
}

impl Area {
    /// The area of a core.
    pub fn new(shape: &Shape, core: CoreId) -> Area {
        let bytes = shape.log_bytes;
        let words = (bytes - LINE_BYTES) / WORD_BYTES;
        Area { base: shape.log_of(core), bytes, words: words - words % PIECE_WORDS }
    }

    /// How many bytes the area has, including the marks.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many words the ring holds.
    pub fn words(&self) -> u64 {
        self.words
    }

    /// Whether a write of `words` words at a position begins a new lap.
    pub fn wraps(&self, position: u64, words: u64) -> bool {
        position / self.words != (position + words) / self.words
    }

    /// A mark.
    pub fn mark(&self, index: u64) -> Word {
        self.at(index * WORD_BYTES)
    }

    /// The word of a position.
    pub fn word(&self, position: u64) -> Word {
        self.at(LINE_BYTES + position % self.words * WORD_BYTES)
    }

    fn at(&self, offset: u64) -> Word {
        Word::of(self.base + offset)
    }

    /// Sends words to the ring, past the caches: whole lines, one a cycle. `notify` is told of each
    /// line that is durable. Returns how many lines there are.
    pub fn append<E: Copy>(
        &self,
        position: u64,
        words: &[u64],
        at: Cycle,
        notify: Notify<E>,
        below: &mut Below<E>,
    ) -> u64 {
        let (mut place, mut left, mut lines) = (position, words, 0);
        while !left.is_empty() {
            let first = self.word(place);
            let room = LINE_WORDS as usize - first.place();
            let (here, behind) = left.split_at(room.min(left.len()));
            let line = below.view.pm.line_mut(first.line());
            let words = &mut line.as_chunks_mut::<8>().0[first.place()..];
            words.iter_mut().zip(here).for_each(|(word, value)| *word = value.to_le_bytes());
            send(first.line(), Class::Log, at + lines, notify, below);
            (place, left, lines) = (place + here.len() as u64, behind, lines + 1);
        }
        lines
    }

    /// Sends a mark, past the caches, with the other marks as they were sent last.
    pub fn set_mark<E: Copy>(
        &self,
        index: u64,
        value: u64,
        at: Cycle,
        notify: Notify<E>,
        below: &mut Below<E>,
    ) {
        below.view.set_word(self.mark(index), value);
        send(self.mark(index).line(), Class::Commit, at, notify, below);
    }
}

/// Sends a line of the log whole, so that no memory has to read the rest of it. The view has the
/// line's newest bytes, and writes of one line stay in order.
fn send<E: Copy>(line: Line, class: Class, at: Cycle, notify: Notify<E>, below: &mut Below<E>) {
    let write = Write::whole(line, below.line(line), class);
    below.send(at, write, notify);
}

#[cfg(test)]
mod tests {
    use model::config::Config;

    use super::*;

    fn area(log: u64, core: u8) -> Area {
        let mut config = Config::default();
        (config.pm.log, config.pm.row) = (log, 256);
        Area::new(&Shape::new(&config, 8), CoreId(core))
    }

    #[test]
    fn a_ring_holds_whole_pieces_and_goes_round() {
        let area = area(1024, 1);
        assert_eq!(area.words(), 112, "seven pieces of two lines, one line of marks");
        assert_eq!(area.word(112), area.word(0));
        assert_eq!(area.word(0).address(), area.mark(0).address() + LINE_BYTES);
    }

    #[test]
    fn every_word_has_a_place_of_its_own_in_the_area() {
        for core in 0..8 {
            let area = area(1024, core);
            let mut places: Vec<u64> = (0..8).map(|mark| area.mark(mark).address()).collect();
            places.extend((0..area.words()).map(|position| area.word(position).address()));
            assert_eq!(area.mark(0).line(), area.mark(7).line());
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len() as u64, area.words() + 8);
            let ends = (places[0], places[places.len() - 1]);
            assert!(area.base <= ends.0 && ends.1 < area.base + area.bytes());
        }
    }

    #[test]
    fn a_lap_ends_where_the_ring_does() {
        let area = area(1024, 1);
        assert!(!area.wraps(0, 111) && area.wraps(0, 112) && area.wraps(96, 16));
        assert!(!area.wraps(112, 16));
    }
}
