//! Which of what could have arrived early has, in one image after the other.

use crate::units::mix;

/// Which of the writes that could have arrived early have: one answer after the other.
pub struct Choices {
    kind: Kind,
    /// The answers of this image that are known before they are asked for, if every one is tried.
    given: Vec<bool>,
    /// How many have been asked for in this image.
    asked: usize,
}

/// How answers are found.
enum Kind {
    /// Nothing has arrived early.
    None,
    /// Every combination of answers in turn.
    Every,
    /// By chance, from a seed.
    Random(u64),
}

impl Choices {
    /// Nothing has arrived early.
    pub fn none() -> Choices {
        Choices { kind: Kind::None, given: Vec::new(), asked: 0 }
    }

    /// Every combination, one image after the other.
    pub fn every() -> Choices {
        Choices { kind: Kind::Every, given: Vec::new(), asked: 0 }
    }

    /// Whether the next one has arrived.
    pub fn arrived(&mut self) -> bool {
        let index = self.asked;
        self.asked += 1;
        match self.kind {
            Kind::None => false,
            Kind::Every => {
                if index == self.given.len() {
                    self.given.push(false);
                }
                self.given[index]
            }
            Kind::Random(seed) => mix(seed ^ index as u64) & 1 == 1,
        }
    }

    /// Goes on to other answers; whether there are none.
    pub fn next(&mut self, seed: u64) -> bool {
        let asked = std::mem::take(&mut self.asked);
        let Kind::Every = self.kind else {
            self.kind = Kind::Random(seed);
            return asked == 0;
        };
        // What follows the last `no` has been tried both ways.
        while self.given.pop_if(|given| *given).is_some() {}
        match self.given.last_mut() {
            Some(last) => *last = true,
            None => return true,
        }
        false
    }

    /// Goes on to answers by chance.
    pub fn at_random(&mut self, seed: u64) -> bool {
        self.asked = 0;
        self.kind = Kind::Random(seed);
        false
    }
}
