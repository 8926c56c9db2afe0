//! Suggestions for mistyped names.

use strsim::normalized_damerau_levenshtein as similarity;

/// Returns the candidates, those most similar to `name` first; ties keep their order.
pub fn closest_first<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    let mut names: Vec<&str> = candidates.into_iter().collect();
    names.sort_by(|left, right| likeness(name, right).total_cmp(&likeness(name, left)));
    names
}

/// Returns the candidate that was probably meant, if one is similar enough.
pub fn meant<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let closest = closest_first(name, candidates).into_iter().next();
    closest.filter(|closest| likeness(name, closest) >= LIKELY)
}

/// The least similarity with which a candidate is suggested.
const LIKELY: f64 = 0.5;

/// Returns the similarity of two names, from 0 to 1, without regard to case.
fn likeness(name: &str, candidate: &str) -> f64 {
    let (name, candidate) = (name.to_lowercase(), candidate.to_lowercase());
    let contained = name.len() >= 3 && (candidate.contains(&name) || name.contains(&candidate));
    let floor = if contained && !candidate.is_empty() { LIKELY } else { 0.0 };
    similarity(&name, &candidate).max(floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_parts_of_names_count() {
        assert_eq!(closest_first("SILO", ["lad", "silo"])[0], "silo");
        assert_eq!(
            closest_first("buffer_size", ["tCL", "write_buffer_size"])[0],
            "write_buffer_size"
        );
        assert_eq!((meant("SLO", ["lad", "silo"]), meant("x", ["silo"])), (Some("silo"), None));
    }
}
