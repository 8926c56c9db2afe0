//! The power fails again: during recovery, and while a machine boots.

use crate::design::{Design, Model, Setup};
use crate::image::{Image, PowerLoss, Remembered};
use crate::units::{Cycle, Line, LineMap, mix};

use super::{Booted, Points, Probe};

/// How recovery, or booting, was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Again {
    /// After so many of its writes.
    pub(super) writes: u64,
    /// Which of the images it is that this may leave: in 0 all of them are there.
    pub(super) order: u64,
}

/// What writes to an image, and may be interrupted.
type Writer<'s, D> = fn(&mut Image<'_>, &Setup<'s, D>) -> Result<(), PowerLoss>;

impl Probe {
    /// A machine booted from an image: checks that this changed no data, cuts the power at each
    /// write that it took, if the campaign cuts it during recovery, and checks what recovery makes
    /// of that.
    pub fn boot<D: Design>(&mut self, booted: &Booted, setup: &Setup<'_, D>) {
        if self.campaign.points == Points::Count {
            return;
        }
        if let Some(word) = booted.damaged {
            let text = format!("booting changed the word at {:#x}, which is data", word.address());
            self.report(Cycle(0), None, text, None);
        }
        if self.campaign.nested {
            let boot: Writer<'_, D> = |image, setup| D::boot(image, setup).map(drop);
            self.interrupt(Cycle(0), &Image::over(&booted.before), &booted.writes, boot, setup);
        }
    }

    /// The power is back; and, if the campaign says so, it fails again at each write of recovery.
    pub(super) fn recover<D: Design>(&mut self, at: Cycle, image: Image<'_>, setup: &Setup<'_, D>) {
        let nested = self.campaign.nested;
        let mut recovered = if nested { image.remembering() } else { image.clone() };
        D::recover(&mut recovered, setup).expect("the power does not fail");
        let writes = recovered.take_remembered();
        self.check_recovered::<D>(at, None, recovered, setup);
        if !self.is_done() {
            self.interrupt(at, &image, &writes, D::recover, setup);
        }
    }

    /// What wrote this to an image is interrupted after each of its writes, and with those since
    /// its last fence in other orders; then comes recovery.
    fn interrupt<'s, D: Design>(
        &mut self,
        at: Cycle,
        image: &Image<'_>,
        writes: &[Remembered],
        writer: Writer<'s, D>,
        setup: &Setup<'s, D>,
    ) {
        // What is left after so many of its writes does not take another run to know. One is made
        // all the same, to see that it is deterministic.
        let seed = mix(self.campaign.seed ^ self.passed ^ self.order << 48);
        let really = seed % (writes.len() as u64).max(1);
        let mut left = image.clone();
        let mut issued = 0;
        for epoch in writes.chunk_by(|one, next| one.epoch == next.epoch) {
            let before = is_open(epoch, setup).then(|| left.clone());
            for write in epoch {
                if issued == really {
                    let mut again = image.failing_after(issued);
                    assert_eq!(writer(&mut again, setup), Err(PowerLoss), "the power fails");
                    assert!(again.equals(&left), "recovery and booting are deterministic");
                }
                self.recover_again(at, Again { writes: issued, order: 0 }, left.clone(), setup);
                left.write_again(write);
                issued += 1;
            }
            if let Some(before) = before {
                let drawn = mix(seed ^ mix(epoch[0].epoch));
                for (order, arrived) in (1..).zip(out_of_order(epoch, drawn)) {
                    let mut overtaken = before.clone();
                    arrived.into_iter().for_each(|write| overtaken.write_again(write));
                    self.recover_again(at, Again { writes: issued, order }, overtaken, setup);
                }
            }
        }
    }

    /// Recovers what an interruption left, and checks it.
    fn recover_again<D: Design>(
        &mut self,
        at: Cycle,
        again: Again,
        mut image: Image<'_>,
        setup: &Setup<'_, D>,
    ) {
        self.nested_points += 1;
        D::recover(&mut image, setup).expect("the power does not fail");
        self.check_recovered::<D>(at, Some(again), image, setup);
    }
}

/// Whether the writes of an epoch may become durable in another order than theirs: those of one
/// line do not, nor do stores that are durable when they are visible.
fn is_open<D: Design>(epoch: &[Remembered], setup: &Setup<'_, D>) -> bool {
    let is_ordered = setup.shape.caches_survive() || D::model(setup.params) == Some(Model::Visible);
    !is_ordered && epoch.iter().any(|write| write.line != epoch[0].line)
}

/// Two of the ways in which an epoch's writes may have arrived when the power fails: all but those
/// of one line, which is what finds a mark without what it stands for; and of each line the first
/// few. Of one line an older write is always there before a newer one.
pub(super) fn out_of_order(epoch: &[Remembered], seed: u64) -> [Vec<&Remembered>; 2] {
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
    [
        epoch.iter().filter(|write| write.line != late).collect(),
        epoch.iter().filter(first_few).collect(),
    ]
}
