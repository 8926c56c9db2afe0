//! How many of the things that exist a request is about, and which.

use serde::Deserialize;

use crate::error::InputError;

/// How many of the things that exist: `"all"`, or a number.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum HowMany {
    /// Every one.
    #[default]
    All,
    /// This many, spread over all.
    Some(u64),
    /// In words; only `all` is understood.
    Word(String),
}

impl HowMany {
    /// Checks that this is a number above 0, or all.
    pub(super) fn check(&mut self, what: &str, shows: &str) -> Result<(), InputError> {
        let refused = match self {
            HowMany::Word(word) if word == "all" => {
                *self = HowMany::All;
                return Ok(());
            }
            HowMany::Word(word) => format!("`{word}` is not a number of {what}"),
            HowMany::Some(0) => format!("0 {what} {shows} nothing"),
            HowMany::Some(_) | HowMany::All => return Ok(()),
        };
        Err(InputError::new(format!("{refused}; give a number or `all`")))
    }

    /// The most that are wanted.
    pub fn most(&self) -> usize {
        match self {
            HowMany::Some(most) => usize::try_from(*most).unwrap_or(usize::MAX),
            HowMany::All | HowMany::Word(_) => usize::MAX,
        }
    }
}

/// Which rules are switched off: all of them or none, or the one of a name.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum Mutants {
    /// All, or none.
    All(bool),
    /// The one of this name.
    Rule(String),
}

impl Default for Mutants {
    fn default() -> Mutants {
        Mutants::All(false)
    }
}

impl Mutants {
    /// Whether a rule is switched off.
    pub fn has(&self, rule: &str) -> bool {
        match self {
            Mutants::All(all) => *all,
            Mutants::Rule(one) => one == rule,
        }
    }

    /// Whether any rule is switched off, if the design has rules.
    pub fn has_any(&self) -> bool {
        *self != Mutants::All(false)
    }
}
