//! What lines may hold on hardware that promises durability behind a fence, and nothing before.

use std::collections::{BTreeMap, VecDeque};

use crate::contents::View;
use crate::image::{Image, put_word, word_of};
use crate::units::{CoreId, Line, LineData, PerCore, Word, mix};

/// How many versions of a line are kept before every second one is forgotten, except those that a
/// fence is to make durable (ours: a line that is stored to for ever and never flushed fills the
/// host's memory, and what it held between two versions is much like them).
const KEPT: usize = 1024;

/// How many images are made of a crash point that has more.
const IMAGES: u64 = 16;

/// What each line has held since the last fence that made it durable, if it held something else
/// before. A processor may write a line back at any time, and need not before the fence behind its
/// flush, so memory may hold any of that.
pub struct Versions {
    lines: BTreeMap<Line, History>,
    /// The number of the next version, of whichever line.
    next: u64,
    /// What each core's next fence makes durable: lines, each with the number before which its
    /// versions are made durable.
    flushed: PerCore<Vec<(Line, u64)>>,
    /// How many lines of the caches the machine saves when the power fails, those with the lowest
    /// addresses first; [`ALL`] of them if stores survive.
    saved: u64,
}

/// The number of lines that a machine saves whose stores survive, but for those past the caches.
pub const ALL: u64 = u64::MAX;

/// A line's versions.
struct History {
    /// What memory holds of the line if no newer version is there.
    settled: LineData,
    /// The versions after that, oldest first, each with its number. There is at least one.
    open: VecDeque<(u64, LineData)>,
    /// Whether a store past the caches made the newest version, which may be in a write-combining
    /// buffer: nobody saves those.
    is_combined: bool,
}

impl History {
    /// What memory may hold of the line: this many versions.
    fn ways(&self) -> u64 {
        self.open.len() as u64 + 1
    }

    /// The number of the newest version.
    fn newest(&self) -> u64 {
        self.open.back().expect("there is a version").0
    }

    /// Forgets every second version that no fence waits for; the newest stays.
    fn thin(&mut self, awaited: &[u64]) {
        let newest = self.newest();
        let mut is_second = true;
        self.open.retain(|(number, _)| {
            is_second = !is_second;
            !is_second || *number == newest || awaited.contains(number)
        });
    }
}

impl Versions {
    /// The record of a machine with `cores` cores, which saves this many lines of its caches when
    /// the power fails.
    pub fn new(cores: u8, saved: u64) -> Versions {
        let flushed = PerCore::new(cores, |_| Vec::new());
        Versions { lines: BTreeMap::new(), next: 0, flushed, saved }
    }

    /// Notes a store that took effect in a word that held `old`; the word's line is now as in
    /// `view`. With `combining` it is in a write-combining buffer.
    pub fn stored(&mut self, word: Word, old: u64, combining: bool, view: &View) {
        let line = word.line();
        let now = *view.line(line);
        debug_assert!(word_of(&now, word) == view.word(word), "the line is that of the word");
        if self.saved == ALL && !combining {
            self.lines.remove(&line);
            return;
        }
        let history = self.lines.entry(line).or_insert_with(|| {
            let mut settled = now;
            put_word(&mut settled, word, old);
            History { settled, open: VecDeque::new(), is_combined: false }
        });
        history.open.push_back((self.next, now));
        self.next += 1;
        history.is_combined = combining;
        if history.open.len().is_multiple_of(KEPT) {
            let flushed = self.flushed.iter().flat_map(|(_, lines)| lines);
            let awaited = flushed.filter(|(other, _)| *other == line).map(|(_, until)| until - 1);
            history.thin(&awaited.collect::<Vec<_>>());
        }
    }

    /// Notes that what a line holds now is durable when the core's next fence is done.
    pub fn flush(&mut self, core: CoreId, line: Line) {
        if let Some(history) = self.lines.get(&line) {
            self.flushed[core].push((line, history.newest() + 1));
        }
    }

    /// Notes that what a core flushed until now is durable.
    pub fn fenced(&mut self, core: CoreId) {
        for (line, until) in std::mem::take(&mut self.flushed[core]) {
            let Some(history) = self.lines.get_mut(&line) else { continue };
            while history.open.front().is_some_and(|(number, _)| *number < until)
                && let Some((_, version)) = history.open.pop_front()
            {
                history.settled = version;
            }
            if history.open.is_empty() {
                self.lines.remove(&line);
            }
        }
    }

