//! What a power failure leaves, before recovery.

use rustc_hash::FxHashSet;

use crate::config::Domain;
use crate::controller::Notify;
use crate::design::{Below, Design, Gasp};
use crate::device::Write;
use crate::image::{Image, PowerLoss, apply_masked};
use crate::oracle::Early;
use crate::units::{Cycle, Line, LineMap, mix, spread};

use super::Saved;
use super::choices::Choices;

/// Which of the writes under way have arrived in an image.
pub struct Arrivals<'c> {
    /// Asked about each of them that may have.
    pub choices: &'c mut Choices,
    /// Those that have.
    pub early: &'c mut Vec<Early>,
    /// The number of those that cannot have.
    pub untried: &'c mut u64,
}

/// Cuts the power and returns what is left before recovery: all that the design saves, or, on a
/// machine with less energy than the design declares, as much as the energy is enough for.
///
/// # Errors
/// A sentence, when the design needs more energy than it declared, or raises.
pub fn fail<'i, D: Design>(
    at: Cycle,
    design: &D,
    below: &'i Below<D::Event>,
    combining: &[Write],
    saved: &mut Saved,
    seed: u64,
    Arrivals { choices, early, untried }: Arrivals<'_>,
) -> Result<Image<'i>, String> {
    let declared = saved.declared;
    let mut image = Image::over(below.memory.durable());
    let is_media = below.shape.config.controller.domain == Domain::Media;
    // A write that the cells are in the middle of is older than any that arrives early.
    if is_media {
        tear(at, below, &mut image, seed, choices);
    }
    // If nothing of the design survives, what it does when it is told of a write does not survive
    // either.
    let is_unheard = |notify: &Notify<D::Event>| match notify {
        Notify::Design(event) => declared == 0 || !design.hears_at_once(event),
        _ => true,
    };
    // A write-combining buffer may be sent at any time, except on hardware that brings stores to
    // memory itself, where it sends nothing.
    let combining = if design.brings_stores() { &[] } else { combining };
    let located: Vec<Write> =
        combining.iter().map(|write| Write { line: design.locate(write.line), ..*write }).collect();
    let mut under_way = below.memory.under_way(&is_unheard);
    *untried = under_way.iter().filter(|(_, may_have)| !may_have).count() as u64;
    under_way.extend(located.iter().map(|write| (write, true)));
    arrive_early(under_way, is_media, &mut image, choices, early);
    for write in design.could_be_durable(below, &mut || choices.arrived()) {
        image.set_line(write.line, &write.data, write.mask).expect("the power is on");
        early.extend(Early::of(&write));
    }
    if below.shape.caches_survive() {
        save_caches(design, below, &mut image);
    }
    let mut gasp = Gasp::new(&mut image, at, saved.energy);
    let done = design.power_loss(&mut gasp);
    saved.most = saved.most.max(gasp.saved);
    if let Some(text) = image.raised() {
        return Err(text.to_owned());
    }
    match done {
        Ok(()) => Ok(image),
        Err(PowerLoss) if saved.energy < declared => {
            saved.short += 1;
            Ok(image)
        }
        Err(PowerLoss) => Err(format!(
            "energy: the design saves more than the {declared} bytes that it declares to survive"
        )),
    }
}

/// Has some of the writes under way arrive: the first few of each line, of which the last may be
/// there in some of its words where cells have to hold it. Writes that cannot have arrived, since
/// the design would have heard of it, are not asked about.
pub(super) fn arrive_early(
    under_way: Vec<(&Write, bool)>,
    is_media: bool,
    image: &mut Image<'_>,
    choices: &mut Choices,
    early: &mut Vec<Early>,
) {
    let mut stopped: FxHashSet<Line> = FxHashSet::default();
    for (write, may_have) in under_way {
        if stopped.contains(&write.line) {
            continue;
        }
        if !may_have || !choices.arrived() {
            stopped.insert(write.line);
            continue;
        }
        let there = if is_media { choices.torn(new_words(image, write)) } else { u64::MAX };
        let part = Write { mask: write.mask & there, ..write.clone() };
        if part.mask != write.mask {
            stopped.insert(write.line);
        }
        image.set_line(part.line, &part.data, part.mask).expect("the power is on");
        early.extend(Early::of(&part));
    }
}

/// Leaves some of the words of each write that the cells were in the middle of.
fn tear<E: Copy>(
    at: Cycle,
    below: &Below<E>,
    image: &mut Image<'_>,
    seed: u64,
    choices: &mut Choices,
) {
    for write in below.memory.being_programmed(at) {
        let any = || spread(mix(seed ^ mix(write.line.0)) as u8);
        let there = choices.some_of(new_words(image, write)).unwrap_or_else(any);
        image.set_line(write.line, &write.data, write.mask & there).expect("the power is on");
    }
}

/// Returns the words of a line, one bit a word, that a write would change.
fn new_words(image: &Image<'_>, write: &Write) -> u8 {
    let before = *image.line(write.line);
    let mut after = before;
    apply_masked(&mut after, &write.data, write.mask);
    let words = before.as_chunks::<8>().0.iter().zip(after.as_chunks::<8>().0);
    words.enumerate().fold(0, |all, (place, (old, new))| all | u8::from(old != new) << place)
}

/// Saves, with the energy left, what the queues before memory and then the caches hold: the lines
/// with the lowest addresses, as far as the energy goes. What is enough for every cache is enough
/// for the lines that have just left one, too. Write-combining buffers are no caches.
fn save_caches<D: Design>(design: &D, below: &Below<D::Event>, image: &mut Image<'_>) {
    let is_of_caches = |notify: &Notify<D::Event>| !matches!(notify, Notify::Combining(_));
    let under_way = below.memory.under_way(&is_of_caches).into_iter();
    let under_way: Vec<&Write> =
        under_way.filter_map(|(write, is_saved)| is_saved.then_some(write)).collect();
    let dirty = below.caches.dirty_lines().into_iter();
    let saved = dirty.filter(|&line| line.is_persistent() && !design.leaves_behind(line));
    // The line whose bytes each physical line is to hold.
    let newest: LineMap<Line> = saved.map(|line| (design.locate(line), line)).collect();
    let mut lines: Vec<Line> =
        under_way.iter().map(|write| write.line).chain(newest.keys().copied()).collect();
    lines.sort_unstable();
    lines.dedup();
    if !below.shape.every_cache_survives() {
        lines.truncate(below.shape.lines_saved() as usize);
    }
    for write in under_way {
        if lines.binary_search(&write.line).is_ok() {
            image.set_line(write.line, &write.data, write.mask).expect("the power is on");
        }
    }
    for line in lines {
        if let Some(&of) = newest.get(&line) {
            image.set_line(line, &below.line(of), u64::MAX).expect("the power is on");
        }
    }
}
