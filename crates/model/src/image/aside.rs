//! Lines that lie over those of a memory.

use crate::units::{Line, LineData, LineMap};

/// Some lines' bytes, in the order in which they were first changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Aside {
    lines: Vec<(Line, LineData)>,
    places: LineMap<u32>,
}

impl Aside {
    /// What a line holds, if it was changed.
    #[inline]
    pub(super) fn get(&self, line: Line) -> Option<&LineData> {
        let place = *self.places.get(&line)?;
        Some(&self.lines[place as usize].1)
    }

    /// Returns what a line holds, to be changed, which is `before` if the line was not changed yet.
    #[inline]
    pub(super) fn get_mut<'b>(
        &mut self,
        line: Line,
        before: impl FnOnce() -> &'b LineData,
    ) -> &mut LineData {
        let new = self.lines.len();
        let place = *self.places.entry(line).or_insert(new as u32) as usize;
        if place == new {
            self.lines.push((line, *before()));
        }
        &mut self.lines[place].1
    }

    /// The lines that were changed, and what they hold.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Line, &LineData)> + '_ {
        self.lines.iter().map(|(line, data)| (*line, data))
    }

    /// The lines that were changed.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        self.lines.iter().map(|(line, _)| *line)
    }
}
