//! A page table in persistent memory: it has a word for each page of programs' data, which holds
//! the page's frame exclusive-or the page's number. So every page lies in the frame of its own
//! number while its word is zero.

use model::design::Shape;
use model::image::{Image, PowerLoss, word_of};
use model::units::{LINE_BYTES, LINE_WORDS, PAGE_BYTES, PAGE_LINES, Page, WORD_BYTES, Word};

/// Where the table lies.
#[derive(Clone, Debug)]
pub struct PageTable {
    /// Pages of programs' data.
    pub pages: u64,
    /// Pages whose lines all belong to programs, so that their frames may be given away.
    whole_pages: u64,
    start: u64,
}

impl PageTable {
    /// The table of a machine, beside the machine's own memory.
    pub fn new(shape: &Shape) -> PageTable {
        PageTable {
            pages: shape.log_base.div_ceil(PAGE_BYTES),
            whole_pages: shape.log_base / PAGE_BYTES,
            start: shape.capacity.next_multiple_of(PAGE_BYTES),
        }
    }

    /// The first page behind the table.
    pub fn end(&self) -> Page {
        Page((self.start + self.pages * WORD_BYTES).div_ceil(PAGE_BYTES))
    }

    /// Whether a page's frame may become another page's.
    pub fn is_whole(&self, page: Page) -> bool {
        page.0 < self.whole_pages
    }

    /// A page's entry.
    pub fn entry(&self, page: Page) -> Word {
        Word::of(self.start + page.0 * WORD_BYTES)
    }

    /// The entry of a page that lies in a frame.
    pub fn value(page: Page, frame: Page) -> u64 {
        page.0 ^ frame.0
    }

    /// Sets a page's entry: the page lies in a frame.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    pub fn set(&self, page: Page, frame: Page, image: &mut Image<'_>) -> Result<(), PowerLoss> {
        image.merge_word(self.entry(page), PageTable::value(page, frame), u64::MAX)
    }

    /// Reads the table.
    ///
    /// # Errors
    /// A sentence, if two pages have the same frame.
    pub fn read(&self, image: &Image<'_>) -> Result<Mapped, String> {
        let end = self.start + self.pages * WORD_BYTES;
        let mut moved = Vec::new();
        let touched = image.touched_pages(self.start..end).into_iter();
        for line in touched.flat_map(|table| (0..PAGE_LINES).map(move |place| table.line(place))) {
            // Most lines hold zeros.
            let entries = image.line(line);
            if entries == &[0; LINE_BYTES as usize] {
                continue;
            }
            let from = (line.address() - self.start) / WORD_BYTES;
            for page in from..(from + LINE_WORDS).min(self.pages) {
                match word_of(entries, self.entry(Page(page))) {
                    0 => (),
                    entry => moved.push((Page(page), Page(page ^ entry))),
                }
            }
        }
        let mut by_frame: Vec<(Page, Page)> =
            moved.iter().map(|&(page, frame)| (frame, page)).collect();
        by_frame.sort_unstable();
        // The first page that shares its frame with a page before it.
        let shared = by_frame.windows(2).filter(|both| both[0].0 == both[1].0);
        if let Some(both) = shared.min_by_key(|both| both[1].1) {
            let (frame, page, other) = (both[0].0, both[1].1, both[0].1);
            return Err(format!("pages {page:?} and {other:?} have the frame {frame:?}"));
        }
        let mapped = Mapped { moved, by_frame, pages: self.pages };
        if let Some((page, frame)) = mapped.moved.iter().find(|(_, frame)| mapped.is_home(*frame)) {
            return Err(format!("page {page:?} has the frame {frame:?}, which is another's"));
        }
        Ok(mapped)
    }
}

/// Which frames pages have.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// The pages that do not lie in the frames of their own numbers, in order, each with its frame.
    pub moved: Vec<(Page, Page)>,
    /// The same frames, in order, each with its page.
    by_frame: Vec<(Page, Page)>,
    pages: u64,
}

