//! What MorLog keeps beside a core's first level: the states of words, and the two log buffers.

use std::collections::VecDeque;

use model::units::{Cycle, Line, LineMap, TxId, Word};

use crate::parts::record::differing;

/// What the log has of a word of the running transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing: the transaction has not stored to the word, or the first level has lost track of
    /// it.
    #[default]
    Clean,
    /// An undo+redo entry in the buffer.
    Dirty,
    /// Undo and the newest redo data have left the buffer.
    UrLog,
    /// Undo data have left the buffer; the newest redo data are in the first level only.
    ULog,
}

/// What a first level keeps of the words of a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tags {
    /// The states.
    pub states: [State; 8],
    /// The bytes that the transaction has changed (the dirty flags).
    pub bytes: [u8; 8],
    /// The bytes whose undo data have left the buffer.
    pub undoable: [u8; 8],
}

/// An entry of the undo+redo buffer.
#[derive(Clone, Copy, Debug)]
pub struct UndoRedo {
    /// Its transaction.
    pub tx: TxId,
    /// The word.
    pub word: Word,
    /// The bytes that changed.
    pub bytes: u8,
    /// The word before.
    pub undo: u64,
    /// The word after.
    pub redo: u64,
    /// When the last store that it took in leaves the core; the entry is not sent before.
    pub complete: Cycle,
    /// When it is old enough to leave.
    pub due: Cycle,
}

/// An entry of the redo buffer.
#[derive(Clone, Copy, Debug)]
pub struct Redo {
    /// Its transaction.
    pub tx: TxId,
    /// The word.
    pub word: Word,
    /// The bytes that changed.
    pub bytes: u8,
    /// The word after.
    pub redo: u64,
}

/// A core's word states and log buffers.
#[derive(Debug, Default)]
pub struct Words {
    /// The transaction.
    pub tx: TxId,
    /// Whether it has stored anything.
    pub stored: bool,
    /// Lines of the first level that it stored to.
    pub tags: LineMap<Tags>,
    /// The lines that it stored to, in order; some may have left the first level.
    pub lines: Vec<Line>,
    /// The undo+redo buffer, oldest first.
    pub ur: VecDeque<UndoRedo>,
    /// The redo buffer, oldest first.
    pub r: VecDeque<Redo>,
    /// Words in state ULog.
    pub ulog: u64,
    /// Redo data that commits found in the first level and that are there still, oldest first.
    pub left: VecDeque<Redo>,
    /// Whether a commit has scanned the first level.
    pub scanned: bool,
    /// Whether the core's store waits for room in a buffer.
    pub waiting: bool,
    /// When the entries are looked at again for a store that waits.
    pub looks: Cycle,
    /// How many records have become durable, of those that undo and of the others, of which the
    /// core has not heard.
    pub unheard: [u64; 2],
    /// How many count records are still to come.
    pub counts_left: u64,
    /// How many records to come the log was told of.
    pub told: u64,
}

/// What became of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The store made an undo+redo entry.
    Entry {
        /// Whether the buffer was empty before.
        first: bool,
    },
    /// The store went into an entry.
    Coalesced,
    /// The store's redo data wait in the first level.
    Deferred,
}

impl Words {
    /// Takes in a store of the transaction that leaves the core at `leaves`, and returns what
    /// became of it. An entry that the store begins is to leave `age` cycles later.
    pub fn store(&mut self, word: Word, (old, new): (u64, u64), leaves: Cycle, age: u64) -> Stored {
        let (line, place) = (word.line(), word.place());
        let tags = self.tags.entry(line).or_insert_with(|| {
            self.lines.push(line);
            Tags::default()
        });
        let changed = differing(old, new);
        tags.bytes[place] |= changed;
        let bytes = tags.bytes[place];
        let state = tags.states[place];
        match state {
            // A record without the bytes that had not changed cannot undo them.
            State::UrLog | State::ULog if changed & !tags.undoable[place] == 0 => {
                self.ulog += u64::from(state == State::UrLog);
                tags.states[place] = State::ULog;
                Stored::Deferred
            }
            State::Clean | State::UrLog | State::ULog => {
                self.ulog -= u64::from(state == State::ULog);
                tags.states[place] = State::Dirty;
                let first = self.ur.is_empty();
                let tx = self.tx;
                let (complete, due) = (leaves, leaves + age);
                self.ur.push_back(UndoRedo {
                    tx,
                    word,
                    bytes,
                    undo: old,
                    redo: new,
                    complete,
                    due,
                });
                Stored::Entry { first }
            }
            State::Dirty => {
                let entry = self.ur.iter_mut().rev().find(|entry| entry.word == word);
                let entry = entry.expect("a word that is dirty has an entry");
                (entry.redo, entry.bytes, entry.complete) = (new, bytes, leaves);
                Stored::Coalesced
            }
        }
    }

