//! What is known of the order of a run's stores, and of the images that a campaign was asked about.

use super::found::Answer;
use crate::image::Image;
use crate::oracle::{Moment, Oracle};
use crate::persistency::Persistency;
use crate::units::Word;

/// The order of a run's stores, and the images that are asked about.
pub(super) struct Stores {
    /// The order, as the hardware's model has it.
    pub(super) order: Persistency,
    images: Vec<Asked>,
    /// What is known of each image.
    pub(super) answers: Vec<Answer>,
}

/// An image that is asked about.
struct Asked {
    /// Words, and what they hold in it. Other words may hold anything.
    words: Vec<(Word, u64)>,
    /// The words that did not hold that value from the first: the image cannot be before each of
    /// them is stored to.
    changed: Vec<Word>,
}

impl Stores {
    /// Begins with an order in which nothing was stored yet.
    pub(super) fn new(order: Persistency, images: &[Vec<(Word, u64)>], oracle: &Oracle) -> Stores {
        let asked = |words: &Vec<(Word, u64)>| {
            let changed = words.iter().filter(|(word, is)| oracle.expected(*word) != *is);
            Asked { changed: changed.map(|(word, _)| *word).collect(), words: words.clone() }
        };
        Stores {
            order,
            images: images.iter().map(asked).collect(),
            answers: vec![Answer::default(); images.len()],
        }
    }

    /// Notes which of the images are allowed now.
    pub(super) fn ask(&mut self) {
        let order = &self.order;
        for (image, answer) in self.images.iter().zip(&mut self.answers) {
            answer.allowed = answer.allowed
                || image.changed.iter().all(|word| order.is_touched(*word))
                    && order.check(&image.words).is_ok();
        }
    }

    /// Notes which of the images this one is, and when it was left.
    pub(super) fn see(&mut self, left: &Image<'_>, now: impl Fn() -> Moment) {
        for (image, answer) in self.images.iter().zip(&mut self.answers) {
            let is_of_timing = answer.seen.as_ref().is_some_and(|seen| seen.order == 0);
            if is_of_timing || image.words.iter().any(|(word, is)| left.word(*word) != *is) {
                continue;
            }
            let now = now();
            if answer.seen.is_none() || now.order == 0 {
                answer.seen = Some(now);
            }
        }
    }
}