impl Mapped {
    /// Whether the page of a frame's number lies in that frame.
    pub fn is_home(&self, frame: Page) -> bool {
        let has_left = || self.moved.binary_search_by_key(&frame, |&(page, _)| page).is_ok();
        frame.0 < self.pages && !has_left()
    }

    /// The page that lies in a frame, if one does.
    pub fn page_in(&self, frame: Page) -> Option<Page> {
        let found = self.by_frame.binary_search_by_key(&frame, |&(frame, _)| frame);
        let moved = found.ok().map(|place| self.by_frame[place].1);
        moved.or_else(|| self.is_home(frame).then_some(frame))
    }
}

/// The frame of every page, on a machine that is running.
#[derive(Clone, Debug)]
pub struct Frames {
    entries: Vec<u32>,
    /// One more than the last page that ever moved: of a large table a small part is used.
    used: usize,
}

impl Frames {
    /// Every page lies in the frame of its own number.
    pub fn new(table: &PageTable) -> Frames {
        Frames { entries: vec![0; table.pages as usize], used: 0 }
    }

    /// A page's frame.
    #[inline]
    pub fn of(&self, page: Page) -> Page {
        Page(page.0 ^ u64::from(self.entries[page.0 as usize]))
    }

    /// Notes that a page lies in a frame from now on.
    pub fn set(&mut self, page: Page, frame: Page) {
        self.entries[page.0 as usize] = PageTable::value(page, frame) as u32;
        self.used = self.used.max(page.0 as usize + 1);
    }

    /// The pages that do not lie in the frames of their own numbers, in order, each with its frame.
    pub fn moved(&self) -> impl Iterator<Item = (Page, Page)> {
        let entries = (0..).zip(&self.entries[..self.used]).filter(|&(_, entry)| *entry != 0);
        entries.map(|(page, &entry)| (Page(page), Page(page ^ u64::from(entry))))
    }

    /// Whether the page of a frame's number lies in that frame.
    pub fn is_home(&self, frame: Page) -> bool {
        self.entries.get(frame.0 as usize) == Some(&0)
    }
}

#[cfg(test)]
mod tests {
    use model::config::Config;
    use model::contents::Contents;

    use super::*;

    #[test]
    fn a_frame_is_one_page_s() {
        let mut config = Config::default();
        (config.pm.capacity, config.pm.log) = (8 << 20, 5000);
        let shape = Shape::new(&config, 3);
        let table = PageTable::new(&shape);
        assert!(!table.is_whole(Page(table.pages - 1)), "the logs begin in it");
        assert!(table.entry(Page(0)).address() >= shape.capacity);
        assert!(table.entry(Page(table.pages - 1)).address() < table.end().address());
        let durable = Contents::new(0, table.end().address()).expect("room");
        let mut image = Image::over(&durable);
        let far = table.end();
        table.set(Page(3), far, &mut image).expect("power");
        let mapped = table.read(&image).expect("right");
        assert_eq!((mapped.page_in(far), mapped.page_in(Page(3))), (Some(Page(3)), None));
        assert_eq!(mapped.page_in(Page(4)), Some(Page(4)));
        table.set(Page(5), Page(4), &mut image).expect("power");
        assert!(table.read(&image).is_err_and(|text| text.contains("another's")));
        table.set(Page(5), far, &mut image).expect("power");
        assert!(table.read(&image).is_err_and(|text| text.contains("have the frame")));
        // If several pages share frames, the sentence names the first one.
        let nearer = Page(far.0 - 1);
        for page in [2, 6] {
            table.set(Page(page), nearer, &mut image).expect("power");
        }
        let text = table.read(&image).expect_err("two pairs of pages share frames");
        assert_eq!(text, format!("pages {:?} and {:?} have the frame {far:?}", Page(5), Page(3)));
    }
}
