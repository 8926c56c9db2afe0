//! Choices that several workloads have.

use model::units::{LINE_BYTES, WORD_BYTES};

model::choices! {
    /// Who uses a structure.
    pub enum Sharing {
        /// One core, which takes no lock.
        Private = "private",
        /// All cores, which take locks.
        Shared = "shared",
    }

    /// Where the metadata of allocators are.
    pub enum AllocMeta {
        /// In volatile memory: they are rebuilt from what the roots reach.
        Volatile = "volatile",
        /// In persistent memory, where transactions change them (`marks.rs`).
        Logged = "logged",
    }

    /// What one lock covers.
    pub enum LockGrain { Line = "line", Word = "word" }

    /// Which memory data lie in.
    pub enum Memory { Pm = "pm", Dram = "dram" }
}

impl LockGrain {
    /// The bytes that one lock covers.
    pub fn bytes(self) -> u64 {
        match self {
            LockGrain::Line => LINE_BYTES,
            LockGrain::Word => WORD_BYTES,
        }
    }
}
