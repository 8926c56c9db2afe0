//! Counters of a part among those of the design.

/// Counters by name, in the order of reports.
type Counters = Vec<(&'static str, u64)>;

/// Puts a part's counters before one of the design's.
///
/// # Panics
/// When the design has no such counter.
pub fn insert_before(name: &str, counters: &mut Counters, part: &[(&'static str, u64)]) {
    let place = counters.iter().position(|(own, _)| *own == name).expect("a counter of the design");
    counters.splice(place..place, part.iter().copied());
}
