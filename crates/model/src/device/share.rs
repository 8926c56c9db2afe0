//! One controller's part of a memory, whose addresses are counted without those of the others.

use crate::config::Config;
use crate::units::{Divisor, LINE_BYTES, Line};

/// The addresses that a controller has: runs of `interleave` bytes belong to the controllers in
/// turn. A device behind a controller knows only its own addresses, which follow each other there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    interleave: Divisor,
    controllers: u64,
}

impl Share {
    /// The share of any controller of a machine.
    pub fn new(config: &Config) -> Share {
        let interleave = Divisor::new(config.controller.interleave);
        Share { interleave, controllers: config.controller.count }
    }

    /// Whether `bytes` bytes, beginning at a multiple of that number, belong to one controller.
    pub fn keeps_together(&self, bytes: u64) -> bool {
        self.controllers == 1 || bytes <= self.interleave.value()
    }

    /// An address as the device counts it.
    #[inline]
    pub fn own(&self, address: u64) -> u64 {
        if self.controllers == 1 {
            return address;
        }
        let (turn, within) = self.interleave.divide(address);
        turn / self.controllers * self.interleave.value() + within
    }

    /// A line as the device counts it.
    #[inline]
    pub fn own_line(&self, line: Line) -> Line {
        Line(self.own(line.address()) / LINE_BYTES)
    }

    /// The line that the device behind `other`'s controller counts as `own`.
    pub fn line_beside(&self, other: Line, own: Line) -> Line {
        let index = self.interleave.divide(other.address()).0 % self.controllers;
        let (turn, within) = self.interleave.divide(own.address());
        let turn = turn * self.controllers + index;
        Line::of(turn * self.interleave.value() + within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_counted_there_and_back() {
        for (count, interleave) in [(1, 64), (2, 64), (3, 128), (4, 4096), (16, 1 << 30)] {
            let mut config = Config::default();
            (config.controller.count, config.controller.interleave) = (count, interleave);
            let mut own = vec![0; count as usize];
            let share = Share::new(&config);
            let mut firsts = vec![None; count as usize];
            for line in (0..1_000).map(Line) {
                let index = (line.address() / interleave % count) as usize;
                let first = *firsts[index].get_or_insert(line);
                let place = share.own_line(line);
                assert_eq!(share.line_beside(first, place), line, "{count} x {interleave} B");
                assert_eq!(place.0, own[index], "a controller's lines have no gaps");
                own[index] += 1;
            }
        }
    }
}
