//! What is counted: writes to the queue, by class, and to the cells, reads, energy, wear, and where
//! cycles went.

/// Why something is written to persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Data that a program or a design forces out: a flush, an in-place update.
    Data,
    /// Log records.
    Log,
    /// A design's own records about data.
    Metadata,
    /// Commit records and marks.
    Commit,
    /// Data that a cache evicted.
    HomeWriteBack,
    /// Merging of two copies into one.
    Consolidation,
    /// Checkpoints.
    Checkpoint,
    /// Moves of live data, to free the space of dead data.
    GarbageCollection,
    /// Copies of data that a transaction does not change, made beside the data that it changes.
    CopyOnWrite,
}

impl Class {
    /// Every class with its name in reports.
    pub const ALL: [(Class, &'static str); 9] = [
        (Class::Data, "data"),
        (Class::Log, "log"),
        (Class::Metadata, "metadata"),
        (Class::Commit, "commit"),
        (Class::HomeWriteBack, "home_write_back"),
        (Class::Consolidation, "consolidation"),
        (Class::Checkpoint, "checkpoint"),
        (Class::GarbageCollection, "garbage_collection"),
        (Class::CopyOnWrite, "copy_on_write"),
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        let named = Class::ALL.iter().find(|(class, _)| *class == self);
        named.expect("each class has a name").1
    }
}

/// What one persistent memory and its controller counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meters {
    /// Bytes accepted into the write-pending queue, by [`Class`].
    pub wpq_bytes: [u64; 9],
    /// Writes accepted into the write-pending queue; each is at most a line.
    pub wpq_writes: u64,
    /// Accepted writes that joined a write that was already there.
    pub wpq_merged: u64,
    /// Lines of the on-DIMM buffer (or cache lines, without one) whose cells were written.
    pub media_lines: u64,
    /// Bits programmed in the cells, by the [`Class`] of the last write that joined their cache
    /// line.
    pub media_bits: [u64; 9],
    /// Reads of the cells that a partial write made necessary.
    pub media_fill_reads: u64,
    /// Lines that were read, by the caches and by designs.
    pub reads: u64,
    /// Reads that the write-pending queue answered.
    pub reads_forwarded: u64,
    /// What the cells took.
    pub energy: CellEnergy,
    /// Writes, since power was applied, of the line of cells that was written most often.
    pub wear_max: u64,
}

/// Energy of cells, in femtojoules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellEnergy {
    /// For reading rows.
    pub read: u128,
    /// For bits that were set.
    pub set: u128,
    /// For bits that were reset.
    pub reset: u128,
}

impl CellEnergy {
    /// The sum of all.
    pub fn total(&self) -> u128 {
        self.read + self.set + self.reset
    }
}

impl Meters {
    /// Adds what another memory counted.
    pub fn add(&mut self, other: &Meters) {
        let own = self.wpq_bytes.iter_mut().chain(&mut self.media_bits);
        for (mine, theirs) in own.zip(other.wpq_bytes.iter().chain(&other.media_bits)) {
            *mine += theirs;
        }
        self.wpq_writes += other.wpq_writes;
        self.wpq_merged += other.wpq_merged;
        self.media_lines += other.media_lines;
        self.media_fill_reads += other.media_fill_reads;
        self.reads += other.reads;
        self.reads_forwarded += other.reads_forwarded;
        self.energy.read += other.energy.read;
        self.energy.set += other.energy.set;
        self.energy.reset += other.energy.reset;
        self.wear_max = self.wear_max.max(other.wear_max);
    }

    /// Bytes accepted into the write-pending queue.
    pub fn wpq_bytes_total(&self) -> u64 {
        self.wpq_bytes.iter().sum()
    }

    /// Bits programmed in the cells.
    pub fn media_bits_total(&self) -> u64 {
        self.media_bits.iter().sum()
    }
}

/// Why a core's clock advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// A load's data, or the room that an outstanding load takes.
    LoadMiss,
    /// No room in the store queue or store buffer.
    StoreBuffer,
    /// A fence.
    Fence,
    /// The acknowledgement of a commit.
    Commit,
    /// No room in a design's log structure.
    LogFull,
    /// A lock that another core held.
    Lock,
    /// Anything else: start, barriers, waiting for the last core at the end.
    Other,
}

impl Stall {
    /// Every reason with its name in reports; the other cycles are `compute`.
    pub const ALL: [(Stall, &'static str); 7] = [
        (Stall::LoadMiss, "load_miss"),
        (Stall::StoreBuffer, "store_buffer_full"),
        (Stall::Fence, "fence"),
        (Stall::Commit, "commit_wait"),
        (Stall::LogFull, "log_structure_full"),
        (Stall::Lock, "lock"),
        (Stall::Other, "other"),
    ];

    /// The reason in words.
    pub fn words(self) -> String {
        let (_, name) = Stall::ALL.iter().find(|(stall, _)| *stall == self).expect("all are there");
        name.replace('_', " ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_add_up_but_for_the_wear_of_the_line_that_is_worn_most() {
        let meters = |factor: u64, wear_max| Meters {
            wpq_bytes: std::array::from_fn(|class| (class as u64 + 2) * factor),
            wpq_writes: 13 * factor,
            wpq_merged: 17 * factor,
            media_lines: 19 * factor,
            media_bits: std::array::from_fn(|class| (class as u64 + 23) * factor),
            media_fill_reads: 29 * factor,
            reads: 31 * factor,
            reads_forwarded: 37 * factor,
            energy: CellEnergy {
                read: u128::from(41 * factor),
                set: u128::from(43 * factor),
                reset: u128::from(47 * factor),
            },
            wear_max,
        };
        for (own, other) in [(3, 5), (5, 3)] {
            let mut sum = meters(1, own);
            sum.add(&meters(10, other));
            assert_eq!(sum, meters(11, 5));
        }
        assert_eq!(meters(1, 0).wpq_bytes_total(), (2..11).sum());
        assert_eq!(meters(1, 0).media_bits_total(), (23..32).sum());
        assert_eq!(meters(1, 0).energy.total(), 41 + 43 + 47);
    }
}
