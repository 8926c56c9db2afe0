//! The pragmas of a script: which ones are possible, and how each is treated.

use super::words;
use crate::spelling::{closest_first, meant};

/// Pragmas that only ask, also where they take a value.
const ASK: [&str; 16] = [
    "collation_list",
    "compile_options",
    "database_list",
    "foreign_key_check",
    "foreign_key_list",
    "freelist_count",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "page_count",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// Pragmas that set something for a connection, and leave files, journals and locks alone.
const SET: [&str; 10] = [
    "automatic_index",
    "busy_timeout",
    "case_sensitive_like",
    "cell_size_check",
    "foreign_keys",
    "ignore_check_constraints",
    "recursive_triggers",
    "reverse_unordered_selects",
    "secure_delete",
    "temp_store",
];

/// Pragmas whose value is kept in the database.
const KEPT: [&str; 1] = ["user_version"];

/// Pragmas whose values the workload has decided, the values that ask for the same, and the reason
/// why others are impossible.
const DECIDED: [(&str, &[&str], &str); 12] = [
    ("application_id", &[], "the workload signs its databases with it"),
    ("auto_vacuum", &["none", "0"], "the database has its first page already, with NONE"),
    ("cache_size", &[], "set workload.cache_pages"),
    (
        "cache_spill",
        &["off", "0", "no", "false"],
        "a page that is written before the commit would need a journal, so it is OFF",
    ),
    ("encoding", &["utf-8", "utf8"], "the database has its first page already, in UTF-8"),
    ("journal_mode", &["delete"], "the journal is what the design stands for; the mode is DELETE"),
    ("locking_mode", &["normal"], "each transaction takes and returns its locks, which is NORMAL"),
    ("mmap_size", &["0"], "a mapped file would be read past the simulated memory, so it is 0"),
    ("page_size", &["4096"], "pages have 4096 bytes"),
    ("schema_version", &[], "SQLite counts the changes of the schema with it"),
    ("synchronous", &["full", "2"], "every commit is to be durable, which is FULL"),
    (
        "writable_schema",
        &["off", "0", "no", "false"],
        "only CREATE, ALTER and DROP change the schema; a dump of virtual tables has to CREATE them",
    ),
];

/// The treatment of a pragma.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pragma {
    /// It asks, and is a statement like any other.
    Asks,
    /// It sets something for its connection: every connection to the database has to run it.
    Sets,
    /// It changes the database.
    Changes,
    /// It asks for a value that holds anyway, and is skipped.
    IsSo,
}

impl Pragma {
    /// Reads the text after the word `PRAGMA`; also returns the pragma's name.
    ///
    /// # Errors
    /// A sentence that says why it is not possible, or which pragmas are.
    pub(super) fn read(text: &str) -> Result<(String, Pragma), String> {
        let (name, value) = name_and_value(text);
        let is_in = |names: &[&str]| names.contains(&name.as_str());
        let pragma = match (DECIDED.iter().find(|(decided, ..)| *decided == name), value) {
            (Some(_), None) => Pragma::Asks,
            (Some((_, same, _)), Some(value)) if same.contains(&value.as_str()) => Pragma::IsSo,
            (Some((.., reason)), _) => {
                return Err(format!("PRAGMA {name} is not supported here: {reason}"));
            }
            (None, _) if is_in(&ASK) => Pragma::Asks,
            (None, None) if is_in(&SET) || is_in(&KEPT) => Pragma::Asks,
            (None, _) if is_in(&SET) => Pragma::Sets,
            (None, _) if is_in(&KEPT) => Pragma::Changes,
            (None, _) => {
                let names = closest_first(&name, possible());
                let meant = meant(&name, names.iter().copied());
                let meant = meant.map_or(String::new(), |name| format!("did you mean `{name}`? "));
                let names = names.join(", ");
                return Err(format!(
                    "PRAGMA {name} is not supported here; {meant}supported are {names}"
                ));
            }
        };
        Ok((name, pragma))
    }
}

/// The names of the pragmas that a script may give a value.
fn possible() -> Vec<&'static str> {
    let decided = DECIDED.iter().filter(|(_, same, _)| !same.is_empty()).map(|(name, ..)| *name);
    let mut names: Vec<_> = ASK.into_iter().chain(SET).chain(KEPT).chain(decided).collect();
    names.sort_unstable();
    names
}

/// The name of a pragma, without that of a schema, and its value, if it has one, in small letters.
fn name_and_value(text: &str) -> (String, Option<String>) {
    let (mut name, mut rest) = words::next(text);
    if let (".", after) = words::next(rest) {
        (name, rest) = words::next(after);
    }
    let (mark, rest) = words::next(rest);
    let value = matches!(mark, "=" | "(").then(|| {
        let (mut value, (mut word, mut rest)) = (String::new(), words::next(rest));
        while !matches!(word, "" | ";" | ")") {
            value.push_str(word);
            (word, rest) = words::next(rest);
        }
        value.to_ascii_lowercase()
    });
    (name.to_ascii_lowercase(), value)
}
