//! The database file of one core, in persistent memory: a header line, then the file's bytes.
//!
//! ```text
//! part | free | magic, length, 0 ... (64 bytes) | page 1 | page 2 | ...         |  free  |
//! ```
//!
//! A page of the database is a page of memory, as of a file that is mapped; what lies before the
//! header is what that takes. The length changes in the same transaction as the pages that made the
//! file longer.

use std::ops::Range;

use model::image::Image;
use model::units::{LINE_BYTES, Line, WORD_BYTES, Word};
use model::workload::{Pm, Ptr, Step, Stop};

/// Bytes of a page of the database; SQLite's default, and that of the design's literature.
pub(super) const PAGE_BYTES: u64 = 4096;
/// The header's first word: `indlsql1`.
const MAGIC: u64 = u64::from_le_bytes(*b"indlsql1");

model::choices! {
    /// The stores that a page written by SQLite becomes.
    pub enum Granularity {
        /// Every word of it is stored.
        FullPage = "full_page",
        /// Every word of the lines that differ is stored.
        DiffLines = "diff_lines",
        /// The words that differ are stored.
        DiffWords = "diff_words",
    }
}

/// The file of one database.
#[derive(Debug)]
pub(super) struct File {
    /// The part of persistent memory that header and file may fill.
    part: Range<u64>,
    granularity: Granularity,
    /// Whether the file is measured; otherwise it is being populated, and writes need no batch.
    measured: bool,
    /// A copy of persistent memory from the file's first byte on. A page that SQLite writes is
    /// compared with the copy, and not by loads: a program that stores its changes word by word has
    /// no page to compare, so the comparison must cost nothing. The copy never differs from memory,
    /// as only this file is written there, and a batch is given up only with the whole run.
    shadow: Vec<u8>,
    /// Whether memory behind the shadow is zeros because nothing was ever written there. After a
    /// power failure its contents are unknown, and everything that SQLite writes there is stored.
    zeros_behind: bool,
    length: u64,
    /// The length in the header.
    length_stored: u64,
    in_batch: bool,
    /// Batches that were committed.
    pub(super) batches: u64,
    /// Journals that SQLite opened: one while the database is empty, and none from then on.
    pub(super) journals: u64,
    /// The reason why the run is over, if it is. Once it is set, every operation on the file fails.
    pub(super) stop: Option<Stop>,
}

impl File {
    /// Returns an empty file, to be populated.
    pub(super) fn empty(part: Range<u64>) -> File {
        File {
            part,
            granularity: Granularity::FullPage,
            measured: false,
            shadow: Vec::new(),
            zeros_behind: true,
            length: 0,
            length_stored: 0,
            in_batch: false,
            batches: 0,
            journals: 0,
            stop: None,
        }
    }

    /// Returns the file that populating left in persistent memory, to be measured.
    pub(super) fn measured(part: Range<u64>, granularity: Granularity, bytes: &[u8]) -> File {
        let length = bytes.len() as u64;
        let (shadow, length_stored, measured) = (bytes.to_vec(), length, true);
        File { granularity, measured, shadow, length, length_stored, ..File::empty(part) }
    }

    /// Returns the file as one that a power failure left, behind which a longer one may have been.
    pub(super) fn with_anything_behind(self) -> File {
        File { zeros_behind: false, ..self }
    }

    /// Replaces the file's bytes in one transaction of the design. Returns whether they differed.
    ///
    /// # Errors
    /// See [`File::write`].
    pub(super) fn become_bytes(&mut self, bytes: &[u8], pm: &mut Pm<'_>) -> Step<bool> {
        if self.bytes() == bytes {
            return Ok(false);
        }
        self.begin_batch(Some(pm))?;
        self.write(Some(pm), 0, bytes)?;
        self.truncate(bytes.len() as u64)?;
        self.commit_batch(Some(pm))?;
        Ok(true)
    }

