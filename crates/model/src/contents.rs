//! The contents of memories: bytes by address. Only pages that were written take room.

use std::ops::Range;

use memmap2::{MmapMut, MmapOptions};

use crate::units::{DRAM_BASE, LINE_BYTES, Line, LineData, PAGE_BYTES, Page, Word};

/// The bytes of one memory. They begin as zeros, and a page of the host is taken only when a byte
/// of it is written.
pub struct Contents {
    bytes: MmapMut,
    first: u64,
    /// The pages that were written, one bit each, so that a copy takes those and no others.
    touched: Vec<u64>,
    /// The number of parts for which the host was asked for a large page.
    large: usize,
}

/// The number of pages that one large page of the host replaces.
const LARGE_PAGES: usize = 512;

impl Contents {
    /// Returns a memory of `capacity` bytes whose first byte has the address `first`.
    ///
    /// # Errors
    /// When the host has no address space of that size.
    pub fn new(first: u64, capacity: u64) -> std::io::Result<Contents> {
        let length = usize::try_from(capacity).map_err(std::io::Error::other)?;
        let bytes = MmapOptions::new().len(length.max(4096)).no_reserve_swap().map_anon()?;
        let pages = capacity.div_ceil(PAGE_BYTES);
        Ok(Contents { bytes, first, touched: vec![0; pages.div_ceil(64) as usize], large: 0 })
    }

    /// Moves the contents to large pages of the host where they fill them, unless most parts have
    /// large pages already, because they were written in order. Random accesses are then twice as
    /// fast, and the contents take the same room.
    ///
    /// # Errors
    /// When the host has no address space of that size.
    pub fn use_large_pages(&mut self) -> std::io::Result<()> {
        if self.dense().count() > self.large + self.large / 8 {
            let mut moved = Contents::new(self.first, self.capacity())?;
            moved.copy_from(self);
            *self = moved;
        }
        Ok(())
    }

    /// Returns the parts, each as large as a large page of the host, whose pages were all written.
    fn dense(&self) -> impl Iterator<Item = usize> + '_ {
        let parts = self.touched.chunks_exact(LARGE_PAGES / 64).enumerate();
        parts
            .filter(|(_, pages)| pages.iter().all(|&pages| pages == u64::MAX))
            .map(|(part, _)| part)
    }

    /// Copies every written page of `other`, a memory of the same size. Parts that fill a large
    /// page of the host get one.
    pub fn copy_from(&mut self, other: &Contents) {
        assert_eq!(self.bytes.len(), other.bytes.len(), "a copy has the size of its original");
        for part in other.dense() {
            self.ask_for_large_page(part);
        }
        for (index, &pages) in other.touched.iter().enumerate() {
            let mut left = pages;
            while left != 0 {
                let page = index as u64 * 64 + u64::from(left.trailing_zeros());
                left &= left - 1;
                let from = (page * PAGE_BYTES) as usize;
                let until = (from + PAGE_BYTES as usize).min(self.bytes.len());
                self.bytes[from..until].copy_from_slice(&other.bytes[from..until]);
            }
            self.touched[index] |= pages;
        }
    }

    fn ask_for_large_page(&mut self, part: usize) {
        let length = LARGE_PAGES * PAGE_BYTES as usize;
        if (part + 1) * length > self.bytes.len() {
            return;
        }
        self.large += 1;
        // A host without large pages refuses. The run is then only as slow as with small ones.
        #[cfg(target_os = "linux")]
        let _ = self.bytes.advise_range(memmap2::Advice::HugePage, part * length, length);
    }

    #[inline]
    fn touch(&mut self, at: usize) {
        let page = at / PAGE_BYTES as usize;
        if self.touched[page / 64] >> (page % 64) & 1 == 0 {
            self.touch_first(page);
        }
    }

    /// Notes that a page is written for the first time. A writer that has filled the pages before
    /// this part is taken to fill the part, too, which gets a large page at once: that costs a
    /// tenth of its small pages.
    #[cold]
    fn touch_first(&mut self, page: usize) {
        self.touched[page / 64] |= 1 << (page % 64);
        if page > 0 && page.is_multiple_of(LARGE_PAGES) && self.touched[page / 64 - 1] == u64::MAX {
            self.ask_for_large_page(page / LARGE_PAGES);
        }
    }

    /// Returns the written pages in a range of addresses of this memory.
    pub fn touched_pages(&self, addresses: Range<u64>) -> Vec<Page> {
        let page = |address: u64| (address - self.first) / PAGE_BYTES;
        let (from, until) = (page(addresses.start), page(addresses.end + PAGE_BYTES - 1));
        let words =
            (from / 64..until.div_ceil(64)).filter(|&word| self.touched[word as usize] != 0);
        let pages = words.flat_map(|word| (64 * word).max(from)..(64 * (word + 1)).min(until));
        let touched = |page: &u64| self.touched[(page / 64) as usize] >> (page % 64) & 1 == 1;
        pages.filter(touched).map(|page| Page(page + self.first / PAGE_BYTES)).collect()
    }

    /// Returns the size of the memory in bytes.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns a word.
    #[inline]
    pub fn word(&self, word: Word) -> u64 {
        let at = (word.address() - self.first) as usize;
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("a word has 8 bytes"))
    }

    /// Changes a word and returns what it was.
    #[inline]
    pub fn set_word(&mut self, word: Word, value: u64) -> u64 {
        self.merge_word(word, value, u64::MAX).0
    }

    /// Changes the bits of a word that `mask` selects to those of `value`, and returns what it was
    /// and what it is.
    #[inline]
    pub fn merge_word(&mut self, word: Word, value: u64, mask: u64) -> (u64, u64) {
        let at = (word.address() - self.first) as usize;
        self.touch(at);
        let place: &mut [u8; 8] =
            (&mut self.bytes[at..at + 8]).try_into().expect("a word has 8 bytes");
        let old = u64::from_le_bytes(*place);
        let new = (old & !mask) | (value & mask);
        *place = new.to_le_bytes();
        (old, new)
    }

    /// Returns a line.
    #[inline]
    pub fn line(&self, line: Line) -> &LineData {
        let at = (line.address() - self.first) as usize;
        self.bytes[at..at + LINE_BYTES as usize].try_into().expect("a line has 64 bytes")
    }

    /// Returns a line that the caller may change.
    #[inline]
    pub fn line_mut(&mut self, line: Line) -> &mut LineData {
        let at = (line.address() - self.first) as usize;
        self.touch(at);
        (&mut self.bytes[at..at + LINE_BYTES as usize]).try_into().expect("a line has 64 bytes")
    }

    /// Tells the host that a line will be used soon. It changes nothing but the host's time.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        let at = (line.address() - self.first) as usize;
        if let Some(byte) = self.bytes.get(at) {
            prefetch(byte);
        }
    }

    /// Returns `length` bytes from an address on.
    pub fn bytes(&self, address: u64, length: u64) -> &[u8] {
        let at = (address - self.first) as usize;
        &self.bytes[at..at + length as usize]
    }
}

