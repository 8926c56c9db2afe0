//! Requests of a core that wait for answers, and the places that they take until these come.

use crate::units::Cycle;

/// The requests of one kind that a core has under way. Each takes one of a fixed number of places
/// until its answer has reached the core.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// The number of requests of which it is not known yet when their answers come.
    open: usize,
    /// When the other answers come that are under way.
    times: Vec<Cycle>,
    /// Whether the core waits to hear of an answer.
    awaited: bool,
}

impl Answers {
    /// Returns when a request finds one of `places` free, no earlier than `at`; none if that is not
    /// known yet.
    #[inline]
    pub fn place(&mut self, places: usize, at: Cycle) -> Option<Cycle> {
        // Nearly always there is room without a look at the times.
        if self.open + self.times.len() >= places {
            self.times.retain(|&time| time > at);
            if self.open + self.times.len() >= places {
                return self.times.iter().min().copied();
            }
        }
        Some(at)
    }

    /// Notes that a request was sent whose answer comes at a time that is not known yet.
    pub fn note_sent(&mut self) {
        self.open += 1;
    }

    /// Notes that the answer to a request that was sent comes at `at`. Returns whether the core
    /// waited to hear of one.
    pub fn note_answered(&mut self, at: Cycle) -> bool {
        self.open -= 1;
        self.note_answer(at)
    }

    /// Notes that the answer to a new request comes at `at`. Returns whether the core waited to
    /// hear of one.
    pub fn note_answer(&mut self, at: Cycle) -> bool {
        self.times.push(at);
        std::mem::take(&mut self.awaited)
    }

    /// Notes that the core waits to hear of an answer.
    pub fn wait(&mut self) {
        self.awaited = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_until_its_answer_comes() {
        let mut answers = Answers::default();
        assert_eq!(answers.place(2, Cycle(3)), Some(Cycle(3)));
        answers.note_sent();
        answers.note_sent();
        assert_eq!(answers.place(2, Cycle(10)), None);
        assert_eq!(answers.place(3, Cycle(10)), Some(Cycle(10)), "there is a third");
        answers.wait();
        assert!(answers.note_answered(Cycle(50)), "it is told that somebody waited");
        assert!(!answers.note_answered(Cycle(70)), "nobody waits any more");
        assert_eq!(answers.place(2, Cycle(10)), Some(Cycle(50)));
        assert_eq!(answers.place(2, Cycle(50)), Some(Cycle(50)));
        answers.note_answer(Cycle(90));
        assert_eq!(answers.place(2, Cycle(60)), Some(Cycle(70)));
    }
}
