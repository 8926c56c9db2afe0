//! The workloads, by name. Adding one is a file, a `mod` line and a line in [`ALL`].

use model::params::{Field, Params};
use model::workload::{About, Declared, Site, Step, Workload};

/// A workload as the registry knows it.
pub struct Entry {
    /// What is said of it.
    pub about: About,
    /// Its parameters.
    pub fields: &'static [Field],
    /// Makes it, with the given parameters (known to exist and to be within their limits) in place
    /// of the defaults.
    pub make: fn(&[(String, u64)], &Site) -> Step<Box<dyn Workload>>,
}

/// The workloads, in the order of their names.
pub const ALL: &[Entry] = &[];

#[expect(dead_code, reason = "the first workload will use it")]
const fn entry<W: Declared>() -> Entry {
    Entry { about: W::ABOUT, fields: W::Params::FIELDS, make: make::<W> }
}

fn make<W: Declared>(settings: &[(String, u64)], site: &Site) -> Step<Box<dyn Workload>> {
    let mut params = W::Params::default();
    for (name, value) in settings {
        params.set(name, *value);
    }
    Ok(Box::new(W::new(&params, site)?))
}
