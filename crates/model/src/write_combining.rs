//! The write-combining buffers of a core: lines on their way past the caches.

use crate::device::Write;
use crate::meters::Class;
use crate::units::{LINE_BYTES, Line, Word};

/// A core's write-combining buffers, oldest first.
#[derive(Clone, Debug)]
pub struct Combining {
    buffers: Vec<Write>,
    capacity: usize,
}

impl Combining {
    /// `capacity` empty buffers of a line each.
    pub fn new(capacity: u64) -> Combining {
        Combining { buffers: Vec::new(), capacity: capacity as usize }
    }

    /// Stores a word, and returns the writes that have to leave: a line that is full, or the oldest
    /// one when there is no buffer for another.
    pub fn store(&mut self, word: Word, value: u64) -> Vec<Write> {
        let mut out = Vec::new();
        let line = word.line();
        let index = match self.buffers.iter().position(|buffer| buffer.line == line) {
            Some(index) => index,
            None => {
                if self.buffers.len() == self.capacity {
                    out.push(self.buffers.remove(0));
                }
                let data = [0; LINE_BYTES as usize];
                self.buffers.push(Write { line, data, mask: 0, class: Class::Data });
                self.buffers.len() - 1
            }
        };
        let buffer = &mut self.buffers[index];
        let at = word.place() * 8;
        buffer.data[at..at + 8].copy_from_slice(&value.to_le_bytes());
        buffer.mask |= word.mask();
        if buffer.mask == u64::MAX {
            out.push(self.buffers.remove(index));
        }
        out
    }

    /// Whether no buffer is in use.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// Empties the buffer of a line, if there is one.
    pub fn take_line(&mut self, line: Line) -> Option<Write> {
        let index = self.buffers.iter().position(|buffer| buffer.line == line)?;
        Some(self.buffers.remove(index))
    }

    /// Empties every buffer: a fence or a locked operation.
    pub fn take_all(&mut self) -> Vec<Write> {
        std::mem::take(&mut self.buffers)
    }

    /// The lines in the buffers.
    pub fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        self.buffers.iter().map(|buffer| buffer.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_line_leaves_at_once() {
        let mut combining = Combining::new(2);
        for word in 0..7 {
            assert!(combining.store(Word(word), 1).is_empty());
        }
        let out = combining.store(Word(7), 1);
        assert_eq!((out.len(), out[0].mask), (1, u64::MAX));
    }

    #[test]
    fn the_oldest_line_makes_room_with_what_it_has() {
        let mut combining = Combining::new(2);
        combining.store(Word(0), 1);
        combining.store(Word(8), 1);
        let out = combining.store(Word(16), 1);
        assert_eq!((out.len(), out[0].line, out[0].mask), (1, Line(0), 0xff));
        assert_eq!(combining.take_all().len(), 2);
    }
}
