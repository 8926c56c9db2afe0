//! Which recovered images of a campaign are kept, so that machines can boot from them.

use crate::firmware::Firmware;
use crate::image::{Cut, Image, PowerLoss, Remains};

use crate::units::mix;

use super::nested::{depends, recover_to_the_end};

/// So many images, chosen evenly among the crash points as they pass, of which nobody knows how
/// many there will be.
pub struct Keeper {
    most: usize,
    seed: u64,
    /// Whether recovery is cut short, too.
    nested: bool,
    /// With the rank of each, the lowest first. A point is kept whose rank is among the lowest.
    kept: Vec<(u64, Remains)>,
}

/// An image that is to be kept: a point's rank, from which the rest follows, and the order of the
/// writes under way.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    rank: u64,
    point: u64,
    order: u64,
}

impl Keeper {
    /// Keeps no more than `most`; which ones follows from the seed. If `nested`, some are of a
    /// recovery that the power cut short.
    pub fn new(most: usize, seed: u64, nested: bool) -> Keeper {
        Keeper { most, seed: mix(seed ^ 0x6b65_6570), nested, kept: Vec::new() }
    }

    /// Whether an image of a crash point is to be kept: of its orders, of which there are up to
    /// `orders`, none beyond the one that is named here.
    pub fn choose(&self, point: u64, orders: u64) -> Option<Chosen> {
        let rank = mix(self.seed ^ point);
        let is_low = self.kept.len() < self.most || self.kept.last()?.0 > rank;
        (self.most > 0 && is_low).then_some(Chosen { rank, point, order: mix(rank) % orders })
    }

    /// Recovers an image that was chosen, half of the time after a recovery that the power cut
    /// short, and keeps it.
    ///
    /// # Errors
    /// A sentence, when recovery goes wrong.
    pub fn keep(
        &mut self,
        chosen: Chosen,
        order: u64,
        image: &Image<'_>,
        firmware: &dyn Firmware,
    ) -> Result<(), String> {
        let mut recovered = image.clone().powered();
        recover_to_the_end(&mut recovered, firmware)?;
        let writes = recovered.writes();
        let is_cut_short = self.nested && writes > 0 && chosen.rank & 1 == 1;
        let nested = is_cut_short.then(|| mix(!chosen.rank) % writes);
        if let Some(writes) = nested {
            recovered = image.failing_after(writes);
            if firmware.recover(&mut recovered) != Err(PowerLoss) {
                return Err(depends("recover"));
            }
            recovered = recovered.powered();
            recover_to_the_end(&mut recovered, firmware)?;
        }
        match firmware.resolve(&recovered) {
            Ok(Some(placement)) => recovered.see_through(placement),
            Ok(None) => (),
            // What contradicts itself was reported when it was checked.
            Err(_) => return Ok(()),
        }
        let remains = recovered.remains(Cut { point: chosen.point, order, nested });
        self.kept.truncate(self.most - 1);
        let place = self.kept.partition_point(|(rank, _)| *rank < chosen.rank);
        self.kept.insert(place, (chosen.rank, remains));
        Ok(())
    }

    /// What was kept, in the order of the crash points.
    pub fn kept(self) -> Vec<Remains> {
        let mut kept: Vec<Remains> = self.kept.into_iter().map(|(_, remains)| remains).collect();
        kept.sort_by_key(|remains| remains.cut.point);
        kept
    }
}

impl Chosen {
    /// Whether an order is the one to be kept, or comes before it and is it if there are no more.
    pub fn may_be(&self, order: u64) -> bool {
        order <= self.order
    }
}
