//! Quantities and indices, each with a type of its own.

use std::fmt;
use std::ops::{Add, AddAssign, Index, IndexMut, Sub};

/// Bytes in a cache line.
pub const LINE_BYTES: u64 = 64;
/// Bytes in a word, the unit that memory writes atomically.
pub const WORD_BYTES: u64 = 8;
/// Words in a cache line.
pub const LINE_WORDS: u64 = LINE_BYTES / WORD_BYTES;
/// Where volatile memory (DRAM) begins; persistent memory begins at address 0.
pub const DRAM_BASE: u64 = 1 << 44;

/// The contents of a cache line.
pub type LineData = [u8; LINE_BYTES as usize];

/// A point in simulated time, in cycles of the core's frequency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycle(pub u64);

impl Cycle {
    /// A time that never comes.
    pub const NEVER: Cycle = Cycle(u64::MAX);

    /// Cycles from `earlier` to this time; 0 if this time is the earlier one.
    pub fn since(self, earlier: Cycle) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Cycle {
    type Output = Cycle;
    fn add(self, cycles: u64) -> Cycle {
        Cycle(self.0 + cycles)
    }
}

impl AddAssign<u64> for Cycle {
    fn add_assign(&mut self, cycles: u64) {
        self.0 += cycles;
    }
}

impl Sub for Cycle {
    type Output = u64;
    fn sub(self, earlier: Cycle) -> u64 {
        self.0 - earlier.0
    }
}

/// A cache line, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(pub u64);

impl Line {
    /// The line that holds a byte address.
    pub fn of(address: u64) -> Line {
        Line(address / LINE_BYTES)
    }

    /// The address of the line's first byte.
    #[inline]
    pub fn address(self) -> u64 {
        self.0 * LINE_BYTES
    }

    /// The line's first word.
    #[inline]
    pub fn first_word(self) -> Word {
        Word(self.0 * LINE_WORDS)
    }

    /// The line's words, in order.
    #[inline]
    pub fn words(self) -> impl Iterator<Item = Word> {
        (0..LINE_WORDS).map(move |place| Word(self.first_word().0 + place))
    }

    /// The line's place in its page, 0 to 63.
    #[inline]
    pub fn place_in_page(self) -> u64 {
        self.0 % PAGE_LINES
    }

    /// Whether the line lies in persistent memory.
    pub fn is_persistent(self) -> bool {
        self.address() < DRAM_BASE
    }
}

/// An aligned 8-byte word, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(pub u64);

impl Word {
    /// The word that holds a byte address.
    pub fn of(address: u64) -> Word {
        Word(address / WORD_BYTES)
    }

    /// The address of the word's first byte.
    #[inline]
    pub fn address(self) -> u64 {
        self.0 * WORD_BYTES
    }

    /// The line that holds the word.
    #[inline]
    pub fn line(self) -> Line {
        Line(self.0 / LINE_WORDS)
    }

    /// The word's place in its line, 0 to 7.
    pub fn place(self) -> usize {
        (self.0 % LINE_WORDS) as usize
    }

    /// The word's bytes in a byte mask of its line.
    pub fn mask(self) -> u64 {
        0xff << (8 * self.place())
    }
}

/// Returns the numbers of the bits that are set in a mask, the lowest first.
#[inline]
pub fn bits(mut mask: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < u64::BITS).then_some(u64::from(bit))
    })
}

/// Fills a byte for each bit that is set: a mask of a word's bytes becomes one of its bits, and a
/// mask of a line's words becomes one of its bytes.
#[inline]
pub fn spread(bits: u8) -> u64 {
    // Byte i keeps only bit i, which the addition then carries to the topmost bit of the byte.
    let own = (u64::from(bits) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    (((own + 0x7f7f_7f7f_7f7f_7f7f) >> 7) & 0x0101_0101_0101_0101) * 0xff
}

/// Bytes in a page, the unit of translation.
pub const PAGE_BYTES: u64 = 4096;
/// Lines in a page.
pub const PAGE_LINES: u64 = PAGE_BYTES / LINE_BYTES;

/// A page, by its number: virtual, as programs see it, or physical (a frame).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page(pub u64);

impl Page {
    /// The page that holds a line.
    #[inline]
    pub fn of(line: Line) -> Page {
        Page(line.0 / PAGE_LINES)
    }

    /// The address of the page's first byte.
    #[inline]
    pub fn address(self) -> u64 {
        self.0 * PAGE_BYTES
    }

    /// A line of the page, by its place in it.
    #[inline]
    pub fn line(self, place: u64) -> Line {
        Line(self.0 * PAGE_LINES + place)
    }
}

/// A core, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u8);

impl fmt::Display for CoreId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "core {}", self.0)
    }
}

