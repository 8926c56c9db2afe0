//! A line of the log as it fills.

use model::units::{LINE_BYTES, LineData};

use super::record::{Kind, LONGEST, SHORTEST};
use super::ring::{FOOTER, RECORDS_MAX, Ring};

const _: () = assert!(2 * LONGEST <= FOOTER, "two records fit a line");

/// A line of the buffer.
#[derive(Clone, Copy, Debug)]
pub struct Filling {
    data: LineData,
    /// How many records the line before has.
    before: u8,
    /// How many records it has.
    pub count: u8,
    /// Where its last record that is not a commit ends.
    pub logged: u8,
    /// How many of its bytes are filled.
    pub filled: u8,
    /// How many of these a controller has accepted.
    pub accepted: u8,
}

impl Filling {
    /// An empty line behind a line of `before` records.
    pub fn new(before: u8) -> Filling {
        let data = [0; LINE_BYTES as usize];
        Filling { data, before, count: 0, logged: 0, filled: 0, accepted: 0 }
    }

    /// Adds the bytes of a record, if there is room, and returns where the record ends.
    pub fn put(&mut self, kind: Kind, bytes: &[u8], ring: &Ring) -> Option<u8> {
        let room = ring.room_for(kind, bytes.len());
        let start = usize::from(self.filled);
        if start + room > FOOTER || self.count == RECORDS_MAX {
            return None;
        }
        self.data[start..start + bytes.len()].copy_from_slice(bytes);
        self.filled += room as u8;
        self.count += 1;
        if !matches!(kind, Kind::Commit | Kind::Count) {
            self.logged = self.filled;
        }
        Some(self.filled)
    }

    /// Whether no record fits any more, not even the shortest.
    pub fn is_full(&self, ring: &Ring) -> bool {
        let least = ring.room_for(Kind::Commit, SHORTEST);
        usize::from(self.filled) + least > FOOTER || self.count == RECORDS_MAX
    }

    /// The line as it is in memory.
    pub fn bytes(&self, ring: &Ring, number: u64, torn_bit_flips: bool) -> LineData {
        let mut data = self.data;
        data[FOOTER] = ring.footer(number, self.before, self.count, torn_bit_flips);
        data
    }
}
