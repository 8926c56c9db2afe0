//! The power fails again: during recovery, and while a machine boots.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use crate::config::Domain;
use crate::design::Model;
use crate::firmware::Firmware;
use crate::image::{Image, PowerLoss, Remembered};
use crate::units::{Cycle, Line, LineMap, mix, spread};

use super::choices;
use super::{Booted, Points, Probe};

/// How recovery, or booting, was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Again {
    /// How many of its writes had been issued.
    pub(super) writes: u64,
    /// The number of the image among those that this may leave: in 0 all of those writes are there,
    /// and in [`TORN`] some words of the next one, too.
    pub(super) order: u64,
}

/// The image in which some words of the write that the power cut short are there.
pub(super) const TORN: u64 = 3;

/// A hook that writes to an image and may be interrupted: its name, and a call of it.
type Writer = (&'static str, fn(&dyn Firmware, &mut Image<'_>) -> Result<(), PowerLoss>);

const BOOT: Writer = ("boot", |firmware, image| firmware.boot(image));
const RECOVER: Writer = ("recover", |firmware, image| firmware.recover(image));

impl Probe {
    /// Checks what booting from an image did: that it changed no data, and, if the campaign cuts
    /// the power during recovery, what recovery makes of each interruption of booting.
    pub fn boot(&mut self, booted: &Booted) {
        if self.campaign.points == Points::Count {
            return;
        }
        if let Some(word) = booted.damaged {
            let text = format!("booting changed the word at {:#x}, which is data", word.address());
            self.report(Cycle(0), None, text, None);
        }
        if self.campaign.nested {
            let image = Image::over(&booted.before);
            self.interrupt(Cycle(0), &image, (&booted.writes, None), BOOT);
        }
    }

    /// Recovers and checks an image after the power is back. If the campaign says so, the power
    /// fails again at each write of recovery.
    pub(super) fn recover(&mut self, at: Cycle, image: Image<'_>) {
        let is_timely = self.order == 0;
        if !self.campaign.nested && !is_timely {
            // What this recovery reads and writes is not counted, and noting it takes as long
            // again.
            let mut recovered = image.powered();
            if let Err(text) = recover_to_the_end(&mut recovered, &*self.firmware) {
                return self.report(at, None, text, None);
            }
            return self.check_recovered(at, None, recovered);
        }
        let mut recovered = image.remembering().noting_reads();
        if let Err(text) = recover_to_the_end(&mut recovered, &*self.firmware) {
            return self.report(at, None, text, None);
        }
        let (reads, writes) = (recovered.take_reads(), recovered.take_remembered());
        if is_timely {
            let written: FxHashSet<Line> = writes.iter().map(|write| write.line).collect();
            self.found.recovery.add(reads.count_lines(), written.len() as u64);
        }
        if !self.campaign.nested {
            return self.check_recovered(at, None, recovered);
        }
        let seen = reads.see(&image, &writes);
        let found = self.found.violations.len();
        self.check_recovered(at, None, recovered);
        // If this recovery was wrong, one that is interrupted may be, too: nothing is known of it.
        let seen = (self.found.violations.len() == found).then_some(&seen[..]);
        if !self.is_done() {
            self.interrupt(at, &image, (&writes, seen), RECOVER);
        }
    }

    /// Interrupts the hook that made these writes to an image after each of them, and with those
    /// since its last fence in other orders; recovery follows each interruption.
    ///
    /// If the hook was recovery itself, `seen` says which of its writes it would have seen
    /// ([`Reads::see`](crate::image::Reads::see)). An interruption that leaves none of these ends
    /// with the image that was right without it, so it need not be recovered.
    fn interrupt(
        &mut self,
        at: Cycle,
        image: &Image<'_>,
        (writes, seen): (&[Remembered], Option<&[bool]>),
        (hook, writer): Writer,
    ) {
        let firmware = Rc::clone(&self.firmware);
        let firmware = &*firmware;
        let is_seen = |write: &Remembered| seen.is_none_or(|seen| seen[write.number as usize]);
        let seed = mix(self.campaign.seed ^ self.found.passed ^ self.order << 48);
        // What an interruption leaves is known without another run. For one image in four, and for
        // each without `seen`, one interruption is run to check that.
        let is_audited = seen.is_none() || seed >> 62 == 0;
        let audited = is_audited.then(|| seed % (writes.len() as u64).max(1));
        let (mut left, mut is_known) = (image.clone(), seen.is_some());
        for epoch in writes.chunk_by(|one, next| one.epoch == next.epoch) {
            if self.is_done() {
                return;
            }
            let before = is_open(epoch, firmware).then(|| (left.clone(), is_known));
            for write in epoch {
                let issued = write.number;
                let again = Again { writes: issued, order: 0 };
                if audited == Some(issued) {
                    let mut cut = image.failing_after(issued);
                    let is_cut = writer(firmware, &mut cut) == Err(PowerLoss);
                    if let Some(text) = cut.raised() {
                        return self.report(at, Some(again), text.to_owned(), None);
                    }
                    if !is_cut || !cut.equals(&left) {
                        return self.report(at, Some(again), depends(hook), None);
                    }
                    if is_known && !ends_as_known(&left, image, writes, firmware) {
                        return self.report(at, Some(again), depends("recover"), None);
                    }
                }
                self.recover_again(at, again, &left, is_known);
                if let Some(part) = torn(write, seed, firmware) {
                    let (again, mut torn) = (Again { order: TORN, ..again }, left.clone());
                    torn.write_in_part(write, part);
                    self.recover_again(at, again, &torn, is_known && !is_seen(write));
                }
                left.write_again(write);
                is_known &= !is_seen(write);
            }
            let Some((before, was_known)) = before else { continue };
            let issued = epoch[0].number + epoch.len() as u64;
            let drawn = mix(seed ^ mix(epoch[0].epoch));
            for (order, arrived) in (1..).zip(out_of_order(epoch, drawn, is_media(firmware))) {
                let is_known = was_known && !arrived.iter().any(|(write, _)| is_seen(write));
                let mut overtaken = before.clone();
                arrived
                    .into_iter()
                    .for_each(|(write, there)| overtaken.write_in_part(write, there));
                let again = Again { writes: issued, order };
                if is_audited && is_known && !ends_as_known(&overtaken, image, writes, firmware) {
                    return self.report(at, Some(again), depends("recover"), None);
                }
                self.recover_again(at, again, &overtaken, is_known);
            }
        }
    }

