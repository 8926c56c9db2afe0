//! The contents of memories: bytes by address. Only pages that were written take room.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

use memmap2::{MmapMut, MmapOptions};

use crate::units::{DRAM_BASE, LINE_BYTES, Line, LineData, PAGE_BYTES, Page, Word, bits};

/// The bytes of one memory. They begin as zeros, or as what other contents hold, and a page of the
/// host is taken only when a byte of it is written.
pub struct Contents {
    bytes: MmapMut,
    origin: Origin,
    /// The pages that were written since, one bit each, so that a copy takes those and no others.
    written: Vec<u64>,
    /// The number of parts for which the host was asked for a large page.
    large: usize,
}

/// What contents begin as, and where they lie.
#[derive(Clone, Debug)]
pub struct Origin {
    first: u64,
    capacity: u64,
    /// What is there; zeros, if nothing is given.
    shared: Option<Arc<Shared>>,
}

/// Bytes that several contents have in common. Nobody writes them any more.
#[derive(Debug)]
struct Shared {
    file: File,
    /// The pages that may hold anything but zeros, one bit each.
    touched: Vec<u64>,
}

/// The number of pages that one large page of the host replaces.
const LARGE_PAGES: usize = 512;

/// The fewest pages that are shared (ours: a copy of 1 MiB takes the host less than a millisecond).
const SHARED_MIN: u32 = 256;

impl Contents {
    /// Returns a memory of `capacity` bytes whose first byte has the address `first`.
    ///
    /// # Errors
    /// When the host has no address space of that size.
    pub fn new(first: u64, capacity: u64) -> std::io::Result<Contents> {
        Contents::begin(&Origin { first, capacity, shared: None })
    }

    /// Returns a memory that nobody has written to since it was as `origin` says.
    ///
    /// # Errors
    /// When the host has no address space of that size.
    pub fn begin(origin: &Origin) -> std::io::Result<Contents> {
        let length = usize::try_from(origin.capacity).map_err(std::io::Error::other)?;
        let mut options = MmapOptions::new();
        options.len(length.max(4096)).no_reserve_swap();
        let bytes = match &origin.shared {
            None => options.map_anon()?,
            // SAFETY: Nobody else knows of the file, which has no name, and its only writer
            // (`shared`) has written it before it made the origin.
            Some(shared) => unsafe { options.map_copy(&shared.file)? },
        };
        let pages = origin.capacity.div_ceil(PAGE_BYTES);
        let written = vec![0; pages.div_ceil(64) as usize];
        Ok(Contents { bytes, origin: origin.clone(), written, large: 0 })
    }

    /// What the memory began as.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Has copies share what is there now, so that they take only what is written to them. That is
    /// for contents that are copied often: those of a run without copies have large pages instead
    /// ([`Contents::use_large_pages`]). Where there is little to share, or the host has no room for
    /// a file in its memory, copies are made whole.
    pub fn share(&mut self) {
        let count: u32 = self.written.iter().map(|pages| pages.count_ones()).sum();
        if count >= SHARED_MIN
            && self.origin.shared.is_none()
            && let Ok(shared) = self.shared()
        {
            *self = shared;
        }
    }

    /// Returns a memory that holds the same, and whose copies share it.
    fn shared(&self) -> std::io::Result<Contents> {
        let mut file = unnamed_file()?;
        file.set_len(self.bytes.len() as u64)?;
        let pages: Vec<usize> = self.written_pages().collect();
        for pages in pages.chunk_by(|page, next| page + 1 == *next) {
            let (from, until) = (self.place(pages[0]).0, self.place(pages[pages.len() - 1]).1);
            file.seek(SeekFrom::Start(from as u64))?;
            file.write_all(&self.bytes[from..until])?;
        }
        let shared = Shared { file, touched: self.written.clone() };
        Contents::begin(&Origin { shared: Some(Arc::new(shared)), ..self.origin })
    }

