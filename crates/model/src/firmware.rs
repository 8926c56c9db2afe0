//! What a crash campaign asks of a design once the power is back. It asks for each image, and never
//! while programs run: what a design is does not matter there, and campaigns are compiled once.

use crate::design::{Design, Model, Setup, Shape, Structure};
use crate::image::{Image, Placement, PowerLoss};

/// A design's hooks without `self`, on one machine.
pub trait Firmware {
    /// The machine.
    fn shape(&self) -> &Shape;
    /// What order of stores is promised ([`Design::model`]).
    fn model(&self) -> Option<Model>;
    /// What is added to the hardware ([`Design::hardware`]).
    fn hardware(&self) -> Vec<Structure>;
    /// See [`Design::recover`].
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    fn recover(&self, image: &mut Image<'_>) -> Result<(), PowerLoss>;
    /// What [`Design::boot`] writes.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    fn boot(&self, image: &mut Image<'_>) -> Result<(), PowerLoss>;
    /// Where lines lie once recovery is done ([`Design::resolve`]), if the design decides that.
    ///
    /// # Errors
    /// A sentence that says how what survived contradicts itself.
    fn resolve(&self, image: &Image<'_>) -> Result<Option<Placement>, String>;
}

/// What is fixed before power is first applied, for as long as whoever asks lives.
#[derive(Debug)]
pub struct Fixed<D: Design> {
    /// The design's parameters.
    pub params: D::Params,
    /// The rules that it obeys.
    pub rules: D::Rules,
    /// The machine.
    pub shape: Shape,
}

impl<D: Design> Fixed<D> {
    /// The same, as hooks are given it.
    pub fn setup(&self) -> Setup<'_, D> {
        Setup { params: &self.params, rules: &self.rules, shape: &self.shape }
    }
}

impl<D: Design> Firmware for Fixed<D> {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn model(&self) -> Option<Model> {
        D::model(&self.params)
    }

    fn hardware(&self) -> Vec<Structure> {
        D::hardware(&self.setup())
    }

    fn recover(&self, image: &mut Image<'_>) -> Result<(), PowerLoss> {
        D::recover(image, &self.setup())
    }

    fn boot(&self, image: &mut Image<'_>) -> Result<(), PowerLoss> {
        D::boot(image, &self.setup()).map(drop)
    }

    fn resolve(&self, image: &Image<'_>) -> Result<Option<Placement>, String> {
        match D::TRANSLATES {
            true => D::resolve(image, &self.setup()).map(Some),
            false => Ok(None),
        }
    }
}