    /// Recovers what an interruption left and checks the result, unless that is known to be right.
    fn recover_again(&mut self, at: Cycle, again: Again, left: &Image<'_>, is_known: bool) {
        self.found.nested_points += 1;
        if !is_known {
            let mut image = left.clone().powered();
            if let Err(text) = recover_to_the_end(&mut image, &*self.firmware) {
                return self.report(at, Some(again), text, None);
            }
            self.check_recovered(at, Some(again), image);
        }
    }
}

/// Recovers an image whose power does not fail.
///
/// # Errors
/// A sentence, when recovery does not end, or raises an error.
pub(super) fn recover_to_the_end(
    image: &mut Image<'_>,
    firmware: &dyn Firmware,
) -> Result<(), String> {
    let done = firmware.recover(image);
    if let Some(text) = image.raised() {
        return Err(text.to_owned());
    }
    if let Some(what) = image.endless() {
        return Err(format!("liveness: recovery does not end: `recover` makes {what}"));
    }
    done.expect("the power does not fail");
    Ok(())
}

/// The sentence for a hook that does something else when it is called again with the same bytes.
pub(super) fn depends(hook: &str) -> String {
    format!("determinism: `{hook}` depends on something besides the image")
}

/// Whether recovery of what an interruption left ends with the image that it is known to end with.
fn ends_as_known(
    left: &Image<'_>,
    image: &Image<'_>,
    writes: &[Remembered],
    firmware: &dyn Firmware,
) -> bool {
    let (mut again, mut known) = (left.clone().powered(), image.clone());
    writes.iter().for_each(|write| known.write_again(write));
    recover_to_the_end(&mut again, firmware).is_ok() && again.equals(&known)
}

/// Returns which bytes of a write that the cells are in the middle of are there, if it can be torn:
/// those of any of its words.
fn torn(write: &Remembered, seed: u64, firmware: &dyn Firmware) -> Option<u64> {
    let is_torn = is_media(firmware) && write.has_words();
    is_torn.then(|| spread(mix(seed ^ mix(write.number)) as u8))
}

/// Whether a write is durable when the cells hold it, and so may be there in part.
fn is_media(firmware: &dyn Firmware) -> bool {
    firmware.shape().config.controller.domain == Domain::Media
}

/// Whether the writes of an epoch may become durable in another order than theirs. The writes of
/// one line may not, nor may stores that are durable when they are visible.
fn is_open(epoch: &[Remembered], firmware: &dyn Firmware) -> bool {
    let is_ordered =
        firmware.shape().every_cache_survives() || firmware.model() == Some(Model::Visible);
    !is_ordered && epoch.iter().any(|write| write.line != epoch[0].line)
}

/// Returns two of the ways in which an epoch's writes may have arrived when the power fails, each
/// with the bytes of each write that are there. In the first way all have arrived but those of one
/// line, which finds a mark without what it stands for; in the second, the first few of each line.
/// An older write of a line is always there before a newer one. Where cells have to hold the
/// writes, the last one of a line may be there in part.
pub(super) fn out_of_order(
    epoch: &[Remembered],
    seed: u64,
    is_media: bool,
) -> [Vec<(&Remembered, u64)>; 2] {
    let mut lines: Vec<Line> = epoch.iter().map(|write| write.line).collect();
    lines.sort_unstable();
    let mut left: LineMap<u64> = LineMap::default();
    for of_line in lines.chunk_by(|one, next| one == next) {
        let drawn = mix(seed ^ mix(of_line[0].0)) % (of_line.len() as u64 + 1);
        left.insert(of_line[0], drawn);
    }
    lines.dedup();
    let late = lines[(seed % lines.len() as u64) as usize];
    let first_few = |write: &&Remembered| {
        let left = left.get_mut(&write.line).expect("each line has its part");
        let arrived = *left > 0;
        *left = left.saturating_sub(1);
        arrived
    };
    let arrived: [Vec<&Remembered>; 2] = [
        epoch.iter().filter(|write| write.line != late).collect(),
        epoch.iter().filter(first_few).collect(),
    ];
    arrived.map(|writes| in_part(&writes, !seed, is_media))
}

/// Pairs each write with the bytes of it that are there: those of some words for the last write of
/// a line, if cells may be in the middle of it and chance has it so, and otherwise all.
fn in_part<'w>(writes: &[&'w Remembered], seed: u64, is_media: bool) -> Vec<(&'w Remembered, u64)> {
    let last: LineMap<u64> = writes.iter().map(|write| (write.line, write.number)).collect();
    let there = |write: &&'w Remembered| {
        let may_be_torn = is_media && write.has_words() && last[&write.line] == write.number;
        let drawn = may_be_torn.then(|| choices::torn(mix(seed ^ mix(write.number))));
        (*write, drawn.unwrap_or(u64::MAX))
    };
    writes.iter().map(there).collect()
}