    /// Takes out the oldest undo+redo entry, which leaves in a record of all bytes or, if `packed`,
    /// only of those that changed. If the word has no other entry, its state becomes `state`.
    pub fn leave_ur(&mut self, state: State, packed: bool) -> Option<UndoRedo> {
        let entry = self.ur.pop_front()?;
        let word = entry.word;
        let again = self.ur.iter().any(|other| other.word == word);
        if !again && let Some(tags) = self.tags.get_mut(&word.line()) {
            let now = &mut tags.states[word.place()];
            if *now == State::Dirty {
                *now = state;
                tags.undoable[word.place()] = if packed { entry.bytes } else { u8::MAX };
            }
        }
        Some(entry)
    }

    /// Puts newest redo data into the redo buffer. Returns whether an entry had the word's older
    /// ones.
    pub fn put_redo(&mut self, redo: Redo) -> bool {
        let same = |other: &&mut Redo| other.word == redo.word && other.tx == redo.tx;
        if let Some(entry) = self.r.iter_mut().find(same) {
            *entry = Redo { bytes: entry.bytes | redo.bytes, ..redo };
            return true;
        }
        self.r.push_back(redo);
        false
    }

    /// Takes out the redo entry of a word, if there is one.
    pub fn take_redo(&mut self, word: Word) -> Option<Redo> {
        let index = self.r.iter().position(|entry| entry.word == word)?;
        self.r.remove(index)
    }

    /// Forgets a line that leaves the first level. Returns the words whose redo data were only
    /// there.
    pub fn lose(&mut self, line: Line) -> impl Iterator<Item = (Word, u8)> + use<> {
        let tags = self.tags.remove(&line).unwrap_or_default();
        let unlogged = (0..8).filter(move |place| tags.states[*place] == State::ULog);
        self.ulog -= unlogged.clone().count() as u64;
        unlogged.map(move |place| (Word(line.first_word().0 + place as u64), tags.bytes[place]))
    }

    /// Ends the transaction: adds the redo data of its words in state ULog to `left`, with the
    /// values that the words have. With `reset`, no word has a state afterwards.
    pub fn scan(&mut self, reset: bool, value: impl Fn(Word) -> u64) {
        for line in std::mem::take(&mut self.lines) {
            let kept = if reset { None } else { self.tags.get(&line).copied() };
            let unlogged = self.lose(line);
            let tx = self.tx;
            let redo = |(word, bytes)| Redo { tx, word, bytes, redo: value(word) };
            self.left.extend(unlogged.map(redo));
            if let Some(tags) = kept {
                self.tags.insert(line, Tags { states: tags.states.map(logged), ..tags });
            }
        }
    }

    /// Takes redo data out of `left` whose word is about to change in the first level or to leave
    /// it.
    pub fn take_left(&mut self, goes: impl Fn(Word) -> bool) -> VecDeque<Redo> {
        // Nearly always there is none.
        if !self.left.iter().any(|redo| goes(redo.word)) {
            return VecDeque::new();
        }
        let (gone, left) = self.left.drain(..).partition(|redo| goes(redo.word));
        self.left = left;
        gone
    }

