//! Profiles: workloads with the settings of a paper, under the names that it gives them, and what
//! it published of their write sets.

use serde_json::{Value, json};

/// A workload as a paper runs it. Its name can be given wherever a workload's can.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The paper's name.
    pub name: &'static str,
    /// The workload.
    pub workload: &'static str,
    /// Its parameters, where they differ from the defaults.
    pub settings: &'static [(&'static str, &'static str)],
    /// Lines and pages of a transaction, and the most pages, as printed, if they were.
    pub published: Option<[u64; 3]>,
    /// Where it comes from.
    pub source: &'static str,
}

const SSP: &str = "SSP, MICRO'19 Table 3";
const LOGGING: &str = "Li, Ogleari and Zhao, Figure 1";

const HOT: (&str, &str) = ("distribution", "hot");
const VALUE: (&str, &str) = ("value", "8");
/// As Mnemosyne and PMDK have them, the allocator's metadata in persistent memory, and a number of
/// items (ours: without them the red-black tree and the hash table write half the lines that the
/// paper counts).
const META: (&str, &str) = ("alloc_meta", "logged");
const COUNT: (&str, &str) = ("count", "stored");
/// Leaves of 50 to 100 items: 12 lines for an update (ours: the paper gives no fan-out).
const ORDER: (&str, &str) = ("order", "100");
/// Nodes of 48 bytes.
const PACKED: (&str, &str) = ("alignment", "packed");
/// The transactions of WHISPER's port, memcached-1.2.4-mtm, of which the paper says that it only
/// replaced the durable interface (section 5.1).
const CALLS: (&str, &str) = ("transactions", "calls");
/// A line for each bucket head.
const BUCKET: (&str, &str) = ("bucket", "line");

/// The profiles of Shadow Sub-Paging (MICRO 2019), in the order of its figures, whose "Zipf" is our
/// `hot`, and both forms of its `sps`; then the loop of `logcache` with each way of writing an
/// entry.
pub const ALL: &[Profile] = &[
    ssp("btree-rand", "bplustree", &[VALUE, META, COUNT, ORDER], [10, 6, 21]),
    ssp("rbtree-rand", "rbtree", &[VALUE, META, COUNT, PACKED], [12, 3, 13]),
    ssp("hash-rand", "hash", &[VALUE, META, COUNT, BUCKET], [3, 3, 4]),
    ssp("sps", "sps", &[], [2, 2, 2]),
    ssp("btree-zipf", "bplustree", &[VALUE, META, COUNT, ORDER, HOT], [6, 4, 15]),
    ssp("rbtree-zipf", "rbtree", &[VALUE, META, COUNT, PACKED, HOT], [5, 2, 6]),
    ssp("hash-zipf", "hash", &[VALUE, META, COUNT, BUCKET, HOT], [3, 3, 4]),
    ssp("memcached-mtm", "memcached", &[CALLS], [3, 2, 35]),
    ssp("vacation", "vacation", &[], [4, 3, 9]),
    more_of_ssp("sps-rand", "sps", &[("distribution", "uniform")]),
    more_of_ssp("sps-zipf", "sps", &[HOT]),
    logging("logcache-cached", &[("variant", "cached")]),
    logging("logcache-cached+clwb", &[("variant", "cached+clwb")]),
    logging("logcache-cached+clflushopt", &[("variant", "cached+clflushopt")]),
    logging("logcache-cached+clflush", &[("variant", "cached+clflush")]),
    logging("logcache-movnti4", &[("variant", "movnti4")]),
    logging("logcache-movnti8", &[("variant", "movnti8")]),
    logging("logcache-movdiri", &[("variant", "movdiri")]),
    logging("logcache-nt32", &[("variant", "nt32")]),
    logging("logcache-nt64", &[("variant", "nt64")]),
    logging("logcache-movdir64b", &[("variant", "movdir64b")]),
];

const fn ssp(
    name: &'static str,
    workload: &'static str,
    settings: &'static [(&'static str, &'static str)],
    published: [u64; 3],
) -> Profile {
    Profile { name, workload, settings, published: Some(published), source: SSP }
}

/// A form that the paper's table does not have.
const fn more_of_ssp(
    name: &'static str,
    workload: &'static str,
    settings: &'static [(&'static str, &'static str)],
) -> Profile {
    Profile { name, workload, settings, published: None, source: SSP }
}

const fn logging(name: &'static str, settings: &'static [(&'static str, &'static str)]) -> Profile {
    Profile { name, workload: "logcache", settings, published: None, source: LOGGING }
}

/// The profile of a name.
pub fn find(name: &str) -> Option<&'static Profile> {
    ALL.iter().find(|profile| profile.name == name)
}

impl Profile {
    /// Returns the profile's settings with the user's over them, in the order of names, as those of
    /// a request are.
    pub fn under(&self, asked: &[(String, String)]) -> Vec<(String, String)> {
        let is_left = |name: &str| asked.iter().all(|(other, _)| other != name);
        let own = self.settings.iter().filter(|(name, _)| is_left(name));
        let own = own.map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let mut all: Vec<(String, String)> = own.chain(asked.iter().cloned()).collect();
        all.sort_unstable();
        all
    }

    /// Returns what a list says of the profile.
    pub fn row(&self) -> Value {
        let settings: Vec<String> =
            self.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let published = self.published.map(|[lines, pages, pages_max]| {
            json!({ "lines": lines, "pages": pages, "pages_max": pages_max })
        });
        json!({
            "name": self.name,
            "workload": self.workload,
            "settings": settings.join(" "),
            "source": self.source,
            "published": published,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::params;

    #[test]
    fn every_profile_is_of_a_workload_that_has_its_settings() {
        for profile in ALL {
            let entry = workloads::ALL.iter().find(|entry| entry.about.name == profile.workload);
            let entry = entry.expect("a workload");
            let settings = params(profile.name, entry.fields, &profile.under(&[])).expect("sound");
            assert_eq!(settings.len(), profile.settings.len());
            // A name that a workload has, too, means that workload as it is.
            let is_known = workloads::ALL.iter().any(|entry| entry.about.name == profile.name);
            assert_eq!(is_known, profile.name == profile.workload);
            assert!(!is_known || profile.settings.is_empty());
        }
    }

    #[test]
    fn what_the_user_sets_counts() {
        let asked = [("value".to_owned(), "64".to_owned())];
        let profile = find("hash-zipf").expect("a profile");
        let settings = profile.under(&asked);
        let found = |name: &str| settings.iter().filter(|(other, _)| other == name).count();
        assert_eq!(["value", "bucket", "distribution"].map(found), [1, 1, 1]);
        assert!(settings.contains(&asked[0]));
    }
}