/// A transaction of one core: the first is 1, and each later one is 1 more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxId(pub u64);

/// One `T` for each core.
#[derive(Clone, Debug)]
pub struct PerCore<T>(Vec<T>);

impl<T> PerCore<T> {
    /// Makes a `T` for each of `cores` cores.
    pub fn new(cores: u8, make: impl FnMut(CoreId) -> T) -> PerCore<T> {
        PerCore((0..cores).map(CoreId).map(make).collect())
    }

    /// Each core with its `T`, in order.
    pub fn iter(&self) -> impl Iterator<Item = (CoreId, &T)> {
        self.0.iter().enumerate().map(|(core, value)| (CoreId(core as u8), value))
    }

    /// Each core with its `T`, in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (CoreId, &mut T)> {
        self.0.iter_mut().enumerate().map(|(core, value)| (CoreId(core as u8), value))
    }

    /// Swaps what two cores have.
    pub fn swap(&mut self, core: CoreId, other: CoreId) {
        self.0.swap(usize::from(core.0), usize::from(other.0));
    }

    /// How many cores there are.
    pub fn cores(&self) -> u8 {
        self.0.len() as u8
    }
}

impl<T> Index<CoreId> for PerCore<T> {
    type Output = T;
    fn index(&self, core: CoreId) -> &T {
        &self.0[usize::from(core.0)]
    }
}

impl<T> IndexMut<CoreId> for PerCore<T> {
    fn index_mut(&mut self, core: CoreId) -> &mut T {
        &mut self.0[usize::from(core.0)]
    }
}

/// A number that others are divided by; nearly always a power of two.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    value: u64,
    shift: Option<u32>,
}

impl Divisor {
    /// Divides by `value`.
    pub fn new(value: u64) -> Divisor {
        Divisor { value, shift: value.is_power_of_two().then(|| value.trailing_zeros()) }
    }

    /// The number itself.
    pub fn value(self) -> u64 {
        self.value
    }

    /// Returns the quotient and the remainder of a number.
    #[inline]
    pub fn divide(self, number: u64) -> (u64, u64) {
        match self.shift {
            Some(shift) => (number >> shift, number & (self.value - 1)),
            None => (number / self.value, number % self.value),
        }
    }
}

/// Returns a number that depends on every bit of another (SplitMix64's finalizer).
#[inline]
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Returns a number that depends on every bit of several, and of `start`.
#[inline]
pub fn mix_all<'a>(start: u64, values: impl IntoIterator<Item = &'a u64>) -> u64 {
    values.into_iter().fold(start, |sum, value| mix(sum ^ value))
}

/// A set of lines, hashed the same way in every run.
pub type LineSet = rustc_hash::FxHashSet<Line>;

/// A set of words, hashed the same way in every run.
pub type WordSet = rustc_hash::FxHashSet<Word>;

/// A map from words, hashed the same way in every run.
pub type WordMap<T> = rustc_hash::FxHashMap<Word, T>;

/// A map from lines, hashed the same way in every run.
pub type LineMap<T> = rustc_hash::FxHashMap<Line, T>;

/// A map from pages, hashed the same way in every run.
pub type PageMap<T> = rustc_hash::FxHashMap<Page, T>;

/// A set of pages, hashed the same way in every run.
pub type PageSet = rustc_hash::FxHashSet<Page>;

/// A map from the transactions of a log, each by its core and the 16 bits of its number that
/// records hold, hashed the same way in every run.
pub type LoggedMap<T> = rustc_hash::FxHashMap<(CoreId, u16), T>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_fills_its_byte() {
        for bits in 0..=u8::MAX {
            let bytes = spread(bits).to_le_bytes();
            let full = |place: usize| if bits >> place & 1 == 1 { 0xff } else { 0 };
            assert!((0..8).all(|place| bytes[place] == full(place)), "{bits:#x}: {bytes:x?}");
        }
    }

    #[test]
    fn bits_come_in_ascending_order() {
        let of = |mask| bits(mask).collect::<Vec<_>>();
        assert_eq!(of(0), []);
        assert_eq!(of(1 << 63 | 0b1010), [1, 3, 63]);
        assert_eq!(of(u64::MAX), (0..64).collect::<Vec<_>>());
    }
}