    /// Whether something of the core waits for records to be durable.
    pub fn waits_for_log(&self) -> bool {
        self.waiting || self.scanned || !self.r.is_empty() || !self.left.is_empty()
    }

    /// Records that are still to come, at the most. A word of an undo+redo entry may need two.
    pub fn owed(&self) -> u64 {
        self.ulog + self.counts_left + (2 * self.ur.len() + self.r.len() + self.left.len()) as u64
    }
}

fn logged(state: State) -> State {
    if state == State::ULog { State::UrLog } else { state }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: Word = Word(9);

    fn state(words: &Words) -> State {
        words.tags[&WORD.line()].states[WORD.place()]
    }

    fn store(words: &mut Words, old: u64) -> Stored {
        words.store(WORD, (old, old + 1), Cycle(0), 0)
    }

    #[test]
    fn a_word_goes_through_the_states_of_the_paper() {
        let mut words = Words::default();
        assert_eq!(store(&mut words, 0), Stored::Entry { first: true });
        assert_eq!((store(&mut words, 1), state(&words)), (Stored::Coalesced, State::Dirty));
        let entry = words.leave_ur(State::UrLog, false).expect("an entry");
        assert_eq!((entry.undo, entry.redo, state(&words)), (0, 2, State::UrLog));
        assert_eq!((store(&mut words, 2), state(&words)), (Stored::Deferred, State::ULog));
        assert_eq!((store(&mut words, 3), words.ulog), (Stored::Deferred, 1));
        assert_eq!(words.lose(WORD.line()).collect::<Vec<_>>(), [(WORD, 0b1)]);
        assert_eq!(words.ulog, 0);
        assert_eq!(store(&mut words, 4), Stored::Entry { first: true }, "it has lost track");
    }

    #[test]
    fn a_word_with_a_second_entry_stays_dirty_when_the_first_leaves() {
        let mut words = Words::default();
        store(&mut words, 0);
        words.lose(WORD.line()).for_each(drop);
        assert_eq!(store(&mut words, 1), Stored::Entry { first: false });
        words.leave_ur(State::UrLog, false);
        assert_eq!(state(&words), State::Dirty);
        assert_eq!(store(&mut words, 2), Stored::Coalesced);
        assert_eq!(words.ur[0].undo, 1);
    }

    #[test]
    fn a_byte_that_no_record_can_undo_makes_another_entry() {
        let mut words = Words::default();
        words.store(WORD, (0, 1), Cycle(0), 0);
        words.leave_ur(State::UrLog, true);
        assert_eq!(words.store(WORD, (1, 2), Cycle(0), 0), Stored::Deferred);
        let beyond = words.store(WORD, (2, 0x102), Cycle(0), 0);
        assert_eq!((beyond, words.ulog), (Stored::Entry { first: true }, 0));
        let entry = words.leave_ur(State::UrLog, true).expect("an entry");
        assert_eq!((entry.bytes, entry.undo, entry.redo), (0b11, 2, 0x102));
        assert_eq!(words.store(WORD, (0x102, 0x201), Cycle(0), 0), Stored::Deferred);
    }

    #[test]
    fn redo_data_of_a_word_merge() {
        let mut words = Words::default();
        let redo = |bytes, redo| Redo { tx: TxId(1), word: WORD, bytes, redo };
        assert!(!words.put_redo(redo(0b1, 5)));
        assert!(words.put_redo(redo(0b10, 6)));
        let entry = words.take_redo(WORD).expect("an entry");
        assert_eq!((entry.bytes, entry.redo, words.r.len()), (0b11, 6, 0));
    }

    #[test]
    fn a_scan_finds_what_is_logged_nowhere() {
        let mut words = Words::default();
        store(&mut words, 0);
        words.leave_ur(State::UrLog, false);
        store(&mut words, 1);
        words.scan(true, |word| word.0);
        let left: Vec<_> = words.left.iter().map(|redo| (redo.word, redo.bytes)).collect();
        assert_eq!((left, words.left[0].redo), (vec![(WORD, 1)], WORD.0));
        assert_eq!((words.ulog, words.tags.len()), (0, 0));
    }
}
