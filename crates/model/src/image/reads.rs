//! What was read of an image: a reader that reads the same again does the same again.

use std::ops::Range;

use super::{Image, Remembered, apply_masked};
use crate::units::{Line, LineMap, Page};

/// The physical lines that were read, and the pages that were asked for, each with how many writes
/// its reader had made by then.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    lines: Vec<(Line, u64)>,
    pages: Vec<(Range<u64>, Vec<Page>, u64)>,
}

impl Reads {
    #[inline]
    pub(super) fn line(&mut self, line: Line, writes: u64) {
        // Most lines are read word by word.
        if self.lines.last() != Some(&(line, writes)) {
            self.lines.push((line, writes));
        }
    }

    pub(super) fn pages(&mut self, addresses: Range<u64>, pages: &[Page], writes: u64) {
        self.pages.push((addresses, pages.to_vec(), writes));
    }

    /// How many lines were read, each counted once.
    pub fn count_lines(&self) -> u64 {
        let mut lines: Vec<Line> = self.lines.iter().map(|&(line, _)| line).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.len() as u64
    }

    /// Returns which of the reader's writes to the image it would see if they were there from the
    /// first: those that it had not made yet when it read what they change. If only others are
    /// there, the first ones of each line, a reader that begins again sees at each time what it
    /// saw, does again what it did, and leaves what it left.
    pub fn see(&self, image: &Image<'_>, writes: &[Remembered]) -> Vec<bool> {
        // The lines that are written, each with how many writes there were when it was first read.
        let mut first_read: LineMap<u64> =
            writes.iter().map(|write| (write.line, u64::MAX)).collect();
        for &(line, by) in &self.lines {
            if let Some(first) = first_read.get_mut(&line) {
                *first = by.min(*first);
            }
        }
        let is_read =
            |write: &Remembered| first_read[&write.line] <= write.number && write.changes(image);
        let is_asked_for = |write: &Remembered| {
            let (page, at) = (Page::of(write.line), write.line.address());
            self.pages.iter().any(|(addresses, pages, by)| {
                *by <= write.number && addresses.contains(&at) && !pages.contains(&page)
            })
        };
        writes.iter().map(|write| is_read(write) || is_asked_for(write)).collect()
    }
}

