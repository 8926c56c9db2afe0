//! The rules of logs of words in memory, stated once for all of them.

model::rules! {
    /// What a log in memory obeys, its commits and its recovery (FWB, HPCA'18; MorLog, ISCA'20; and
    /// ours).
    pub struct LogRules {
        /// A line does not overtake the undo data of its words, whichever controllers accept the
        /// two.
        line_after_records,
        /// The acknowledgement waits until the commit record is accepted.
        acknowledge_after_record,
        /// The acknowledgement waits until every earlier record is accepted, at all controllers.
        acknowledge_after_all_before,
        /// The torn bit changes with each pass over the ring.
        torn_bit_flips,
        /// The first line of a pass over the ring is written after the previous pass and before the
        /// rest of its own: it tells recovery which pass is the newest.
        pass_begins_alone,
        /// The records of a running transaction are not overwritten.
        keep_running,
        /// A line of the ring that is still needed is not overwritten: stores wait, and a scan
        /// begins if the design has one.
        stall_when_full,
        /// For recovery the log ends before the first line that is not complete.
        hole_ends_log,
        /// Recovery ignores every record that is older than a line that has been overwritten.
        forget_before_overwritten,
        /// Recovery applies redo records oldest first.
        redo_oldest_first,
        /// Recovery applies undo records newest first: a word may have several, and only the oldest
        /// has the value from before the transaction.
        undo_newest_first,
        /// Recovery's writes are durable before the mark that drops the log.
        fence_before_log_is_dropped,
        /// A machine that boots erases what is left in the ring before it uses it.
        erase_ring_at_boot,
    }
}

model::rules! {
    /// What the forced write-back obeys (FWB, HPCA'18, and ours).
    pub struct ScanRules {
        /// The log is cut only once the lines of a scan, and the lines evicted before it, are
        /// accepted.
        cut_when_home,
        /// The log is cut where it ended when the previous scan began: lines that became dirty
        /// since then have been flagged, but not written back.
        cut_one_scan_behind,
        /// A flagged line that moves from one level of the caches to the next stays flagged.
        flag_moves_with_line,
    }
}