    /// Returns a memory that holds the same. Parts that fill a large page of the host get one.
    ///
    /// # Errors
    /// When the host has no address space of that size.
    pub fn copy(&self) -> std::io::Result<Contents> {
        let mut copy = Contents::begin(&self.origin)?;
        for part in self.dense() {
            copy.ask_for_large_page(part);
        }
        for page in self.written_pages() {
            let (from, until) = self.place(page);
            copy.bytes[from..until].copy_from_slice(&self.bytes[from..until]);
        }
        copy.written.copy_from_slice(&self.written);
        Ok(copy)
    }

    /// Moves the contents to large pages of the host where they fill them, unless most parts have
    /// large pages already, because they were written in order. Random accesses are then twice as
    /// fast, and the contents take the same room.
    ///
    /// # Errors
    /// When the host has no address space of that size.
    pub fn use_large_pages(&mut self) -> std::io::Result<()> {
        if self.dense().count() > self.large + self.large / 8 {
            *self = self.copy()?;
        }
        Ok(())
    }

    /// Returns the parts, each as large as a large page of the host, whose pages were all written.
    fn dense(&self) -> impl Iterator<Item = usize> + '_ {
        let parts = self.written.chunks_exact(LARGE_PAGES / 64).enumerate();
        parts
            .filter(|(_, pages)| pages.iter().all(|&pages| pages == u64::MAX))
            .map(|(part, _)| part)
    }

    /// Returns the numbers, within this memory, of the pages that were written since it began.
    fn written_pages(&self) -> impl Iterator<Item = usize> + '_ {
        self.written.iter().enumerate().flat_map(|(index, &pages)| ones(index, pages))
    }

    /// Returns where a page's bytes begin and end.
    fn place(&self, page: usize) -> (usize, usize) {
        let from = page * PAGE_BYTES as usize;
        (from, (from + PAGE_BYTES as usize).min(self.bytes.len()))
    }

    /// Returns the pages that were written since the memory began, each with its bytes.
    pub fn written(&self) -> impl Iterator<Item = (Page, &[u8])> {
        self.written_pages().map(|page| {
            let (from, until) = self.place(page);
            (Page(page as u64 + self.origin.first / PAGE_BYTES), &self.bytes[from..until])
        })
    }

    fn ask_for_large_page(&mut self, part: usize) {
        let length = LARGE_PAGES * PAGE_BYTES as usize;
        if (part + 1) * length > self.bytes.len() || self.origin.shared.is_some() {
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
        if self.written[page / 64] >> (page % 64) & 1 == 0 {
            self.touch_first(page);
        }
    }

    /// Notes that a page is written for the first time. A writer that has filled the pages before
    /// this part is taken to fill the part, too, which gets a large page at once: that costs a
    /// tenth of its small pages.
    #[cold]
    fn touch_first(&mut self, page: usize) {
        self.written[page / 64] |= 1 << (page % 64);
        if page > 0 && page.is_multiple_of(LARGE_PAGES) && self.written[page / 64 - 1] == u64::MAX {
            self.ask_for_large_page(page / LARGE_PAGES);
        }
    }

    /// Returns the pages in a range of addresses of this memory that may hold anything but zeros.
    pub fn touched_pages(&self, addresses: Range<u64>) -> Vec<Page> {
        let first = self.origin.first;
        let page = |address: u64| ((address - first) / PAGE_BYTES) as usize;
        let within = page(addresses.start)..page(addresses.end + PAGE_BYTES - 1);
        let shared = self.origin.shared.as_ref().map(|shared| &shared.touched[..]);
        let touched = |index: usize| self.written[index] | shared.map_or(0, |pages| pages[index]);
        let words = within.start / 64..within.end.div_ceil(64);
        let pages = words.flat_map(|index| ones(index, touched(index)));
        pages
            .filter(|page| within.contains(page))
            .map(|page| Page(page as u64 + first / PAGE_BYTES))
            .collect()
    }

    /// Returns the size of the memory in bytes.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns a word.
    #[inline]
    pub fn word(&self, word: Word) -> u64 {
        let at = (word.address() - self.origin.first) as usize;
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
        let at = (word.address() - self.origin.first) as usize;
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
        let at = (line.address() - self.origin.first) as usize;
        self.bytes[at..at + LINE_BYTES as usize].try_into().expect("a line has 64 bytes")
    }

    /// Returns a line that the caller may change.
    #[inline]
    pub fn line_mut(&mut self, line: Line) -> &mut LineData {
        let at = (line.address() - self.origin.first) as usize;
        self.touch(at);
        (&mut self.bytes[at..at + LINE_BYTES as usize]).try_into().expect("a line has 64 bytes")
    }

    /// Tells the host that a line will be used soon. It changes nothing but the host's time.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        let at = (line.address() - self.origin.first) as usize;
        if let Some(byte) = self.bytes.get(at) {
            prefetch(byte);
        }
    }

    /// Returns `length` bytes from an address on.
    pub fn bytes(&self, address: u64, length: u64) -> &[u8] {
        let at = (address - self.origin.first) as usize;
        &self.bytes[at..at + length as usize]
    }
}