impl Remembered {
    /// Whether the write changes what an image holds.
    fn changes(&self, image: &Image<'_>) -> bool {
        let held = image.holds(self.line);
        let mut written = *held;
        apply_masked(&mut written, &self.data, self.mask);
        written != *held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::Contents;
    use crate::image::Placement;
    use crate::units::{Word, mix};

    const READ: Word = Word(0);
    const UNREAD: Word = Word(8);

    /// Returns which of its writes a reader that does this to an image would see again.
    fn seen(does: impl Fn(&mut Image<'_>)) -> Vec<bool> {
        let durable = Contents::new(0, 4 * 4096).expect("room");
        let mut image = Image::over(&durable);
        image.set_word(Word(1), 5).expect("power");
        let mut first = image.remembering().noting_reads();
        does(&mut first);
        let reads = first.take_reads();
        reads.see(&image, &first.take_remembered())
    }

    fn write(image: &mut Image<'_>, word: Word, value: u64) {
        image.set_word(word, value).expect("power");
    }

    #[test]
    fn what_is_read_before_it_is_written_is_seen_again() {
        let read_first = seen(|image| {
            image.word(READ);
            write(image, UNREAD, 7);
            write(image, READ, 3);
            write(image, Word(2), 9);
        });
        assert_eq!(read_first, [false, true, true], "any word of the line");
        let read_last = seen(|image| {
            write(image, READ, 3);
            image.word(READ);
            write(image, READ, 4);
        });
        assert_eq!(read_last, [false, true], "it is written again before it is read again");
    }

    #[test]
    fn a_line_is_counted_once_however_often_it_is_read() {
        let durable = Contents::new(0, 4 * 4096).expect("room");
        let mut image = Image::over(&durable).remembering().noting_reads();
        for word in [READ, Word(1), UNREAD, READ] {
            image.word(word);
            write(&mut image, Word(17), 3);
        }
        image.line(Line(2));
        assert_eq!(image.take_reads().count_lines(), 3);
    }

    #[test]
    fn what_is_written_with_what_it_held_is_not_seen() {
        let again = |value: u64| {
            seen(move |image| {
                image.line(READ.line());
                write(image, Word(1), value);
            })
        };
        assert_eq!((again(5), again(6)), (vec![false], vec![true]));
    }

    /// What a word holds decides whether a merge writes it, and not what it holds afterwards.
    #[test]
    fn who_merges_a_word_reads_nothing() {
        let merged = seen(|image| {
            image.merge_word(Word(1), 0xff05, 0xff).expect("power");
            image.merge_word(Word(1), 0xff06, 0xff).expect("power");
            image.merge_word(Word(1), 0xff06, 0xff00).expect("power");
        });
        assert_eq!(merged, [false, false], "the first merge writes nothing");
    }

    /// Does a few things to an image, which depend on a number and on what is read.
    fn act(image: &mut Image<'_>, number: u64) {
        let mut drawn = number;
        for step in 0..8 {
            drawn = mix(drawn ^ step);
            let (word, value) = (Word(drawn >> 8 & 31), drawn >> 32 & 3);
            match drawn % 6 {
                0 => image.set_word(word, value),
                1 => image.merge_word(word, value, [0xff, u64::MAX][(drawn >> 40 & 1) as usize]),
                2 => image.set_line(word.line(), &[value as u8; 64], mix(drawn)),
                3 => {
                    drawn ^= image.word(word) & 1;
                    Ok(())
                }
                4 => {
                    let mut placement = Placement::default();
                    placement.place(Page(0), Page(0), Page(1), drawn >> 32 & 15);
                    image.see_through(placement);
                    Ok(())
                }
                _ => {
                    image.fence();
                    Ok(())
                }
            }
            .expect("power");
        }
    }

    #[test]
    fn who_sees_none_of_the_writes_that_are_there_ends_with_the_same_bytes() {
        let (mut known, mut others) = (0, 0);
        for number in 0..4_000 {
            let mut durable = Contents::new(0, 4 * 4096).expect("room");
            (0..32).for_each(|place| _ = durable.set_word(Word(place), mix(number + place) & 3));
            let image = Image::over(&durable);
            let mut first = image.remembering().noting_reads();
            act(&mut first, number);
            let (reads, writes) = (first.take_reads(), first.take_remembered());
            let seen = reads.see(&image, &writes);
            for drawn in 0..8 {
                // The first few writes of each line are there.
                let mut left = image.clone();
                let mut gone: Vec<Line> = Vec::new();
                let mut is_known = true;
                for write in &writes {
                    let arrives = mix(number ^ mix(drawn << 32 | write.number)) & 3 > 0;
                    if gone.contains(&write.line) || !arrives {
                        gone.push(write.line);
                        continue;
                    }
                    left.write_again(write);
                    is_known &= !seen[write.number as usize];
                }
                act(&mut left, number);
                assert!(!is_known || left.equals(&first), "number {number}, draw {drawn}");
                known += u64::from(is_known && !writes.is_empty());
                others += u64::from(!left.equals(&first));
            }
        }
        assert!(known > 10_000 && others > 300, "{known} {others}");
    }

    #[test]
    fn a_page_that_was_not_there_when_pages_were_asked_for_is_seen() {
        let (there, new, beyond) = (Word(8), Word(512), Word(1024));
        let asked = |image: &mut Image<'_>| {
            assert_eq!(image.touched_pages(0..2 * 4096), [Page(0)]);
        };
        let seen_first = seen(|image| {
            asked(image);
            [new, there, beyond].into_iter().for_each(|word| write(image, word, 0));
        });
        assert_eq!(seen_first, [true, false, false], "even if it holds zeros");
        let seen_last = seen(|image| {
            write(image, there, 1);
            asked(image);
        });
        assert_eq!(seen_last, [false]);
    }
}
