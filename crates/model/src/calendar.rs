//! When shared resources are busy: calendars instead of next-free times.

/// The busy time of one resource (a bank, a bus), as disjoint intervals in order.
///
/// A request that is stamped in the future leaves the time before it free for others. With a
/// single next-free time it would delay all other requests.
#[derive(Clone, Debug, Default)]
pub struct Calendar {
    /// The latest interval, which is most often the only one. It is empty if there is none.
    last: (u64, u64),
    /// The earlier intervals, in order.
    before: Vec<(u64, u64)>,
}

impl Calendar {
    /// Returns the first time at or after `at` at which the resource is free.
    #[inline]
    pub fn free_from(&self, at: u64) -> u64 {
        if at >= self.last.0 {
            return at.max(self.last.1);
        }
        let mut busy = self.before.iter().filter(|&&(from, until)| from <= at && at < until);
        busy.next().map_or(at, |&(_, until)| until)
    }

    /// Returns the latest busy interval, which is empty if there is none.
    #[inline]
    pub fn latest(&self) -> (u64, u64) {
        self.last
    }

    /// Returns the start of the first free interval of `duration` cycles at or after `at`.
    #[inline]
    pub fn fits_from(&self, at: u64, duration: u64) -> u64 {
        if at >= self.last.0 {
            return at.max(self.last.1);
        }
        let mut start = at;
        for &(from, until) in self.before.iter().chain([&self.last]) {
            if start + duration <= from {
                break;
            }
            start = start.max(until);
        }
        start
    }

    /// Takes the first free interval of `duration` cycles at or after `at` and returns its start.
    /// Intervals before `now` are forgotten, since no later request asks for them.
    #[inline]
    pub fn reserve(&mut self, at: u64, duration: u64, now: u64) -> u64 {
        if self.before.first().is_some_and(|&(_, until)| until <= now) {
            let over = self.before.partition_point(|&(_, until)| until <= now);
            self.before.drain(..over);
        }
        let (_, until) = self.last;
        // Most requests come after all others.
        if until <= now {
            self.last = (at, at + duration);
            at
        } else if until == at {
            self.last.1 = at + duration;
            at
        } else if until < at {
            self.before.push(self.last);
            self.last = (at, at + duration);
            at
        } else {
            self.reserve_between(at, duration)
        }
    }

    /// Takes the first `duration` free cycles at or after `at`, in as many parts as needed, and
    /// returns when they begin and end. Earlier requests keep their times in between, and no time
    /// is lost in gaps that are too short for the whole.
    #[inline]
    pub fn reserve_in_parts(&mut self, at: u64, duration: u64, now: u64) -> (u64, u64) {
        if self.last.1 <= at {
            let start = self.reserve(at, duration, now);
            return (start, start + duration);
        }
        let from = self.free_from(at);
        let busy = &mut self.before;
        busy.push(self.last);
        let (mut end, mut left) = (from, duration);
        for &(next, until) in busy.iter().filter(|(_, until)| *until > from) {
            let gap = next - end;
            if gap >= left {
                break;
            }
            (end, left) = (until, left - gap);
        }
        end += left;
        // The resource is busy from `from` to `end` now.
        let first = busy.partition_point(|&(_, until)| until < from);
        let after = busy.partition_point(|&(next, _)| next <= end);
        let mut whole = (from, end);
        if first < after {
            whole = (whole.0.min(busy[first].0), whole.1.max(busy[after - 1].1));
            busy.drain(first + 1..after);
            busy[first] = whole;
        } else {
            busy.insert(first, whole);
        }
        self.last = busy.pop().expect("there is an interval");
        (from, end)
    }

    /// Takes a gap between busy intervals, or the time after them.
    fn reserve_between(&mut self, at: u64, duration: u64) -> u64 {
        let start = self.fits_from(at, duration);
        let end = start + duration;
        let busy = &mut self.before;
        busy.push(self.last);
        let index = busy.partition_point(|&(from, _)| from < start);
        let joins_before = index > 0 && busy[index - 1].1 == start;
        let joins_after = index < busy.len() && busy[index].0 == end;
        match (joins_before, joins_after) {
            (true, true) => {
                busy[index - 1].1 = busy[index].1;
                busy.remove(index);
            }
            (true, false) => busy[index - 1].1 = end,
            (false, true) => busy[index].0 = start,
            (false, false) => busy.insert(index, (start, end)),
        }
        self.last = busy.pop().expect("there is an interval");
        start
    }
}

/// A resource of several equal places (the queues of a controller), each of which is taken from a
/// request's start to its end. A request that is stamped in the future leaves the time before it
/// free.
#[derive(Clone, Debug)]
pub struct Queue {
    places: Vec<Calendar>,
}

impl Queue {
    /// Returns a resource of `places` free places.
    pub fn new(places: u64) -> Queue {
        Queue { places: vec![Calendar::default(); places as usize] }
    }

