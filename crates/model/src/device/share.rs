//! One controller's share of the memory, with its addresses counted without gaps.

use crate::config::Config;
use crate::units::{Divisor, LINE_BYTES, Line};

/// How addresses are shared among controllers: `interleave` bytes in a row belong to one
/// controller, the next ones to the next. The device behind a controller counts only the
/// controller's own addresses, which follow each other without gaps there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    interleave: Divisor,
    controllers: u64,
}

impl Share {
    /// Returns the share of any controller of a machine.
    pub fn new(config: &Config) -> Share {
        let interleave = Divisor::new(config.controller.interleave);
        Share { interleave, controllers: config.controller.count }
    }

    /// Whether `bytes` bytes that begin at a multiple of their number belong to one controller.
    pub fn keeps_together(&self, bytes: u64) -> bool {
        self.controllers == 1 || bytes <= self.interleave.value()
    }

    /// Returns an address as the device counts it.
    #[inline]
    pub fn own(&self, address: u64) -> u64 {
        if self.controllers == 1 {
            return address;
        }
        let (turn, within) = self.interleave.divide(address);
        turn / self.controllers * self.interleave.value() + within
    }

    /// Returns a line as the device counts it.
    #[inline]
    pub fn own_line(&self, line: Line) -> Line {
        Line(self.own(line.address()) / LINE_BYTES)
    }

    /// Returns the line that the device behind the controller of `other` counts as `own`.
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
