//! A queue that mostly has one element, and then takes no memory of its own: a line mostly has one
//! version that is not home, and a transaction its entries in one group.

use std::collections::VecDeque;

/// The queue; its first element is in place.
#[derive(Clone, Debug)]
pub struct Few<T> {
    first: Option<T>,
    later: VecDeque<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Few<T> {
        Few { first: None, later: VecDeque::new() }
    }
}

impl<T: Copy> Few<T> {
    pub fn push_back(&mut self, element: T) {
        match self.first {
            None => self.first = Some(element),
            Some(_) => self.later.push_back(element),
        }
    }

    pub fn pop_front(&mut self) -> Option<T> {
        std::mem::replace(&mut self.first, self.later.pop_front())
    }

    pub fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    pub fn back(&self) -> Option<&T> {
        self.later.back().or(self.first.as_ref())
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.first.iter().chain(&self.later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_leave_in_the_order_in_which_they_came() {
        let mut few = Few::default();
        assert_eq!(few.back(), None);
        assert_eq!(few.pop_front(), None);
        for round in 0..3 {
            (0..round).for_each(|element| few.push_back(element));
            assert_eq!(few.back().copied(), (0..round).next_back());
            assert!(few.iter().rev().copied().eq((0..round).rev()));
            assert!((0..round).all(|element| few.pop_front() == Some(element)));
            assert!(few.is_empty());
        }
    }
}