    /// How many things memory may hold of a line.
    #[cfg(test)]
    pub(super) fn ways_of(&self, line: Line) -> u64 {
        self.lines.get(&line).map_or(1, History::ways)
    }

    /// The lines of which memory may hold any version. Of all lines that may be in the caches the
    /// machine saves the first few: any other one is saved, too, unless so many before it are.
    fn loose(&self) -> impl Iterator<Item = (Line, &History)> {
        let mut before = 0;
        let loose = self.lines.iter().filter(move |(_, history)| {
            before += u64::from(!history.is_combined);
            history.is_combined || before > self.saved
        });
        loose.map(|(line, history)| (*line, history))
    }

    /// How many images there could be.
    fn combinations(&self) -> u64 {
        self.loose().fold(1, |all: u64, (_, history)| all.saturating_mul(history.ways()))
    }

    /// Whether there could be more images than are made.
    pub fn are_many(&self) -> bool {
        self.combinations() > IMAGES
    }

    /// Makes one of the images that there could be, by its number from 1 on, and returns whether
    /// there is one of that number; the image has what the machine saves already. If there are few
    /// combinations of versions, each has a number. Otherwise the images hold everything, nothing,
    /// everything but one line, nothing but one line, and what chance gives.
    pub fn lay(&self, number: u64, seed: u64, image: &mut Image<'_>) -> bool {
        let loose: Vec<_> = self.loose().collect();
        let all = self.combinations();
        if loose.is_empty() || number > all.min(IMAGES) {
            return false;
        }
        let drawn = |index: u64, below: u64| mix(seed ^ mix(number ^ index << 32)) % below;
        let alone = drawn(u64::from(u32::MAX), loose.len() as u64);
        let mut rest = number - 1;
        for (index, (line, history)) in (0..).zip(loose) {
            let (ways, is_alone) = (history.ways(), index == alone);
            let newest = ways - 1;
            let way = if all <= IMAGES {
                let way = rest % ways;
                rest /= ways;
                way
            } else {
                match number {
                    1 => newest,
                    2 => 0,
                    3..=7 if is_alone => drawn(index, newest),
                    3..=7 => newest,
                    8..=12 if is_alone => 1 + drawn(index, newest),
                    8..=12 => 0,
                    _ => drawn(index, ways),
                }
            };
            let older = (way as usize).checked_sub(1).and_then(|way| history.open.get(way));
            let data = older.map_or(&history.settled, |(_, version)| version);
            image.set_line(line, data, u64::MAX).expect("the power is on");
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::Contents;

    const A: CoreId = CoreId(0);
    const B: CoreId = CoreId(1);
    /// Words of three lines.
    const W: [Word; 3] = [Word(1), Word(9), Word(17)];

    fn view() -> View {
        View::new(4096, 4096).expect("room")
    }

    fn store(versions: &mut Versions, view: &mut View, word: Word, value: u64) {
        let old = view.set_word(word, value);
        versions.stored(word, old, false, view);
    }

    /// What the words hold in each image that there could be.
    fn images(versions: &Versions) -> Vec<[u64; 3]> {
        let durable = Contents::new(0, 4096).expect("room");
        let laid = |number| {
            let mut image = Image::over(&durable);
            versions.lay(number, 1, &mut image).then(|| W.map(|word| image.word(word)))
        };
        (1..).map_while(laid).collect()
    }

    #[test]
    fn behind_a_fence_what_was_flushed_is_there_or_something_newer() {
        for (fenced, may_be) in
            [(Some(A), &[2, 3][..]), (Some(B), &[0, 1, 2, 3]), (None, &[0, 1, 2, 3])]
        {
            let (mut versions, mut view) = (Versions::new(2, 0), view());
            store(&mut versions, &mut view, W[0], 1);
            store(&mut versions, &mut view, W[0], 2);
            versions.flush(A, W[0].line());
            store(&mut versions, &mut view, W[0], 3);
            if let Some(core) = fenced {
                versions.fenced(core);
            }
            let mut held: Vec<u64> = images(&versions).iter().map(|words| words[0]).collect();
            held.sort_unstable();
            assert_eq!(held, may_be, "{fenced:?}");
        }
    }

    #[test]
    fn of_few_lines_each_may_hold_any_of_its_versions() {
        let (mut versions, mut view) = (Versions::new(1, 0), view());
        for (word, value) in [(W[0], 1), (W[1], 1), (W[0], 2), (W[1], 2)] {
            store(&mut versions, &mut view, word, value);
        }
        let mut all = images(&versions);
        all.sort_unstable();
        let held = (0..9).map(|number| [number / 3, number % 3, 0]);
        assert!(held.eq(all.iter().copied()), "{all:?}");
    }

    /// With energy for one line of the caches the first is there, and with energy for all of them
    /// every one, but for what is in write-combining buffers.
    #[test]
    fn what_the_machine_has_energy_for_is_there() {
        let held = |saved, combined: Option<usize>| {
            let (mut versions, mut view) = (Versions::new(1, saved), view());
            for (place, word) in W.into_iter().enumerate() {
                let old = view.set_word(word, 1);
                versions.stored(word, old, combined == Some(place), &view);
            }
            let mut images = images(&versions);
            images.sort_unstable();
            images
        };
        // An image begins with what is saved, which the durable bytes of this test have not.
        assert_eq!(held(1, None), [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]]);
        assert_eq!(held(2, None), [[0, 0, 0], [0, 0, 1]]);
        assert!(held(3, None).is_empty());
        assert_eq!(held(2, Some(0)), [[0, 0, 0], [1, 0, 0]]);
        assert_eq!(held(1, Some(0)), [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]]);
    }

