//! What is left after the power has failed: the durable bytes, and what recovery makes of them.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use crate::contents::{Contents, Origin};
use crate::units::{LINE_BYTES, Line, LineData, PAGE_BYTES, PAGE_LINES, Page, Word, spread};

mod aside;
mod placement;
mod reads;

pub use placement::Placement;
pub use reads::Reads;

use aside::Aside;

/// The error that the power failed (again) while an image was being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLoss;

/// The durable bytes at a power failure, as the battery and then recovery see and change them.
///
/// It lies over the durable contents of a machine that goes on running: what is written here is
/// kept aside, so a power failure costs what it writes and not what the memory holds.
///
/// Beyond the memory's last address are the cells of a design's own non-volatile structures
/// ([`KeptBy::Cells`](crate::card::KeptBy::Cells)). They are 0 until `power_loss` says what they
/// hold.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    base: &'a Contents,
    changed: Aside,
    placement: Rc<Placement>,
    writes_left: u64,
    writes: u64,
    /// What recovery did without end, if it was ended for that.
    endless: Option<String>,
    /// The error that a design in a script raised, which ends what was done to the image.
    raised: Option<String>,
    /// Fences since power came back.
    fences: u64,
    /// The writes that took effect, if they are remembered.
    remembered: Option<Vec<Remembered>>,
    /// What was read, if that is noted; copies of the image note it in the same place.
    reads: Option<Rc<RefCell<Reads>>>,
}

/// More writes than any recovery makes that ends. Ours: the most that was measured of a
/// design is 0.1 million (`morlog`, `kiln` and `loc-wal` after 300 transactions of `tpcc` on each
/// of 8 cores, with logs and last level full; `ssp` and `shadow-paging` write 3,000 lines), and the
/// host spends 0.4 GB on a recovery without end until then.
pub const WRITES_MAX: u64 = 4_000_000;

/// A write that took effect: bytes of a physical line.
#[derive(Clone, Debug)]
pub struct Remembered {
    /// The line.
    pub line: Line,
    data: LineData,
    mask: u64,
    /// The number of fences before it: writes of one epoch become durable in any order, but those
    /// of one line in theirs.
    pub epoch: u64,
    /// The number of writes before it.
    pub number: u64,
}

impl Remembered {
    /// Whether the write has bytes of more than one word.
    pub fn has_words(&self) -> bool {
        let first = self.mask.trailing_zeros() / 8 * 8;
        self.mask.checked_shr(first).is_some_and(|mask| mask > 0xff)
    }
}

/// What recovery left, copied from the machine whose durable bytes the image lies over, so that
/// another machine can boot from it.
#[derive(Clone, Debug)]
pub struct Remains {
    /// Which power failure it was.
    pub cut: Cut,
    origin: Origin,
    /// The pages that were written since the machine's memory was as `origin` says.
    pages: Vec<(Page, Box<[u8]>)>,
    /// The lines that the battery and recovery have changed.
    changed: Vec<(Line, LineData)>,
    placement: Rc<Placement>,
}

/// One power failure of a campaign, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The crash point, from 1.
    pub point: u64,
    /// Which of the images of that point it is: 0 for the one that timing produced.
    pub order: u64,
    /// How many of recovery's writes took effect before the power failed again, if it did.
    pub nested: Option<u64>,
}

impl Remains {
    /// Returns a memory that holds the physical bytes.
    ///
    /// # Errors
    /// When the host has no address space for it.
    pub fn memory(&self) -> std::io::Result<Contents> {
        let mut memory = Contents::begin(&self.origin)?;
        for (page, bytes) in &self.pages {
            for (line, data) in (page.line(0).0..).zip(bytes.chunks_exact(LINE_BYTES as usize)) {
                memory.line_mut(Line(line)).copy_from_slice(data);
            }
        }
        for (line, data) in &self.changed {
            *memory.line_mut(*line) = *data;
        }
        Ok(memory)
    }

    /// Where lines lie.
    pub fn placement(&self) -> &Rc<Placement> {
        &self.placement
    }
}

