//! What lines have held since they were last durable.

use std::collections::{BTreeMap, VecDeque};

use crate::contents::Contents;
use crate::image::Image;
use crate::units::{Line, LineData};

/// So many of a line are kept (ours: what was stored over more often than that since it was last
/// durable is hardly what a program waits for).
const KEPT: usize = 64;

/// What each line has held since it was last durable, oldest first. Where a dirty line may leave
/// the caches at any time, it may have done so with any of that.
#[derive(Default)]
pub struct Versions {
    lines: BTreeMap<Line, VecDeque<LineData>>,
}

impl Versions {
    /// A store took effect in a line, which holds `data` now.
    pub fn stored(&mut self, line: Line, data: &LineData) {
        let versions = self.lines.entry(line).or_default();
        if versions.len() == KEPT {
            versions.pop_front();
        }
        versions.push_back(*data);
    }

    /// A line is durable, and holds `data` there: what it held before is gone.
    pub fn durable(&mut self, line: Line, data: &LineData) {
        let Some(versions) = self.lines.get_mut(&line) else { return };
        if let Some(last) = versions.iter().rposition(|version| version == data) {
            versions.drain(..=last);
        }
        if versions.is_empty() {
            self.lines.remove(&line);
        }
    }

    /// Some of the lines have left early, as far as `arrived` says so: the newest version first,
    /// and then the older ones. Those of which `image` has more than `durable` have left already.
    pub fn leave(
        &self,
        image: &mut Image<'_>,
        durable: &Contents,
        arrived: &mut dyn FnMut() -> bool,
    ) {
        for (&line, versions) in &self.lines {
            if image.line(line) != durable.line(line) || !arrived() {
                continue;
            }
            let mut older = versions.iter().rev();
            let mut left = older.next();
            for version in older {
                if !arrived() {
                    break;
                }
                left = Some(version);
            }
            if let Some(data) = left {
                image.set_line(line, data, u64::MAX).expect("the power is on");
            }
        }
    }
}