    /// The file's bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.shadow[..self.length as usize]
    }

    /// Stores the header, which makes the file valid, and zeros over what was written behind it: by
    /// transactions that were too large for the page cache and then given up.
    pub(super) fn seal(&mut self, pm: &mut Pm<'_>) {
        let mut behind = self.shadow.split_off(self.length as usize);
        behind.fill(0);
        pm.store_bytes(self.address(self.length), &behind);
        pm.store(Ptr::to(header_of(&self.part)), MAGIC);
        self.store_length(pm);
    }

    /// Reads bytes; those beyond the file's end are zeros. Returns whether the file has all of
    /// them. Without `pm`, outside of the measured region, the shadow is read.
    pub(super) fn read(&mut self, pm: Option<&mut Pm<'_>>, at: u64, bytes: &mut [u8]) -> bool {
        let there = self.length.saturating_sub(at).min(bytes.len() as u64) as usize;
        let (read, beyond) = bytes.split_at_mut(there);
        match pm {
            Some(pm) => pm.load_bytes(self.address(at), read),
            None => read.copy_from_slice(&self.shadow[at as usize..][..there]),
        }
        beyond.fill(0);
        beyond.is_empty()
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// [`Stop::OutOfMemory`] when there is no room, [`Stop::Failed`] when it is not in a batch.
    pub(super) fn write(&mut self, pm: Option<&mut Pm<'_>>, at: u64, bytes: &[u8]) -> Step {
        let Some(pm) = pm else {
            return Err(Stop::Failed("SQLite wrote while no transaction was executed".to_owned()));
        };
        self.must_be_in_batch("wrote to the database")?;
        let end = at + bytes.len() as u64;
        let room = room_of(&self.part);
        if end > room {
            let free = room.saturating_sub(self.length);
            return Err(Stop::OutOfMemory { asked: end.saturating_sub(self.length), free });
        }
        let known = if self.zeros_behind { end } else { self.shadow.len() as u64 };
        self.shadow.resize(self.shadow.len().max(end as usize), 0);
        self.length = self.length.max(end);
        let grain = match self.granularity {
            Granularity::FullPage => PAGE_BYTES,
            Granularity::DiffLines => LINE_BYTES,
            Granularity::DiffWords => WORD_BYTES,
        };
        let mut from = at;
        while from < end {
            let to = ((from / grain + 1) * grain).min(end);
            let new = &bytes[(from - at) as usize..(to - at) as usize];
            let place = self.address(from);
            let old = &mut self.shadow[from as usize..to as usize];
            if self.granularity == Granularity::FullPage || from >= known || old != new {
                pm.store_bytes(place, new);
                old.copy_from_slice(new);
            }
            from = to;
        }
        Ok(())
    }

    /// Makes the file shorter.
    ///
    /// # Errors
    /// [`Stop::Failed`] when it is not in a batch.
    pub(super) fn truncate(&mut self, length: u64) -> Step {
        self.must_be_in_batch("cut the database's file")?;
        self.length = self.length.min(length);
        Ok(())
    }

    /// The file's length, which is loaded from the header.
    pub(super) fn length(&mut self, pm: Option<&mut Pm<'_>>) -> u64 {
        match pm {
            Some(pm) if self.measured && !self.in_batch => pm.load(self.length_at()),
            _ => self.length,
        }
    }

    /// Begins a batch, which is a transaction of the design.
    pub(super) fn begin_batch(&mut self, pm: Option<&mut Pm<'_>>) -> Step {
        let Some(pm) = pm else {
            return Err(Stop::Failed("SQLite began a batch in no transaction".to_owned()));
        };
        pm.begin()?;
        self.in_batch = true;
        Ok(())
    }

    /// Commits a batch.
    pub(super) fn commit_batch(&mut self, pm: Option<&mut Pm<'_>>) -> Step {
        let Some(pm) = pm else {
            return Err(Stop::Failed("SQLite committed a batch in no transaction".to_owned()));
        };
        if self.length != self.length_stored {
            self.store_length(pm);
        }
        pm.commit();
        self.in_batch = false;
        self.batches += 1;
        Ok(())
    }

    /// Gives a batch up, which SQLite does only when a write or the commit has failed. That ends
    /// the run, because a design can undo a transaction only after a power failure.
    pub(super) fn roll_back(&mut self) -> Step {
        Err(Stop::Failed("SQLite gave up a batch although every write succeeded".to_owned()))
    }

    /// Notes that SQLite opened a journal.
    pub(super) fn open_journal(&mut self) -> Step {
        self.journals += 1;
        self.must_be_in_batch("opened a rollback journal")
    }

    fn must_be_in_batch(&self, what: &str) -> Step {
        if self.in_batch || !self.measured {
            return Ok(());
        }
        Err(Stop::Failed(format!(
            "SQLite {what} outside of an atomic batch, so the design under test would not see it \
             as part of a transaction"
        )))
    }

    fn store_length(&mut self, pm: &mut Pm<'_>) {
        pm.store(self.length_at(), self.length);
        self.length_stored = self.length;
    }

    fn length_at(&self) -> Ptr {
        Ptr::to(header_of(&self.part) + WORD_BYTES)
    }

    fn address(&self, at: u64) -> Ptr {
        Ptr::to(first_of(&self.part) + at)
    }
}

/// Returns where the file's first byte lies in a part: where a page of memory begins, behind the
/// header.
fn first_of(part: &Range<u64>) -> u64 {
    (part.start + LINE_BYTES).next_multiple_of(PAGE_BYTES)
}

/// Returns where the header lies in a part.
fn header_of(part: &Range<u64>) -> u64 {
    first_of(part) - LINE_BYTES
}

/// Returns how many bytes a file in a part can have.
fn room_of(part: &Range<u64>) -> u64 {
    part.end.saturating_sub(first_of(part))
}

/// Returns the bytes of the file in a part of an image.
///
/// # Errors
/// A sentence that says why there is none.
pub(super) fn recovered(image: &Image<'_>, part: &Range<u64>) -> Result<Vec<u8>, String> {
    let header = header_of(part);
    let magic = image.word(Word::of(header));
    if magic != MAGIC {
        return Err(format!("the header at {header:#x} begins with {magic:#018x}"));
    }
    let length = image.word(Word::of(header + WORD_BYTES));
    let room = room_of(part);
    if length == 0 || length > room || !length.is_multiple_of(PAGE_BYTES) {
        return Err(format!("the header says {length} bytes, in a part that has room for {room}"));
    }
    let first = Line::of(first_of(part)).0;
    let lines = first..first + length / LINE_BYTES;
    Ok(lines.flat_map(|line| *image.line(Line(line))).collect())
}
