//! Who checks what a power failure leaves of a program, whatever a transaction is to it: a program
//! of the user's, which knows what the stores, flushes and fences of another one promise.

use std::fmt::Debug;

use crate::image::Image;
use crate::units::LineData;

/// Checks what a power failure leaves of a program's data, whatever a transaction is to it.
///
/// Where there is one, a power failure comes before every store, too: what the program has stored
/// may leave the caches at any time.
pub trait Checker {
    /// Checks what recovery made of a power failure, when the program of each core had told the
    /// world so many times how far it has come.
    ///
    /// # Errors
    /// What is wrong with it.
    fn check(&self, image: &Image<'_>, marks: &[u64]) -> Result<(), Refusal>;

    /// What it was asked about until now.
    fn shown(&self) -> Shown;

    /// Whether an end is wanted: it says nothing of what it is asked about now.
    fn is_cancelled(&self) -> bool;
}

/// What a checker was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Images that differ.
    pub images: u64,
    /// Whether it was asked about garbage, too, and accepted that.
    pub accepts_garbage: bool,
}

/// Why what a power failure left is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong, in a sentence.
    pub text: String,
    /// The files in which it is kept, if the user wants that.
    pub files: Vec<String>,
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal { text, files: Vec::new() }
    }
}

/// A program of the user's that is shown memory.
pub trait Examiner: Debug + Send + Sync {
    /// Whether it accepts memory, a piece for each region, when the threads of the program have
    /// said these words last.
    ///
    /// # Errors
    /// A sentence that says why not.
    fn examine(&self, memory: &[Piece], said: &[&str]) -> Result<(), String>;

    /// Keeps memory that it does not accept, if the user wants that, under a number that no other
    /// has, in the files that it names.
    ///
    /// # Errors
    /// A sentence that says why that cannot be done.
    fn keep(&self, memory: &[Piece], number: u64) -> Result<Vec<String>, String>;

    /// Whether an end is wanted: what it is asked about now it accepts unseen.
    fn is_cancelled(&self) -> bool;

    /// What it is called.
    fn name(&self) -> &str;
}

/// A piece of memory, of which most may be zeros.
#[derive(Clone, Debug, Hash)]
pub struct Piece {
    /// Bytes.
    pub length: u64,
    /// Lines, and how many bytes are before each.
    pub lines: Vec<(u64, LineData)>,
}
