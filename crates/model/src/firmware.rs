//! What a crash campaign asks of a design once the power is back. It asks for each image, and never
//! while programs run, so it need not know the design's type, and campaigns are compiled once.

use crate::design::{Design, Model, Setup, Shape, Structure, System};
use crate::image::{Image, Placement, PowerLoss};

/// A design's hooks without `self`, on one machine.
pub trait Firmware {
    /// The machine.
    fn shape(&self) -> &Shape;
    /// The order of stores that is promised ([`Design::ordering`]).
    fn model(&self) -> Option<Model>;
    /// Whether every rule is on: if not, the design is a mutant.
    fn obeys_every_rule(&self) -> bool;
    /// The structures that are added to the hardware ([`Design::hardware`]).
    fn hardware(&self) -> Vec<Structure>;
    /// See [`Design::recover`].
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    fn recover(&self, image: &mut Image<'_>) -> Result<(), PowerLoss>;
    /// Has [`Design::boot`] write to an image.
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

/// What is fixed before power is first applied, for as long as hooks are called.
#[derive(Debug)]
pub struct Fixed<S: System> {
    /// The design's parameters.
    pub params: S::Params,
    /// The rules that it obeys.
    pub rules: S::Rules,
    /// The machine.
    pub shape: Shape,
}

impl<S: System> Fixed<S> {
    /// The same, as hooks receive it.
    pub fn setup(&self) -> Setup<'_, S> {
        Setup { params: &self.params, rules: &self.rules, shape: &self.shape }
    }

    /// The hardware's part of that.
    pub fn of_hardware(&self) -> Setup<'_, S::Hardware> {
        S::of_hardware(&self.setup())
    }
}

impl<S: System> Firmware for Fixed<S> {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn model(&self) -> Option<Model> {
        S::Hardware::ordering(self.of_hardware().params).model
    }

    fn obeys_every_rule(&self) -> bool {
        self.rules == S::Rules::default()
    }

    fn hardware(&self) -> Vec<Structure> {
        S::Hardware::hardware(&self.of_hardware())
    }

    fn recover(&self, image: &mut Image<'_>) -> Result<(), PowerLoss> {
        S::recover(image, &self.setup())
    }

    fn boot(&self, image: &mut Image<'_>) -> Result<(), PowerLoss> {
        S::boot(image, &self.setup()).map(drop)
    }

    fn resolve(&self, image: &Image<'_>) -> Result<Option<Placement>, String> {
        match S::Hardware::TRANSLATES {
            true => S::Hardware::resolve(image, &self.of_hardware()).map(Some),
            false => Ok(None),
        }
    }
}