    /// Where stores survive, a line may hold what it did before a store past the caches, until that
    /// store's core does a fence or the line is stored to again.
    #[test]
    fn where_stores_survive_those_past_the_caches_need_a_fence() {
        let (mut versions, mut view) = (Versions::new(2, ALL), view());
        let mut stored = |versions: &mut Versions, place: usize, value, by: Option<CoreId>| {
            let old = view.set_word(W[place], value);
            versions.stored(W[place], old, by.is_some(), &view);
            if let Some(core) = by {
                versions.flush(core, W[place].line());
            }
            let mut held: Vec<u64> = images(versions).iter().map(|words| words[place]).collect();
            held.sort_unstable();
            held
        };
        assert!(stored(&mut versions, 0, 1, None).is_empty());
        assert_eq!(stored(&mut versions, 0, 2, Some(A)), [1, 2]);
        assert!(stored(&mut versions, 0, 3, None).is_empty());
        // The fence of A, which was to make 2 durable, says nothing of what B stores.
        assert_eq!(stored(&mut versions, 0, 4, Some(B)), [3, 4]);
        for (core, left) in [(A, 2), (B, 0)] {
            versions.fenced(core);
            assert_eq!(images(&versions).len(), left);
        }
    }

    #[test]
    fn of_many_versions_the_newest_and_the_one_that_a_fence_waits_for_stay() {
        let (mut versions, mut view) = (Versions::new(1, 0), view());
        for value in 1..=KEPT as u64 {
            store(&mut versions, &mut view, W[0], value);
            if value == 10 {
                versions.flush(A, W[0].line());
            }
        }
        assert!(versions.lines[&W[0].line()].open.len() < KEPT);
        versions.fenced(A);
        let held = images(&versions);
        assert_eq!(held[..2], [[KEPT as u64, 0, 0], [10, 0, 0]]);
        assert!(held.iter().all(|words| words[0] >= 10), "{held:?}");
    }

    /// If there are more images than are made, those with everything, with nothing, with all lines
    /// but one and with one line alone are among them.
    #[test]
    fn of_many_lines_one_may_be_missing_or_alone() {
        let (mut versions, mut view) = (Versions::new(1, 0), view());
        for value in 1..=3 {
            W.iter().for_each(|&word| store(&mut versions, &mut view, word, value));
        }
        let held = images(&versions);
        assert_eq!((held.len() as u64, held[0], held[1]), (IMAGES, [3; 3], [0; 3]));
        let like = |words: &[u64; 3], value| words.iter().filter(|held| **held == value).count();
        assert!(held[2..7].iter().all(|words| like(words, 3) == 2), "{held:?}");
        assert!(held[7..12].iter().all(|words| like(words, 0) == 2), "{held:?}");
    }
}
