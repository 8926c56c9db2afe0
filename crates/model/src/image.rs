//! What is left after the power has failed: the durable bytes, and what recovery makes of them.

use rustc_hash::FxHashMap;

use crate::contents::Contents;
use crate::units::{LINE_BYTES, Line, LineData, Word};

/// The power failed (again) while recovery was writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLoss;

/// The durable bytes at a power failure, as the battery and then recovery see and change them.
///
/// It lies over the durable contents of a machine that goes on running: what is written here is
/// kept aside, so a power failure costs what it writes and not what the memory holds.
///
/// Beyond the memory's last address are the cells of a design's own non-volatile structures
/// ([`KeptBy::Cells`](crate::card::KeptBy::Cells)). They are 0 until `power_loss` says what they hold.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    base: &'a Contents,
    changed: FxHashMap<Line, LineData>,
    writes_left: u64,
    writes: u64,
}

impl<'a> Image<'a> {
    /// The image of the given durable bytes, with power that does not fail again.
    pub fn over(base: &'a Contents) -> Image<'a> {
        Image { base, changed: FxHashMap::default(), writes_left: u64::MAX, writes: 0 }
    }

    /// This image, in which power fails again once `writes` more writes have taken effect.
    #[must_use]
    pub fn failing_after(&self, writes: u64) -> Image<'a> {
        Image { writes_left: writes, writes: 0, ..self.clone() }
    }

    /// This image, with power that does not fail again.
    #[must_use]
    pub fn powered(self) -> Image<'a> {
        Image { writes_left: u64::MAX, writes: 0, ..self }
    }

    /// How many bytes the memory holds.
    pub fn capacity(&self) -> u64 {
        self.base.capacity()
    }

    /// How many writes took effect since power came back.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// A word.
    pub fn word(&self, word: Word) -> u64 {
        match self.changed.get(&word.line()) {
            Some(line) => word_of(line, word),
            None => word_of(self.before(word.line()), word),
        }
    }

    /// A line.
    pub fn line(&self, line: Line) -> &LineData {
        self.changed.get(&line).unwrap_or_else(|| self.before(line))
    }

    /// Changes a word. A word is written whole or not at all.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails before the write takes effect.
    pub fn set_word(&mut self, word: Word, value: u64) -> Result<(), PowerLoss> {
        self.spend()?;
        let at = word.place() * 8;
        self.line_mut(word.line())[at..at + 8].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// Changes the bytes of a line that `mask` selects, one bit a byte. The line is written whole
    /// or not at all, as when a controller's queue accepts it.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails before the write takes effect.
    pub fn set_line(&mut self, line: Line, data: &LineData, mask: u64) -> Result<(), PowerLoss> {
        self.spend()?;
        apply_masked(self.line_mut(line), data, mask);
        Ok(())
    }

    /// The lines that differ, or may differ, from the durable bytes.
    pub fn changed_lines(&self) -> impl Iterator<Item = Line> + '_ {
        self.changed.keys().copied()
    }

    fn line_mut(&mut self, line: Line) -> &mut LineData {
        let before = *self.before(line);
        self.changed.entry(line).or_insert(before)
    }

    /// A line as it was before anything was written here.
    fn before(&self, line: Line) -> &LineData {
        match line.address() < self.base.capacity() {
            true => self.base.line(line),
            false => &[0; LINE_BYTES as usize],
        }
    }

    fn spend(&mut self) -> Result<(), PowerLoss> {
        if self.writes_left == 0 {
            return Err(PowerLoss);
        }
        self.writes_left -= 1;
        self.writes += 1;
        Ok(())
    }
}

/// A word of a line's data.
pub fn word_of(line: &LineData, word: Word) -> u64 {
    let at = word.place() * 8;
    u64::from_le_bytes(line[at..at + 8].try_into().expect("a word has 8 bytes"))
}

/// Copies the bytes that `mask` selects, one bit a byte.
pub fn apply_masked(line: &mut LineData, data: &LineData, mask: u64) {
    if mask == u64::MAX {
        *line = *data;
        return;
    }
    let mut left = mask;
    while left != 0 {
        let word = (left.trailing_zeros() / 8) as usize;
        let first = 8 * word;
        match mask >> first & 0xff {
            0xff => line[first..first + 8].copy_from_slice(&data[first..first + 8]),
            bits => (0..8).filter(|byte| bits >> byte & 1 == 1).for_each(|byte| {
                line[first + byte] = data[first + byte];
            }),
        }
        left &= !(0xff << first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_recovery_writes_stays_aside() {
        let mut durable = Contents::new(0, 4096).expect("room");
        durable.set_word(Word(3), 7);
        let mut image = Image::over(&durable);
        image.set_word(Word(3), 8).expect("power");
        assert_eq!((image.word(Word(3)), durable.word(Word(3))), (8, 7));
        assert_eq!(image.changed_lines().collect::<Vec<_>>(), [Line(0)]);
    }

    #[test]
    fn cells_of_a_design_lie_beyond_the_memory() {
        let durable = Contents::new(0, 4096).expect("room");
        let mut image = Image::over(&durable);
        let cell = Word::of(image.capacity() + 8);
        assert_eq!(image.word(cell), 0);
        image.set_word(cell, 7).expect("power");
        assert_eq!((image.word(cell), image.line(cell.line())[8]), (7, 7));
    }

    #[test]
    fn power_fails_before_the_write_that_exceeds_it() {
        let durable = Contents::new(0, 4096).expect("room");
        let mut image = Image::over(&durable).failing_after(1);
        assert_eq!(image.set_word(Word(1), 1), Ok(()));
        assert_eq!(image.set_word(Word(2), 1), Err(PowerLoss));
        assert_eq!((image.word(Word(1)), image.word(Word(2))), (1, 0));
    }
}
