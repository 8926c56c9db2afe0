//! Which of what could have arrived early has, in one image after the other.

use crate::units::{mix, spread};

/// Which of the writes that could have arrived early have: one answer after the other.
pub struct Choices {
    kind: Kind,
    /// The answers of this image that are known before they are asked for, if every one is tried.
    given: Vec<bool>,
    /// How many have been asked for in this image.
    asked: usize,
    /// Those of this image: the bytes that are there, one bit a byte.
    answers: Vec<u64>,
    /// Those of the images before it that were asked about.
    before: Vec<Vec<u64>>,
}

/// One in so many writes that the cells may be in the middle of is torn (ours: often enough to be
/// met in every campaign, and most lines are whole, so that what depends on several is).
const TORN: u64 = 4;

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
        Choices::of(Kind::None)
    }

    /// Every combination, one image after the other.
    pub fn every() -> Choices {
        Choices::of(Kind::Every)
    }

    fn of(kind: Kind) -> Choices {
        Choices { kind, given: Vec::new(), asked: 0, answers: Vec::new(), before: Vec::new() }
    }

    /// Whether the next one has arrived.
    pub fn arrived(&mut self) -> bool {
        let index = self.asked;
        self.asked += 1;
        let arrived = match self.kind {
            Kind::None => false,
            Kind::Every => {
                if index == self.given.len() {
                    self.given.push(false);
                }
                self.given[index]
            }
            Kind::Random(seed) => mix(seed ^ index as u64) & 1 == 1,
        };
        self.answers.push(if arrived { u64::MAX } else { 0 });
        arrived
    }

    /// Which words of the write that has just arrived are there, if its cells may be in the middle
    /// of it: one bit a byte. Where every combination of writes is tried, all are.
    pub fn torn(&mut self) -> u64 {
        let Kind::Random(seed) = self.kind else { return u64::MAX };
        let there = torn(mix(!seed ^ self.asked as u64));
        *self.answers.last_mut().expect("it has arrived") = there;
        there
    }

    /// Whether this image is made of the same answers as one before it that was asked about.
    pub fn are_known(&mut self) -> bool {
        let is_known = self.before.contains(&self.answers);
        if !is_known {
            self.before.push(self.answers.clone());
        }
        is_known
    }

    /// Goes on to other answers; whether there are none.
    pub fn next(&mut self, seed: u64) -> bool {
        self.answers.clear();
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

    /// Whether every combination has been made with this image.
    pub fn are_all_made(&self) -> bool {
        matches!(self.kind, Kind::Every) && self.given.iter().all(|given| *given)
    }

    /// Goes on to answers by chance.
    pub fn at_random(&mut self, seed: u64) -> bool {
        self.answers.clear();
        self.asked = 0;
        self.kind = Kind::Random(seed);
        false
    }
}

/// Which bytes are there, one bit a byte, of a write that the cells may be in the middle of: those
/// of any words, or mostly all.
pub fn torn(drawn: u64) -> u64 {
    if (drawn >> 8).is_multiple_of(TORN) { spread(drawn as u8) } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What has arrived in part is neither that which has not arrived nor that which has.
    #[test]
    fn an_image_of_a_part_is_none_of_those_of_the_whole() {
        let mut choices = Choices::none();
        let mut seen = Vec::new();
        for seed in 0..256 {
            choices.at_random(mix(seed));
            let there = if choices.arrived() { choices.torn() } else { 0 };
            assert_eq!(choices.are_known(), seen.contains(&there), "{there:x}");
            seen.push(there);
        }
        assert!(seen.iter().any(|there| ![0, u64::MAX].contains(there)));
    }

    /// Three writes have eight combinations, and with the last of them all are made.
    #[test]
    fn all_are_made_with_the_last() {
        let mut choices = Choices::every();
        let mut made = Vec::new();
        loop {
            let image: Vec<bool> = (0..3).map(|_| choices.arrived()).collect();
            assert!(!made.contains(&image));
            made.push(image);
            assert_eq!(choices.are_all_made(), made.len() == 8);
            if choices.next(0) {
                break;
            }
        }
        assert_eq!(made.len(), 8);
        choices.at_random(1);
        assert!(!choices.are_all_made(), "what chance makes is no list");
    }

    /// Of one thing that could have arrived there are two images, however often chance makes one.
    #[test]
    fn an_image_of_the_same_answers_is_known() {
        let mut choices = Choices::none();
        let mut made = [0, 0];
        for seed in 0..32 {
            let arrived = choices.arrived();
            made[usize::from(arrived)] += 1;
            let is_first = made[usize::from(arrived)] == 1;
            assert_eq!(choices.are_known(), !is_first, "{made:?}");
            assert!(!choices.next(mix(seed)));
        }
        assert!(made[0] > 1 && made[1] > 1, "{made:?}");
        // One more answer makes it another one.
        choices.arrived();
        choices.arrived();
        assert!(!choices.are_known());
    }
}