    /// Returns the place that is free first, and the first time at or after `at` at which it is.
    #[inline]
    pub fn first_free(&self, at: u64) -> (usize, u64) {
        let (mut first, mut soonest) = (0, u64::MAX);
        for (place, calendar) in self.places.iter().enumerate() {
            let free = calendar.free_from(at);
            if free == at {
                return (place, at);
            }
            if free < soonest {
                (first, soonest) = (place, free);
            }
        }
        (first, soonest)
    }

    /// Takes a place from a time at which it is free, for as long as the request takes. If a later
    /// request has the place before that is over, the rest is behind that one.
    #[inline]
    pub fn take(&mut self, place: usize, from: u64, until: u64, now: u64) {
        if until > from {
            self.places[place].reserve_in_parts(from, until - from, now);
        }
    }
}

/// A resource of several equal places (miss-status registers), each of which is taken from a
/// request's start to its end. All requests come from one core, in order.
#[derive(Clone, Debug)]
pub struct Places {
    until: Vec<u64>,
}

impl Places {
    /// Returns a resource of `places` free places.
    pub fn new(places: u64) -> Places {
        Places { until: vec![0; places as usize] }
    }

    /// Returns the place that is free first, and the first time at or after `at` at which it is.
    pub fn first_free(&self, at: u64) -> (usize, u64) {
        let (mut first, mut soonest) = (0, u64::MAX);
        for (place, &until) in self.until.iter().enumerate() {
            if until <= at {
                return (place, at);
            }
            if until < soonest {
                (first, soonest) = (place, until);
            }
        }
        (first, soonest)
    }

    /// Returns the first time at or after `at` at which two places are free; [`u64::MAX`] if there
    /// is one alone.
    pub fn two_free(&self, at: u64) -> u64 {
        let mut soonest = [u64::MAX; 2];
        for &until in &self.until {
            let until = until.max(at);
            if until < soonest[0] {
                soonest = [until, soonest[0]];
            } else if until < soonest[1] {
                soonest[1] = until;
            }
        }
        soonest[1]
    }

    /// Takes a place until the given time.
    pub fn take(&mut self, place: usize, until: u64) {
        self.until[place] = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_free(bank: &Calendar, at: u64) -> bool {
        bank.free_from(at) == at
    }

    #[test]
    fn a_future_request_leaves_the_present_free() {
        let mut bank = Calendar::default();
        assert_eq!(bank.reserve(1000, 100, 0), 1000);
        assert_eq!(bank.reserve(0, 100, 0), 0);
        assert_eq!(bank.reserve(50, 100, 0), 100);
        assert_eq!(bank.reserve(950, 100, 0), 1100);
    }

    #[test]
    fn a_place_that_is_taken_in_the_future_is_free_now() {
        let mut queue = Queue::new(1);
        assert_eq!(queue.first_free(1000), (0, 1000));
        queue.take(0, 1000, 1100, 0);
        assert_eq!(queue.first_free(0), (0, 0));
        queue.take(0, 0, 100, 0);
        assert_eq!(queue.first_free(50), (0, 100));
        assert_eq!(queue.first_free(1050), (0, 1100));
        // The rest of what does not fit is behind what is there already.
        queue.take(0, 950, 1050, 0);
        assert_eq!(queue.first_free(1120), (0, 1150));
    }

    #[test]
    fn a_gap_that_is_too_short_is_passed_over() {
        let mut bank = Calendar::default();
        bank.reserve(100, 50, 0);
        bank.reserve(200, 50, 0);
        assert!(is_free(&bank, 60));
        assert!(!is_free(&bank, 100));
        assert!(is_free(&bank, 150));
        assert_eq!(bank.reserve(60, 60, 0), 250);
        assert_eq!(bank.reserve(60, 40, 0), 60);
    }

    #[test]
    fn time_in_parts_goes_around_what_was_asked_for_before() {
        let mut bank = Calendar::default();
        bank.reserve(100, 50, 0);
        bank.reserve(200, 50, 0);
        assert_eq!(bank.reserve_in_parts(60, 100, 0), (60, 260));
        assert!(
            (60..260).all(|at| !is_free(&bank, at)) && is_free(&bank, 59) && is_free(&bank, 260)
        );
        assert_eq!(bank.reserve_in_parts(100, 10, 0), (260, 270));
        assert_eq!(bank.reserve_in_parts(0, 60, 0), (0, 60));
        assert_eq!((bank.before.len(), bank.last), (0, (0, 270)));
        bank.reserve(300, 10, 0);
        assert_eq!(bank.reserve_in_parts(270, 30, 0), (270, 300));
        assert_eq!((bank.before.len(), bank.last), (0, (0, 310)));
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let mut bank = Calendar::default();
        for start in 0..1000 {
            bank.reserve(start * 10, 5, start * 10);
        }
        assert!(bank.before.len() <= 1);
    }

    #[test]
    fn places_are_taken_until_their_requests_end() {
        let mut places = Places::new(2);
        for until in [30, 20] {
            let (place, at) = places.first_free(0);
            assert_eq!(at, 0);
            places.take(place, until);
        }
        assert_eq!(places.first_free(5).1, 20);
    }
}
