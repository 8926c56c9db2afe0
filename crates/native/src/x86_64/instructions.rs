//! The instructions that are measured, one type each. The benchmark depends on which instructions
//! are executed and in which order, so the compiler must not choose them: ordinary stores are
//! volatile stores, and all others are inline assembly.
//!
//! Every function here is inlined into a loop that is compiled for exactly one combination.

use std::arch::asm;

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// A line whose entries are gathered before it is written at once.
#[repr(C, align(64))]
pub struct Staged(pub [u64; LINE / 8]);

/// A way of writing back a line.
pub trait WriteBack {
    /// Whether this is a flush, and not the absence of one.
    const IS_ONE: bool = true;
    /// Writes back the line at `line`.
    ///
    /// # Safety
    /// The address is mapped, and the processor has the instruction.
    unsafe fn line(line: *mut u8);
}

/// No flush.
pub struct NoFlush;
impl WriteBack for NoFlush {
    const IS_ONE: bool = false;
    #[inline(always)]
    unsafe fn line(_line: *mut u8) {}
}

macro_rules! write_back {
    ($(#[doc = $doc:literal])+ $Flush:ident, $text:literal) => {
        $(#[doc = $doc])+
        pub struct $Flush;
        impl WriteBack for $Flush {
            #[inline(always)]
            unsafe fn line(line: *mut u8) {
                // SAFETY: the caller's promise. Without `nomem`, no store may move across it.
                unsafe { asm!($text, in(reg) line, options(nostack, preserves_flags)) }
            }
        }
    };
}

write_back! { /// `clwb`.
Clwb, "clwb byte ptr [{}]" }
write_back! { /// `clflushopt`.
ClflushOpt, "clflushopt byte ptr [{}]" }
write_back! { /// `clflush`.
Clflush, "clflush byte ptr [{}]" }

/// A way of appending to the log.
pub trait Append {
    /// Whether entries are gathered to whole lines first.
    const LINES: bool = false;
    /// The flush after the entries of a group.
    type Flush: WriteBack;

    /// Writes an entry, if entries are written one by one.
    ///
    /// # Safety
    /// The address is mapped and aligned to 8 bytes, and the processor has the instruction.
    #[inline(always)]
    unsafe fn entry(_at: *mut u8, _key: u32, _value: u32) {}

    /// Writes a line, if entries are gathered.
    ///
    /// # Safety
    /// The address is mapped and aligned to a line, and the processor has the instruction.
    #[inline(always)]
    unsafe fn line(_at: *mut u8, _from: &Staged) {}
}

/// Two ordinary stores of 4 bytes each, maybe followed by a flush.
pub struct Cached<W>(std::marker::PhantomData<W>);
impl<W: WriteBack> Append for Cached<W> {
    type Flush = W;
    #[inline(always)]
    unsafe fn entry(at: *mut u8, key: u32, value: u32) {
        let at = at.cast::<u32>();
        // SAFETY: the caller's promise. Volatile, so that they stay two stores.
        unsafe {
            at.write_volatile(key);
            at.add(1).write_volatile(value);
        }
    }
}

/// Two `movnti` of 4 bytes each.
pub struct Movnti4;
impl Append for Movnti4 {
    type Flush = NoFlush;
    #[inline(always)]
    unsafe fn entry(at: *mut u8, key: u32, value: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!(
                "movnti dword ptr [{at}], {key:e}",
                "movnti dword ptr [{at} + 4], {value:e}",
                at = in(reg) at, key = in(reg) key, value = in(reg) value,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// One `movnti` of 8 bytes.
pub struct Movnti8;
impl Append for Movnti8 {
    type Flush = NoFlush;
    #[inline(always)]
    unsafe fn entry(at: *mut u8, key: u32, value: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!(
                "movnti qword ptr [{at}], {entry}",
                at = in(reg) at, entry = in(reg) word(key, value),
                options(nostack, preserves_flags),
            );
        }
    }
}

/// One `movdiri` of 8 bytes.
pub struct Movdiri;
impl Append for Movdiri {
    type Flush = NoFlush;
    #[inline(always)]
    unsafe fn entry(at: *mut u8, key: u32, value: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!(
                "movdiri qword ptr [{at}], {entry}",
                at = in(reg) at, entry = in(reg) word(key, value),
                options(nostack, preserves_flags),
            );
        }
    }
}

/// A line by two non-temporal stores of 32 bytes.
pub struct Nt32;
impl Append for Nt32 {
    const LINES: bool = true;
    type Flush = NoFlush;
    #[inline(always)]
    unsafe fn line(at: *mut u8, from: &Staged) {
        // SAFETY: the caller's promise. `vzeroupper` clears the upper halves, which would slow the
        // compiler's own use of the registers.
        unsafe {
            asm!(
                "vmovdqa ymm0, ymmword ptr [{from}]",
                "vmovdqa ymm1, ymmword ptr [{from} + 32]",
                "vmovntdq ymmword ptr [{at}], ymm0",
                "vmovntdq ymmword ptr [{at} + 32], ymm1",
                "vzeroupper",
                at = in(reg) at, from = in(reg) from,
                out("xmm0") _, out("xmm1") _,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// A line by one non-temporal store of 64 bytes.
pub struct Nt64;
impl Append for Nt64 {
    const LINES: bool = true;
    type Flush = NoFlush;
    #[inline(always)]
    unsafe fn line(at: *mut u8, from: &Staged) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!(
                "vmovdqa64 zmm16, zmmword ptr [{from}]",
                "vmovntdq zmmword ptr [{at}], zmm16",
                at = in(reg) at, from = in(reg) from,
                out("zmm16") _,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// A line by one direct store of 64 bytes.
pub struct Movdir64b;
impl Append for Movdir64b {
    const LINES: bool = true;
    type Flush = NoFlush;
    #[inline(always)]
    unsafe fn line(at: *mut u8, from: &Staged) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!(
                "movdir64b {at}, zmmword ptr [{from}]",
                at = in(reg) at, from = in(reg) from,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Returns key and value of an entry as one word, with the key first in memory.
#[inline(always)]
pub fn word(key: u32, value: u32) -> u64 {
    u64::from(key) | u64::from(value) << 32
}

/// The barrier between the stores to the log and those to the array.
pub trait Barrier {
    /// Executes it. `own` is a word on a line that no other thread uses.
    fn execute(own: &mut u64);
}

/// `sfence`.
pub struct Sfence;
impl Barrier for Sfence {
    #[inline(always)]
    fn execute(_own: &mut u64) {
        // SAFETY: every x86-64 processor has it, and it changes no memory.
        unsafe { asm!("sfence", options(nostack, preserves_flags)) }
    }
}

/// `mfence`.
pub struct Mfence;
impl Barrier for Mfence {
    #[inline(always)]
    fn execute(_own: &mut u64) {
        // SAFETY: every x86-64 processor has it, and it changes no memory.
        unsafe { asm!("mfence", options(nostack, preserves_flags)) }
    }
}

/// A locked instruction.
pub struct Locked;
impl Barrier for Locked {
    #[inline(always)]
    fn execute(own: &mut u64) {
        // SAFETY: the word is ours.
        unsafe { asm!("lock or qword ptr [{}], 0", in(reg) own, options(nostack)) }
    }
}

/// No instruction; but the compiler must not move stores across it.
pub struct NoBarrier;
impl Barrier for NoBarrier {
    #[inline(always)]
    fn execute(_own: &mut u64) {
        // SAFETY: the assembly is empty.
        unsafe { asm!("", options(nostack, preserves_flags)) }
    }
}

/// A source of values.
pub trait Source {
    /// Returns the next value.
    fn next(state: &mut SourceState) -> u32;
}

/// The number of precomputed values: 4 KiB, which stay in the first level.
const TABLE: usize = 1024;

/// The precomputed values.
static PRECOMPUTED: [u32; TABLE] = {
    let mut table = [0; TABLE];
    let mut value = 1;
    let mut index = 0;
    while index < TABLE {
        value = xorshift(value);
        table[index] = value;
        index += 1;
    }
    table
};

/// The state of all sources. A loop works on a copy of its own, which can stay in registers.
#[derive(Clone, Copy)]
pub struct SourceState {
    at: usize,
    xorshift: u32,
}

impl SourceState {
    /// Returns the state for a seed, on which all sources depend except `rand`, which has a state
    /// of its own.
    pub fn new(seed: u64) -> SourceState {
        let folded = (seed ^ seed >> 32) as u32;
        SourceState { at: 0, xorshift: folded.wrapping_mul(0x9e37_79b9) | 1 }
    }
}

/// Does one step of xorshift (Marsaglia 2003, shifts 13, 17 and 5).
const fn xorshift(mut value: u32) -> u32 {
    value ^= value << 13;
    value ^= value >> 17;
    value ^ value << 5
}

/// Values from the table.
pub struct Precomputed;
impl Source for Precomputed {
    #[inline(always)]
    fn next(state: &mut SourceState) -> u32 {
        state.at = (state.at + 1) % TABLE;
        PRECOMPUTED[state.at]
    }
}

/// Values of xorshift, six instructions each.
pub struct Xorshift;
impl Source for Xorshift {
    #[inline(always)]
    fn next(state: &mut SourceState) -> u32 {
        state.xorshift = xorshift(state.xorshift);
        state.xorshift
    }
}

/// Values of the C library's `rand`.
pub struct Rand;
impl Source for Rand {
    #[inline(always)]
    fn next(_state: &mut SourceState) -> u32 {
        // SAFETY: `rand` may be called from any thread, and nothing depends on its values.
        unsafe { libc::rand() as u32 }
    }
}
