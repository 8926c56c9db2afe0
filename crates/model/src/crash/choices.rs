//! Chooses which of the writes that could have arrived early have, one image after the other.

use crate::units::{bits, mix, spread};

/// Which of the writes that could have arrived early have: one answer after the other.
pub struct Choices {
    kind: Kind,
    /// The answers of this image that are known before they are asked for, if every combination is
    /// tried.
    given: Vec<bool>,
    /// How many answers have been asked for in this image.
    asked: usize,
    /// The answers of this image: the bytes of each write that are there, one bit a byte.
    answers: Vec<u64>,
    /// The answers of the earlier images that [`Choices::are_repeated`] was asked about.
    before: Vec<Vec<u64>>,
}

/// Of the writes that the cells may be in the middle of, one in so many is torn (ours: often enough
/// for every campaign to meet one, and seldom enough for most lines to be whole, so that what
/// depends on several is met, too).
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
    /// Begins with an image in which nothing has arrived early; the answers of later ones are
    /// drawn.
    pub fn none() -> Choices {
        Choices::of(Kind::None)
    }

    /// Tries every combination of answers, one image after the other.
    pub fn every() -> Choices {
        Choices::of(Kind::Every)
    }

    fn of(kind: Kind) -> Choices {
        Choices { kind, given: Vec::new(), asked: 0, answers: Vec::new(), before: Vec::new() }
    }

    /// Whether the next write has arrived early.
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

    /// Returns which bytes of the write that has just arrived are there, one bit a byte, if its
    /// cells may be in the middle of it: those of some words. `words` are those that it changes,
    /// one bit a word.
    pub fn torn(&mut self, words: u8) -> u64 {
        let Kind::Random(seed) = self.kind else { return self.some_of(words).unwrap_or(u64::MAX) };
        let there = torn(mix(!seed ^ self.asked as u64));
        *self.answers.last_mut().expect("it has arrived") = there;
        there
    }

    /// Where every combination is tried, chooses which of the words that a write changes, one bit a
    /// word, the cells have of it, and returns the bytes that are there, one bit a byte.
    pub fn some_of(&mut self, words: u8) -> Option<u64> {
        let Kind::Every = self.kind else { return None };
        let changed = bits(words.into());
        let lacking = changed.filter(|_| !self.arrived()).fold(0, |all, place| all | 1 << place);
        Some(!spread(lacking))
    }

    /// Whether an earlier image that was asked about is made of the same answers as this one, which
    /// is an earlier one from now on.
    pub fn are_repeated(&mut self) -> bool {
        let is_known = self.before.contains(&self.answers);
        if !is_known {
            self.before.push(self.answers.clone());
        }
        is_known
    }

    /// Goes on to the answers of the next image. Returns whether there are none.
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

    /// Goes on to answers that are drawn at random.
    pub fn at_random(&mut self, seed: u64) {
        self.answers.clear();
        self.asked = 0;
        self.kind = Kind::Random(seed);
    }
}

/// Returns which bytes are there, one bit a byte, of a write that the cells may be in the middle
/// of: mostly all, and otherwise those of any words.
pub fn torn(drawn: u64) -> u64 {
    if (drawn >> 8).is_multiple_of(TORN) { spread(drawn as u8) } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image with a part of a write is neither the one without the write nor the one with all of
    /// it.
    #[test]
    fn an_image_of_a_part_is_none_of_those_of_the_whole() {
        let mut choices = Choices::none();
        let mut seen = Vec::new();
        for seed in 0..256 {
            choices.at_random(mix(seed));
            let there = if choices.arrived() { choices.torn(u8::MAX) } else { 0 };
            assert_eq!(choices.are_repeated(), seen.contains(&there), "{there:x}");
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

    /// One write that could have arrived makes two images, however often each is drawn.
    #[test]
    fn an_image_of_the_same_answers_is_known() {
        let mut choices = Choices::none();
        let mut made = [0, 0];
        for seed in 0..32 {
            let arrived = choices.arrived();
            made[usize::from(arrived)] += 1;
            let is_first = made[usize::from(arrived)] == 1;
            assert_eq!(choices.are_repeated(), !is_first, "{made:?}");
            assert!(!choices.next(mix(seed)));
        }
        assert!(made[0] > 1 && made[1] > 1, "{made:?}");
        // One more answer makes another image.
        choices.arrived();
        choices.arrived();
        assert!(!choices.are_repeated());
    }
}