/// Tells the host that this place will be used soon. It changes nothing but the host's time.
#[inline]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: Every x86-64 processor has SSE, and a prefetch of any address is harmless.
        unsafe { _mm_prefetch(std::ptr::from_ref(place).cast(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Contents({} bytes from {:#x})", self.bytes.len(), self.first)
    }
}

/// The memory as coherent cores see it: persistent and volatile, each byte with its newest value.
#[derive(Debug)]
pub struct View {
    /// Persistent memory.
    pub pm: Contents,
    /// Volatile memory, from [`DRAM_BASE`] on.
    pub dram: Contents,
}

impl View {
    /// Returns a view of zeros.
    ///
    /// # Errors
    /// When the host has no address space of that size.
    pub fn new(pm_capacity: u64, dram_capacity: u64) -> std::io::Result<View> {
        let pm = Contents::new(0, pm_capacity)?;
        Ok(View { pm, dram: Contents::new(DRAM_BASE, dram_capacity)? })
    }

    /// Returns a word.
    #[inline]
    pub fn word(&self, word: Word) -> u64 {
        if word.address() < DRAM_BASE { self.pm.word(word) } else { self.dram.word(word) }
    }

    /// Changes a word and returns what it was.
    #[inline]
    pub fn set_word(&mut self, word: Word, value: u64) -> u64 {
        if word.address() < DRAM_BASE {
            self.pm.set_word(word, value)
        } else {
            self.dram.set_word(word, value)
        }
    }

    /// Changes the bits of a word that `mask` selects to those of `value`, and returns what it was
    /// and what it is.
    #[inline]
    pub fn merge_word(&mut self, word: Word, value: u64, mask: u64) -> (u64, u64) {
        let memory = if word.address() < DRAM_BASE { &mut self.pm } else { &mut self.dram };
        memory.merge_word(word, value, mask)
    }

    /// Returns a line.
    #[inline]
    pub fn line(&self, line: Line) -> &LineData {
        if line.is_persistent() { self.pm.line(line) } else { self.dram.line(line) }
    }

    /// Tells the host that a line will be used soon. It changes nothing but the host's time.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        if line.is_persistent() { self.pm.prefetch(line) } else { self.dram.prefetch(line) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: u64 = LARGE_PAGES as u64 * PAGE_BYTES;

    fn filled(pages: impl Iterator<Item = u64>) -> Contents {
        let mut contents = Contents::new(0, 32 * PART).expect("the host has room");
        for page in pages {
            contents.set_word(Word(page * PAGE_BYTES / 8), page + 1);
        }
        contents
    }

    #[test]
    fn what_is_written_in_order_has_large_pages_and_stays_where_it_is() {
        let mut contents = filled(0..16 * LARGE_PAGES as u64);
        assert_eq!((contents.large, contents.dense().count()), (15, 16));
        let before = contents.bytes.as_ptr();
        contents.use_large_pages().expect("the host has room");
        assert_eq!(contents.bytes.as_ptr(), before);
    }

    #[test]
    fn what_is_written_in_another_order_is_moved_and_the_same() {
        let pages = 4 * LARGE_PAGES as u64;
        let mut contents = filled((0..pages).rev());
        assert_eq!((contents.large, contents.dense().count()), (0, 4));
        contents.use_large_pages().expect("the host has room");
        assert_eq!(contents.large, 4);
        assert!((0..pages).all(|page| contents.word(Word(page * PAGE_BYTES / 8)) == page + 1));
        assert_eq!(contents.touched_pages(0..32 * PART).len(), pages as usize);
    }
}
