//! The write-combining buffers of a core: lines on their way past the caches.

use crate::answers::Answers;
use crate::device::Write;
use crate::image::put_word;
use crate::meters::Class;
use crate::units::{Cycle, LINE_BYTES, Line, Word};

/// A core's write-combining buffers. A buffer that was sent stays in use until the answer of its
/// controller comes.
#[derive(Clone, Debug)]
pub struct Combining {
    /// The buffers that gather a line, oldest first.
    buffers: Vec<Write>,
    /// The answers to those that were sent.
    answers: Answers,
    capacity: usize,
}

/// The room for a store past the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// A buffer that is free, or gathers the store's line, from this cycle on.
    At(Cycle),
    /// The oldest buffer, once it was sent and its answer has come.
    Oldest,
    /// A buffer that was sent, whose answer comes at a time that is not known yet.
    Unknown,
}

impl Combining {
    /// Returns `capacity` empty buffers of a line each.
    pub fn new(capacity: u64) -> Combining {
        let (buffers, answers) = (Vec::new(), Answers::default());
        Combining { buffers, answers, capacity: capacity as usize }
    }

    /// Returns the room for a store to a line that could leave at `at`.
    pub fn room(&mut self, line: Line, at: Cycle) -> Room {
        if self.buffers.iter().any(|buffer| buffer.line == line) {
            return Room::At(at);
        }
        match self.capacity - self.buffers.len() {
            0 => Room::Oldest,
            places => self.answers.place(places, at).map_or(Room::Unknown, Room::At),
        }
    }

    /// Stores words that lie in one line, for which there is room. If the line is full then,
    /// empties its buffer and returns the write.
    pub fn store(&mut self, first: Word, values: &[u64]) -> Option<Write> {
        let line = first.line();
        let open = self.buffers.iter().position(|buffer| buffer.line == line);
        let index = open.unwrap_or_else(|| {
            let data = [0; LINE_BYTES as usize];
            self.buffers.push(Write { line, data, mask: 0, class: Class::Data });
            self.buffers.len() - 1
        });
        let buffer = &mut self.buffers[index];
        for (word, value) in (first.0..).map(Word).zip(values) {
            put_word(&mut buffer.data, word, *value);
            buffer.mask |= word.mask();
        }
        let is_full = buffer.mask == u64::MAX;
        is_full.then(|| self.buffers.remove(index))
    }

    /// The answers to the buffers that were sent.
    pub fn answers(&mut self) -> &mut Answers {
        &mut self.answers
    }

    /// Empties the oldest buffer, and returns its write.
    pub fn take_oldest(&mut self) -> Option<Write> {
        (!self.buffers.is_empty()).then(|| self.buffers.remove(0))
    }

    /// Empties the buffer of a line, if there is one, and returns its write.
    pub fn take_line(&mut self, line: Line) -> Option<Write> {
        let index = self.buffers.iter().position(|buffer| buffer.line == line)?;
        Some(self.buffers.remove(index))
    }

    /// Returns the writes that the buffers gather, oldest first.
    pub fn gathered(&self) -> impl Iterator<Item = &Write> {
        self.buffers.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [u64; 8] = [1; 8];

    #[test]
    fn a_full_line_leaves_at_once() {
        let mut combining = Combining::new(2);
        for word in 0..7 {
            assert!(combining.store(Word(word), &[1]).is_none());
        }
        let out = combining.store(Word(7), &[1]).expect("the line is full");
        assert_eq!((out.line, out.mask), (Line(0), u64::MAX));
        assert!(combining.store(Word(16), &WORDS).is_some_and(|out| out.line == Line(2)));
        assert_eq!(combining.gathered().count(), 0);
    }

    #[test]
    fn the_oldest_line_makes_room_with_what_it_has() {
        let mut combining = Combining::new(2);
        combining.store(Word(0), &[1]);
        combining.store(Word(8), &[1]);
        assert_eq!(combining.room(Line(1), Cycle(5)), Room::At(Cycle(5)));
        assert_eq!(combining.room(Line(2), Cycle(5)), Room::Oldest);
        let out = combining.take_oldest().expect("an open line");
        assert_eq!((out.line, out.mask), (Line(0), 0xff));
    }

    #[test]
    fn a_buffer_is_in_use_until_its_answer_comes() {
        let mut combining = Combining::new(2);
        for line in 0..2 {
            combining.store(Word(8 * line), &WORDS);
            combining.answers().note_sent();
        }
        assert_eq!(combining.room(Line(2), Cycle(10)), Room::Unknown);
        combining.answers().note_answered(Cycle(50));
        assert_eq!(combining.room(Line(2), Cycle(10)), Room::At(Cycle(50)));
        assert_eq!(combining.room(Line(2), Cycle(60)), Room::At(Cycle(60)));
        combining.store(Word(16), &[1]);
        assert_eq!(combining.room(Line(3), Cycle(70)), Room::Unknown);
    }
}
