//! Which recovered images of a campaign are kept, so that machines can boot from them.

use crate::firmware::Firmware;
use crate::image::{Cut, Image, PowerLoss, Remains};

use crate::units::mix;

use super::nested::{depends, recover_to_the_end};

/// Keeps a number of images, chosen evenly among the crash points as they pass: how many there will
/// be is not known beforehand.
pub struct Keeper {
    most: usize,
    seed: u64,
    /// Whether the power cuts some recoveries short, too.
    nested: bool,
    /// The images, each with the rank of its crash point, the lowest first. The points with the
    /// lowest ranks are kept.
    kept: Vec<(u64, Remains)>,
}

/// An image that is to be kept: its crash point, the rank of that, from which the rest follows, and
/// the number of the image among those of the point.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    rank: u64,
    point: u64,
    order: u64,
}

impl Keeper {
    /// Keeps no more than `most` images; the seed says which. If `nested`, some are of a recovery
    /// that the power cut short.
    pub fn new(most: usize, seed: u64, nested: bool) -> Keeper {
        Keeper { most, seed: mix(seed ^ 0x6b65_6570), nested, kept: Vec::new() }
    }

    /// Returns which image of a crash point is to be kept, if any: the one of a drawn number below
    /// `orders`, or the last one if there are fewer.
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
            // A placement that contradicts itself was reported when the image was checked.
            Err(_) => return Ok(()),
        }
        let remains = recovered.remains(Cut { point: chosen.point, order, nested });
        self.kept.truncate(self.most - 1);
        let place = self.kept.partition_point(|(rank, _)| *rank < chosen.rank);
        self.kept.insert(place, (chosen.rank, remains));
        Ok(())
    }

    /// Returns the images that were kept, in the order of the crash points.
    pub fn kept(self) -> Vec<Remains> {
        let mut kept: Vec<Remains> = self.kept.into_iter().map(|(_, remains)| remains).collect();
        kept.sort_by_key(|remains| remains.cut.point);
        kept
    }
}

impl Chosen {
    /// Whether the image of this order may be the one that is kept: that of the chosen order, or of
    /// the last one before it if there are fewer.
    pub fn may_be(&self, order: u64) -> bool {
        order <= self.order
    }
}
