//! Checkers of what a power failure leaves of a program, whatever its transactions are: programs of
//! the user's, which know what the stores, flushes and fences of another program promise.

use std::fmt::Debug;

use crate::image::Image;
use crate::units::LineData;

/// Checks what a power failure leaves of a program's data, whatever its transactions are.
///
/// With a checker a power failure comes before every store, too, because what the program has
/// stored may leave the caches at any time.
pub trait Checker {
    /// Checks what recovery made of a power failure. `marks` says how many times the program of
    /// each core had told the world how far it has come.
    ///
    /// # Errors
    /// What is wrong with the image.
    fn check(&self, image: &Image<'_>, marks: &[u64]) -> Result<(), Refusal>;

    /// What the checker was asked about until now.
    fn shown(&self) -> Shown;

    /// Whether an end is wanted: the checker then says nothing of what it is asked about.
    fn is_cancelled(&self) -> bool;
}

/// What a checker was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The number of different images.
    pub images: u64,
    /// Whether it was asked about garbage, too, and accepted that.
    pub accepts_garbage: bool,
}

/// Why what a power failure left is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong, in a sentence.
    pub text: String,
    /// The files in which the image is kept, if the user wants that.
    pub files: Vec<String>,
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal { text, files: Vec::new() }
    }
}

/// A program of the user's that is shown memory.
pub trait Examiner: Debug + Send + Sync {
    /// Checks whether the program accepts memory, in a piece for each region, when the threads of
    /// the program under test have said these words last.
    ///
    /// # Errors
    /// A sentence that says why it does not.
    fn examine(&self, memory: &[Piece], said: &[&str]) -> Result<(), String>;

    /// Keeps memory that the program does not accept, if the user wants that, under a number that
    /// no other has. Returns the names of the files.
    ///
    /// # Errors
    /// A sentence that says why that cannot be done.
    fn keep(&self, memory: &[Piece], number: u64) -> Result<Vec<String>, String>;

    /// Whether an end is wanted: the program then accepts what it is asked about unseen.
    fn is_cancelled(&self) -> bool;

    /// The program's name.
    fn name(&self) -> &str;
}

/// A piece of memory, of which most may be zeros.
#[derive(Clone, Debug, Hash)]
pub struct Piece {
    /// The length in bytes.
    pub length: u64,
    /// The lines, each with the number of bytes before it.
    pub lines: Vec<(u64, LineData)>,
}