impl<'a> Image<'a> {
    /// The image of the given durable bytes, with power that does not fail again.
    pub fn over(base: &'a Contents) -> Image<'a> {
        Image {
            base,
            changed: Aside::default(),
            placement: Rc::default(),
            writes_left: u64::MAX,
            writes: 0,
            endless: None,
            raised: None,
            fences: 0,
            remembered: None,
            reads: None,
        }
    }

    /// Returns this image with power that fails again once `writes` more writes have taken effect,
    /// or [`WRITES_MAX`].
    #[must_use]
    pub fn failing_after(&self, writes: u64) -> Image<'a> {
        Image { writes_left: writes.min(WRITES_MAX), ..self.clone().powered() }
    }

    /// Returns this image, remembering what is written to it.
    #[must_use]
    pub fn remembering(&self) -> Image<'a> {
        Image { remembered: Some(Vec::new()), ..self.clone().powered() }
    }

    /// Returns the writes that the image remembers, in their order, and forgets them.
    pub fn take_remembered(&mut self) -> Vec<Remembered> {
        self.remembered.take().unwrap_or_default()
    }

    /// Returns this image, noting what is read of it.
    #[must_use]
    pub fn noting_reads(self) -> Image<'a> {
        Image { reads: Some(Rc::default()), ..self }
    }

    /// Returns what was read of the image, which notes no more.
    pub fn take_reads(&mut self) -> Reads {
        self.reads.take().map(|reads| reads.take()).unwrap_or_default()
    }

    /// Makes a write here that another image over the same bytes remembers.
    pub fn write_again(&mut self, write: &Remembered) {
        apply_masked(self.physical_mut(write.line), &write.data, write.mask);
    }

    /// Makes the part of such a write that `part` selects.
    pub fn write_in_part(&mut self, write: &Remembered, part: u64) {
        apply_masked(self.physical_mut(write.line), &write.data, write.mask & part);
    }

    /// Whether another image over the same bytes holds the same.
    pub fn equals(&self, other: &Image<'_>) -> bool {
        self.changed.iter().all(|(line, data)| other.holds(line) == data)
            && other.changed.iter().all(|(line, data)| self.holds(line) == data)
    }

    /// Returns this image with power that does not fail again, for a recovery that ends.
    #[must_use]
    pub fn powered(self) -> Image<'a> {
        let (endless, raised) = (None, None);
        Image { writes_left: WRITES_MAX, writes: 0, endless, raised, fences: 0, ..self }
    }

    /// What a hook did to the image without end, if it was ended for that as if the power had
    /// failed.
    pub fn endless(&self) -> Option<&str> {
        self.endless.as_deref()
    }

    /// Notes that a reader or writer of the image does `what` without end and is to be ended.
    pub fn call_endless(&mut self, what: String) {
        self.endless = Some(what);
    }

    /// The error that a design in a script raised, if that ended what was done to the image.
    pub fn raised(&self) -> Option<&str> {
        self.raised.as_deref()
    }

    /// Notes the error that a design in a script raised, which ends it as if the power had failed.
    pub fn call_raised(&mut self, text: String) {
        self.raised = Some(text);
    }

    /// How many bytes the memory holds.
    pub fn capacity(&self) -> u64 {
        self.base.capacity()
    }

    /// From now on finds words and lines where `placement` says, and not in the physical lines of
    /// their numbers.
    pub fn see_through(&mut self, placement: impl Into<Rc<Placement>>) {
        self.placement = placement.into();
    }

    /// Copies this image from the machine. The cells of a design's own structures are not copied:
    /// recovery has read them, and they hold nothing when a machine boots.
    pub fn remains(&self, cut: Cut) -> Remains {
        let capacity = self.capacity();
        let pages = self.base.written().map(|(page, bytes)| (page, bytes.into()));
        let changed = self.changed.iter().filter(|(line, _)| line.address() < capacity);
        Remains {
            cut,
            origin: self.base.origin().clone(),
            pages: pages.collect(),
            changed: changed.map(|(line, data)| (line, *data)).collect(),
            placement: Rc::clone(&self.placement),
        }
    }

    /// Where lines are seen ([`Image::see_through`]).
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The physical pages in a range of addresses that may hold anything but zeros.
    pub fn touched_pages(&self, addresses: Range<u64>) -> Vec<Page> {
        let mut pages = self.base.touched_pages(addresses.clone());
        let within = |line: &Line| addresses.contains(&line.address());
        pages.extend(self.changed.lines().filter(within).map(Page::of));
        pages.sort_unstable();
        pages.dedup();
        if let Some(reads) = &self.reads {
            reads.borrow_mut().pages(addresses, &pages, self.writes);
        }
        pages
    }

    /// How many writes took effect since power came back. This is not stored in the image, so
    /// recovery must not depend on it.
    pub fn writes(&self) -> u64 {
        debug_assert!(self.reads.is_none(), "recovery depends on what it reads alone");
        self.writes
    }

    /// A word.
    #[inline]
    pub fn word(&self, word: Word) -> u64 {
        word_of(self.line(word.line()), word)
    }

    /// A line.
    #[inline]
    pub fn line(&self, line: Line) -> &LineData {
        self.physical(self.placement.locate(line))
    }

    /// Returns `BYTES` bytes from an address on.
    pub fn bytes<const BYTES: usize>(&self, address: u64) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let (mut rest, mut at) = (&mut bytes[..], address);
        while !rest.is_empty() {
            let from = (at % LINE_BYTES) as usize;
            let (part, others) = rest.split_at_mut(rest.len().min(LINE_BYTES as usize - from));
            part.copy_from_slice(&self.line(Line::of(at))[from..][..part.len()]);
            at += part.len() as u64;
            rest = others;
        }
        bytes
    }

    /// A physical line, whatever the placement.
    #[inline]
    pub fn physical(&self, line: Line) -> &LineData {
        if let Some(reads) = &self.reads {
            reads.borrow_mut().line(line, self.writes);
        }
        self.holds(line)
    }

    /// What a physical line holds, without noting that it is read.
    #[inline]
    fn holds(&self, line: Line) -> &LineData {
        self.changed.get(line).unwrap_or_else(|| before(self.base, line))
    }

    /// Changes a word. A word is written whole or not at all.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails before the write takes effect.
    pub fn set_word(&mut self, word: Word, value: u64) -> Result<(), PowerLoss> {
        let mut data = [0; LINE_BYTES as usize];
        put_word(&mut data, word, value);
        self.set_line(word.line(), &data, word.mask())
    }

    /// Changes the bits of a word that `mask` selects. If they are so already, nothing is written.
    /// A recovery that finds this out itself has read the word, and depends on what it holds.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails before the write takes effect.
    pub fn merge_word(&mut self, word: Word, value: u64, mask: u64) -> Result<(), PowerLoss> {
        let was = word_of(self.holds(self.placement.locate(word.line())), word);
        let is = was & !mask | value & mask;
        if is == was { Ok(()) } else { self.set_word(word, is) }
    }

    /// Changes the bytes of a line that `mask` selects, one bit a byte. The line is written whole
    /// or not at all, as when a controller's queue accepts it.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails before the write takes effect.
    pub fn set_line(&mut self, line: Line, data: &LineData, mask: u64) -> Result<(), PowerLoss> {
        let number = self.writes;
        self.spend()?;
        let line = self.placement.locate(line);
        apply_masked(self.physical_mut(line), data, mask);
        if let Some(remembered) = &mut self.remembered {
            let epoch = self.fences;
            remembered.push(Remembered { line, data: *data, mask, epoch, number });
        }
        Ok(())
    }

    /// Orders writes: all that were made before are durable before any that is made after. Without
    /// a fence writes to several lines become durable in any order, as those of a program do,
    /// unless stores are durable when they are visible.
    pub fn fence(&mut self) {
        self.fences += 1;
    }

    /// The lines of moved pages, whether all of a page is elsewhere or a part, whose bytes are not
    /// those of `expected`, which has all lines in their places.
    pub fn moved_unlike(&self, expected: &Contents) -> Vec<Line> {
        let mut unlike = Vec::new();
        if self.placement.pages.is_empty() {
            return unlike;
        }
        let mut changed: Vec<Line> = self.changed.lines().collect();
        changed.sort_unstable();
        for (&page, frames) in &self.placement.pages {
            let mut compare = |place: u64| {
                let line = page.line(place);
                if self.physical(frames.line(place)) != expected.line(line) {
                    unlike.push(line);
                }
            };
            // A page is compared as a whole, and then the lines of it that were written over.
            let frame = frames.first;
            if frames.in_second == 0 && same_page(self.base, frame, expected, page) {
                let first = changed.partition_point(|line| *line < frame.line(0));
                let own = changed[first..].iter().take_while(|line| Page::of(**line) == frame);
                own.for_each(|line| compare(line.place_in_page()));
            } else {
                (0..PAGE_LINES).for_each(compare);
            }
        }
        unlike
    }

    /// The physical lines that differ, or may differ, from the durable bytes.
    pub fn changed_lines(&self) -> impl Iterator<Item = Line> + '_ {
        debug_assert!(self.reads.is_none(), "recovery depends on what it reads alone");
        self.changed.lines()
    }

    fn physical_mut(&mut self, line: Line) -> &mut LineData {
        let base = self.base;
        self.changed.get_mut(line, || before(base, line))
    }

    fn spend(&mut self) -> Result<(), PowerLoss> {
        if self.writes_left == 0 {
            if self.writes >= WRITES_MAX {
                self.call_endless(format!("{} million writes", WRITES_MAX / 1_000_000));
            }
            return Err(PowerLoss);
        }
        self.writes_left -= 1;
        self.writes += 1;
        Ok(())
    }
}

