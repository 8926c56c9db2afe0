//! Checkers of what a power failure leaves of a program, whatever its transactions are: programs of
//! the user's, which know what the stores, flushes and fences of another program promise.

use std::fmt::Debug;

use crate::image::Image;
use crate::units::{CoreId, Line, LineData, PerCore, Word, WordMap};

/// Checks what a power failure leaves of a program's data, whatever its transactions are.
///
/// With a checker a power failure comes before every store, too, because what the program has
/// stored may leave the caches at any time.
pub trait Checker {
    /// Checks what recovery made of a power failure, when the programs had come so far. `held` says
    /// how many transactions of each core that stored something the image holds.
    ///
    /// # Errors
    /// What is wrong with the image, unless another image was refused for the same reason.
    fn check(&self, image: &Image<'_>, reached: &Reached, held: &[u64]) -> Result<(), Refusal>;

    /// What the checker was asked about until now.
    fn shown(&self) -> Shown;

    /// How many images it refused for the reason of an [`Account`], after the one that it told of.
    fn alike(&self, account: &Account) -> u64;

    /// Whether the user has cancelled. If so, the checker accepts every image unseen.
    fn is_cancelled(&self) -> bool;

    /// Whether it has refused so many images one after the other for known reasons that the
    /// campaign may end.
    fn has_enough(&self) -> bool;
}

/// How far the programs of a run have come.
#[derive(Debug)]
pub struct Reached {
    /// How many times the program of each core told the world how far it has come.
    marks: Vec<u64>,
    durable: Durable,
    words: WordMap<Extent>,
    /// The words that each core's next fence makes durable, with the number of their stores.
    flushed: PerCore<Vec<(Word, u64)>>,
}

/// When a store is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// When it is visible.
    Visible,
    /// When its line was flushed behind it, and a fence of the core that flushed it is done.
    Flushed,
    /// When the hardware's own rules make it durable.
    Otherwise,
}

/// How many stores a word of persistent memory has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// How many have taken effect.
    pub stores: u64,
    /// How many of these are known to be durable; more may be.
    pub durable: u64,
}

impl Reached {
    /// Where the programs of a machine with `cores` cores begin.
    pub fn new(cores: u8, durable: Durable) -> Reached {
        Reached {
            marks: vec![0; usize::from(cores)],
            durable,
            words: WordMap::default(),
            flushed: PerCore::new(cores, |_| Vec::new()),
        }
    }

    /// How many times the program of each core told the world how far it has come.
    pub fn marks(&self) -> &[u64] {
        &self.marks
    }

    /// The stores that a word has had.
    pub fn extent(&self, word: Word) -> Extent {
        self.words.get(&word).copied().unwrap_or_default()
    }

    /// Whether a store is durable behind a flush and a fence, and need not be before.
    pub fn needs_flushes(&self) -> bool {
        self.durable == Durable::Flushed
    }

    /// Returns the core whose next fence makes durable what a word held after so many stores, if
    /// one does.
    pub fn flushed_by(&self, word: Word, stores: u64) -> Option<CoreId> {
        let covers = |(flushed, until): &(Word, u64)| *flushed == word && stores <= *until;
        let mut cores = self.flushed.iter();
        cores.find(|(_, words)| words.iter().any(covers)).map(|(core, _)| core)
    }

    /// Notes a mark.
    pub fn marked(&mut self, core: CoreId) {
        self.marks[usize::from(core.0)] += 1;
    }

    /// Notes that a word was stored to; with `combining`, in a write-combining buffer, which
    /// survives nowhere.
    pub fn stored(&mut self, word: Word, combining: bool) {
        let extent = self.words.entry(word).or_default();
        extent.stores += 1;
        if self.durable == Durable::Visible && !combining {
            extent.durable = extent.stores;
        }
    }

    /// Notes that what a line holds now is durable when the core's next fence is done.
    pub fn flush(&mut self, core: CoreId, line: Line) {
        line.words().for_each(|word| self.flush_word(core, word));
    }

    /// Notes that what a word holds now is durable when the core's next fence is done.
    pub fn flush_word(&mut self, core: CoreId, word: Word) {
        let Extent { stores, durable } = self.extent(word);
        if durable < stores {
            self.flushed[core].push((word, stores));
        }
    }

