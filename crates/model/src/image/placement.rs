//! Where lines lie that a design has moved.

use crate::units::{Line, PAGE_LINES, Page, PageMap};

/// Which physical lines hold the lines of pages, where those are not the lines of the same numbers.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    pub(super) pages: PageMap<Frames>,
}

/// Where the lines of a page lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frames {
    pub(super) first: Page,
    second: Page,
    /// The lines, one bit each, that are in the second frame.
    pub(super) in_second: u64,
}

impl Placement {
    /// Says where a page's lines are: in the first frame, or in the second where `in_second` has
    /// their bit.
    pub fn place(&mut self, page: Page, first: Page, second: Page, in_second: u64) {
        if page != first || in_second != 0 {
            self.pages.insert(page, Frames { first, second, in_second });
        }
    }

    /// The physical line that holds a line.
    #[inline]
    pub fn locate(&self, line: Line) -> Line {
        if self.pages.is_empty() {
            return line;
        }
        let frames = self.pages.get(&Page::of(line));
        frames.map_or(line, |frames| frames.line(line.place_in_page()))
    }

    /// The lines that lie in physical lines of other numbers, each with its physical line.
    pub fn moved(&self) -> impl Iterator<Item = (Line, Line)> + '_ {
        let lines = |(&page, frames): (&Page, &Frames)| {
            let frames = *frames;
            (0..PAGE_LINES).map(move |place| (page.line(place), frames.line(place)))
        };
        self.pages.iter().flat_map(lines).filter(|(line, physical)| line != physical)
    }
}

impl Frames {
    /// The physical line that holds the line at a place of the page.
    #[inline]
    pub(super) fn line(&self, place: u64) -> Line {
        let second = self.in_second >> place & 1 == 1;
        (if second { self.second } else { self.first }).line(place)
    }
}