/// Whether a page lies whole in one memory and holds the same as a page of another.
fn same_page(one: &Contents, page: Page, other: &Contents, of_other: Page) -> bool {
    let fits = |of: &Contents, page: Page| page.address() + PAGE_BYTES <= of.capacity();
    fits(one, page)
        && fits(other, of_other)
        && one.bytes(page.address(), PAGE_BYTES) == other.bytes(of_other.address(), PAGE_BYTES)
}

/// A line as it was before anything was written over it.
#[inline]
fn before(base: &Contents, line: Line) -> &LineData {
    match line.address() < base.capacity() {
        true => base.line(line),
        false => &[0; LINE_BYTES as usize],
    }
}

/// A word of a line's data.
#[inline]
pub fn word_of(line: &LineData, word: Word) -> u64 {
    let at = word.place() * 8;
    u64::from_le_bytes(line[at..at + 8].try_into().expect("a word has 8 bytes"))
}

/// Puts a word into a line's data.
#[inline]
pub fn put_word(line: &mut LineData, word: Word, value: u64) {
    let at = word.place() * 8;
    line[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Copies the bytes of `data` that `mask` selects, one bit a byte, into a line.
#[inline]
pub fn apply_masked(line: &mut LineData, data: &LineData, mask: u64) {
    if mask == u64::MAX {
        *line = *data;
        return;
    }
    let (words, _) = line.as_chunks_mut::<8>();
    let (from, _) = data.as_chunks::<8>();
    let mut left = mask;
    while left != 0 {
        let index = (left.trailing_zeros() / 8) as usize;
        let bytes = (left >> (8 * index)) as u8;
        if bytes == u8::MAX {
            words[index] = from[index];
        } else {
            let bits = spread(bytes);
            let merged =
                u64::from_le_bytes(words[index]) & !bits | u64::from_le_bytes(from[index]) & bits;
            words[index] = merged.to_le_bytes();
        }
        left &= !(0xff << (8 * index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_may_lie_in_several_lines() {
        let mut durable = Contents::new(0, 4096).expect("room");
        durable.set_word(Word(7), 0x0706_0504_0302_0100);
        let mut image = Image::over(&durable);
        image.set_word(Word(8), 0x0f0e_0d0c_0b0a_0908).expect("power");
        image.set_word(Word(16), 0x10).expect("power");
        assert_eq!(image.bytes(58), [2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(image.bytes(72), std::array::from_fn::<u8, 57, _>(|at| 0x10 * (at / 56) as u8));
        assert_eq!(image.bytes(72), [0; 0]);
    }

    #[test]
    fn what_recovery_writes_stays_aside() {
        let mut durable = Contents::new(0, 4096).expect("room");
        durable.set_word(Word(3), 7);
        let mut image = Image::over(&durable);
        image.set_word(Word(3), 8).expect("power");
        assert_eq!((image.word(Word(3)), durable.word(Word(3))), (8, 7));
        assert_eq!(image.changed_lines().collect::<Vec<_>>(), [Line(0)]);
    }

    /// The comparison is by page or by line, and includes what was written over a page.
    #[test]
    fn what_is_elsewhere_is_compared_with_what_it_should_be() {
        let memory = |words: &[(Page, u64, u64)]| {
            let mut memory = Contents::new(0, 4 * 4096).expect("room");
            for &(page, place, value) in words {
                memory.set_word(page.line(place).first_word(), value);
            }
            memory
        };
        let expected = memory(&[(Page(0), 3, 7), (Page(0), 4, 8)]);
        let unlike = |durable: &Contents, in_second: u64, over: Option<(u64, u64)>| {
            let mut image = Image::over(durable);
            if let Some((place, value)) = over {
                image.set_word(Page(1).line(place).first_word(), value).expect("power");
            }
            let mut placement = Placement::default();
            placement.place(Page(0), Page(1), Page(2), in_second);
            image.see_through(placement);
            image.moved_unlike(&expected)
        };
        let right = memory(&[(Page(1), 3, 7), (Page(1), 4, 8)]);
        assert_eq!(unlike(&right, 0, None), []);
        assert_eq!(unlike(&right, 0, Some((3, 7))), []);
        assert_eq!(unlike(&right, 0, Some((3, 9))), [Page(0).line(3)]);
        assert_eq!(unlike(&right, 0, Some((63, 9))), [Page(0).line(63)]);
        let wrong = memory(&[(Page(1), 3, 7), (Page(1), 4, 9), (Page(2), 4, 8)]);
        assert_eq!(unlike(&wrong, 0, None), [Page(0).line(4)]);
        assert_eq!(unlike(&wrong, 0, Some((4, 8))), []);
        assert_eq!(unlike(&wrong, 1 << 4, None), []);
        assert_eq!(unlike(&right, 1 << 4, None), [Page(0).line(4)]);
    }

    #[test]
    fn writes_that_are_remembered_can_be_made_again() {
        let durable = Contents::new(0, 2 * 4096).expect("room");
        let mut placement = Placement::default();
        placement.place(Page(0), Page(1), Page(1), 0);
        let mut image = Image::over(&durable).remembering();
        image.see_through(placement);
        image.set_word(Word(3), 8).expect("power");
        image.set_line(Line(1), &[1; 64], 1).expect("power");
        let mut again = Image::over(&durable);
        let writes = image.take_remembered();
        for (write, done) in writes.iter().zip(1..) {
            assert!(!again.equals(&image) && !image.equals(&again));
            again.write_again(write);
            assert_eq!(again.equals(&image), done == 2);
        }
        assert_eq!(again.word(Word(512 + 3)), 8, "where it was placed");
        again.set_word(Word(9), 0).expect("power");
        assert!(again.equals(&image), "it holds zero in both");
    }

    #[test]
    fn of_a_word_that_is_merged_the_other_bits_stay() {
        let mut durable = Contents::new(0, 4096).expect("room");
        durable.set_word(Word(3), 0x1234);
        let mut image = Image::over(&durable);
        image.merge_word(Word(3), 0xab56, 0xff).expect("power");
        assert_eq!((image.word(Word(3)), image.writes()), (0x1256, 1));
        image.merge_word(Word(3), 0xab56, 0xff).expect("power");
        assert_eq!(image.writes(), 1, "it is so already");
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
    fn lines_are_seen_where_they_are_placed() {
        let mut durable = Contents::new(0, 4 * 4096).expect("room");
        durable.set_word(Word(512 + 8), 7);
        let mut image = Image::over(&durable);
        let mut placement = Placement::default();
        placement.place(Page(0), Page(0), Page(1), 0b10);
        placement.place(Page(2), Page(2), Page(3), 0);
        assert_eq!(placement.moved().collect::<Vec<_>>(), [(Line(1), Page(1).line(1))]);
        image.see_through(placement);
        assert_eq!((image.word(Word(8)), image.word(Word(0))), (7, 0));
        image.set_word(Word(9), 8).expect("power");
        assert_eq!(image.changed_lines().collect::<Vec<_>>(), [Page(1).line(1)]);
        assert_eq!(image.touched_pages(0..4 * 4096), [Page(1)]);
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