    /// Notes that a fence of a core is done that makes durable what was flushed before it.
    pub fn fenced(&mut self, core: CoreId) {
        for (word, stores) in std::mem::take(&mut self.flushed[core]) {
            let extent = self.words.entry(word).or_default();
            extent.durable = extent.durable.max(stores);
        }
    }
}

/// What a checker was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The number of different images.
    pub images: u64,
    /// How many of these it refused.
    pub refused: u64,
    /// Whether it was asked about garbage, too, and accepted that.
    pub accepts_garbage: bool,
    /// See [`Checker::has_enough`].
    pub has_enough: bool,
}

/// Why what a power failure left is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong, in a sentence.
    pub text: String,
    /// The files in which the image is kept, if the user wants that.
    pub files: Vec<String>,
    /// What each thread had said last; nothing if no program was asked.
    pub marks: Vec<String>,
    /// Which of the program's stores the image has, if that is known.
    pub account: Option<Box<Account>>,
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal { text, files: Vec::new(), marks: Vec::new(), account: None }
    }
}

/// Which of a program's stores an image has, as far as that can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Those that are there, of each word the newest.
    pub there: Listed,
    /// Those that the program has made, and that are not there, or only in part.
    pub missing: Listed,
    /// The reason why the image is refused, such that images with the same one show the same
    /// mistake: what is told to the user says more.
    pub reason: String,
    /// How many more images were refused for that reason, and are not told of.
    pub alike: u64,
}

/// Stores of a program; of many only some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// These are listed, in the order of their places.
    pub stores: Vec<NamedStore>,
    /// How many there are.
    pub total: u64,
}

/// A store, by its place in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedStore {
    /// The place in the trace's file.
    pub place: u64,
    /// The place in the program, if the file says so.
    pub source: Option<String>,
    /// The first of its words that is there, or missing.
    pub word: Word,
    /// The thread that made it.
    pub thread: u64,
}

/// What a program of the user's does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Why, in a sentence.
    pub text: String,
    /// Whether it took so long that it was stopped.
    pub is_late: bool,
}

/// A program of the user's that is shown memory.
pub trait Examiner: Debug + Send + Sync {
    /// Checks whether the program accepts memory, in a piece for each region, when the threads of
    /// the program under test have said these words last.
    ///
    /// # Errors
    /// Why it does not.
    fn examine(&self, memory: &[Piece], said: &[&str]) -> Result<(), Rejection>;

    /// Keeps memory that the program does not accept, if the user wants that, under a number that
    /// no other has. Returns the names of the files.
    ///
    /// # Errors
    /// A sentence that says why that cannot be done.
    fn keep(&self, memory: &[Piece], number: u64) -> Result<Vec<String>, String>;

    /// Whether the user has cancelled. If so, the program accepts all memory unseen.
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

#[cfg(test)]
mod tests {
    use super::*;

    const A: CoreId = CoreId(0);
    const B: CoreId = CoreId(1);

    #[test]
    fn a_fence_makes_durable_what_its_core_flushed_before_it() {
        let mut reached = Reached::new(2, Durable::Flushed);
        for word in [Word(1), Word(1), Word(2), Word(9)] {
            reached.stored(word, false);
        }
        reached.flush(A, Word(1).line());
        let by = |stores| reached.flushed_by(Word(1), stores);
        assert_eq!((by(2), by(3)), (Some(A), None));
        reached.stored(Word(1), false);
        reached.fenced(B);
        assert_eq!(reached.extent(Word(1)), Extent { stores: 3, durable: 0 });
        reached.fenced(A);
        assert_eq!(reached.extent(Word(1)), Extent { stores: 3, durable: 2 });
        assert_eq!(reached.extent(Word(2)), Extent { stores: 1, durable: 1 });
        assert_eq!(reached.extent(Word(9)), Extent { stores: 1, durable: 0 });
        assert_eq!(reached.extent(Word(3)), Extent::default());
        assert_eq!(reached.flushed_by(Word(1), 2), None, "it is durable");
    }

    #[test]
    fn what_survives_is_durable_when_it_is_visible_but_not_in_write_combining_buffers() {
        let mut reached = Reached::new(1, Durable::Visible);
        reached.stored(Word(1), false);
        reached.stored(Word(1), true);
        assert_eq!(reached.extent(Word(1)), Extent { stores: 2, durable: 1 });
    }
}