/// Returns the numbers of the bits that are set in a word of many, of which it is the one at
/// `index`.
fn ones(index: usize, word: u64) -> impl Iterator<Item = usize> {
    bits(word).map(move |bit| 64 * index + bit as usize)
}

/// Returns a new file in the host's memory that no one else can open.
fn unnamed_file() -> std::io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::memfd::{MFdFlags, memfd_create};
        Ok(File::from(memfd_create("indelible", MFdFlags::MFD_CLOEXEC)?))
    }
    #[cfg(not(target_os = "linux"))]
    Err(std::io::ErrorKind::Unsupported.into())
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
        write!(formatter, "Contents({} bytes from {:#x})", self.bytes.len(), self.origin.first)
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

    /// Pages far apart and side by side, of which some are written again by one copy or the other.
    #[test]
    fn what_is_shared_is_seen_by_all_copies_and_written_by_one() {
        let pages: Vec<u64> = (0..300).chain(1_000..1_001).chain(8_000..8_020).collect();
        let word = |page: u64| Word(page * PAGE_BYTES / 8);
        for is_shared in [true, false] {
            let mut contents = filled(pages.iter().copied());
            if is_shared {
                contents.share();
            }
            assert_eq!(contents.written().count(), if is_shared { 0 } else { pages.len() });
            let mut copy = contents.copy().expect("the host has room");
            contents.set_word(word(7), 1);
            copy.set_word(word(1_000), 2);
            copy.set_word(word(5_000), 3);
            let of_copy = copy.copy().expect("the host has room");
            copy.set_word(word(1_000), 4);
            let holds = |contents: &Contents, page: u64| contents.word(word(page));
            assert_eq!([7, 1_000, 5_000].map(|page| holds(&contents, page)), [1, 1_001, 0]);
            assert_eq!([7, 1_000, 5_000].map(|page| holds(&copy, page)), [8, 4, 3]);
            assert_eq!([7, 1_000, 5_000].map(|page| holds(&of_copy, page)), [8, 2, 3]);
            let others = pages.iter().filter(|page| ![7, 1_000].contains(*page));
            for &page in others {
                let values = [&contents, &copy, &of_copy].map(|contents| holds(contents, page));
                assert_eq!(values, [page + 1; 3]);
            }
            let touched = |contents: &Contents| contents.touched_pages(0..32 * PART);
            let of = |pages: &[u64]| pages.iter().map(|&page| Page(page)).collect::<Vec<_>>();
            assert_eq!(touched(&contents), of(&pages));
            let more = [&pages[..301], &[5_000], &pages[301..]].concat();
            assert_eq!(touched(&of_copy), of(&more));
            let some = of_copy.touched_pages(298 * PAGE_BYTES..5_001 * PAGE_BYTES);
            assert_eq!(some, of(&[298, 299, 1_000, 5_000]));
        }
    }

    #[test]
    fn little_is_not_shared() {
        let mut contents = filled(0..u64::from(SHARED_MIN) - 1);
        contents.share();
        assert_eq!(contents.written().count() as u32, SHARED_MIN - 1);
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
