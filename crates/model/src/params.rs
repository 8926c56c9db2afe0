//! Parameters and rules, declared once: the struct, its defaults, its limits and its documentation.

use std::fmt::Debug;
use std::ops::RangeInclusive;

/// One parameter of a design or a workload, as the command line and Python know it.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name, as in `--set design.NAME=value`.
    pub name: &'static str,
    /// What it is, with its unit and source.
    pub doc: &'static str,
    /// The default; for a choice, the index of the default.
    pub default: u64,
    /// The accepted values; for a choice, the accepted indices.
    pub limits: RangeInclusive<u64>,
    /// The names of the values of a choice; empty for a number.
    pub choices: &'static [&'static str],
}

/// A set of parameters with defaults.
pub trait Params: Clone + Debug + Default + Send + Sync + 'static {
    /// Every parameter, in order of declaration.
    const FIELDS: &'static [Field];

    /// Sets a field that is known to exist, to a value that is known to be within its limits.
    fn set(&mut self, name: &str, value: u64);

    /// The value of a field that is known to exist.
    fn get(&self, name: &str) -> u64;
}

/// A set of rules that a design obeys; a test switches one off and sees the checker catch it.
pub trait Rules: Clone + Debug + Default + Send + Sync + 'static {
    /// Every rule with its documentation, in order of declaration.
    const RULES: &'static [(&'static str, &'static str)];

    /// These rules with one of them, which is known to exist, switched off.
    fn without(self, rule: &str) -> Self;
}

/// Declares a struct of parameters: `name = default in limits;` for a number, and
/// `name = "default" of ["one", "other"];` for a choice (kept as the index of the chosen name).
#[macro_export]
macro_rules! params {
    ($(#[doc = $about:literal])* $vis:vis struct $Params:ident {
        $($(#[doc = $doc:literal])+ $name:ident = $default:literal $kind:tt $limits:expr;)*
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug)]
        $vis struct $Params { $($(#[doc = $doc])+ pub $name: u64,)* }

        impl Default for $Params {
            fn default() -> Self {
                $Params { $($name: $crate::params!(@default $default $kind $limits),)* }
            }
        }

        impl $crate::params::Params for $Params {
            const FIELDS: &'static [$crate::params::Field] = &[$($crate::params::Field {
                name: stringify!($name),
                doc: concat!($($doc),+),
                default: $crate::params!(@default $default $kind $limits),
                limits: $crate::params!(@limits $kind $limits),
                choices: $crate::params!(@choices $kind $limits),
            },)*];
            fn set(&mut self, name: &str, _value: u64) {
                match name {
                    $(stringify!($name) => self.$name = _value,)*
                    _ => unreachable!("{name} is not a parameter"),
                }
            }
            fn get(&self, name: &str) -> u64 {
                match name {
                    $(stringify!($name) => self.$name,)*
                    _ => unreachable!("{name} is not a parameter"),
                }
            }
        }
    };
    (@default $default:literal in $limits:expr) => { $default };
    (@default $default:literal of $choices:expr) => {
        $crate::params::index_of(&$choices, $default)
    };
    (@limits in $limits:expr) => { $limits };
    (@limits of $choices:expr) => { 0..=($choices.len() as u64 - 1) };
    (@choices in $limits:expr) => { &[] };
    (@choices of $choices:expr) => { &$choices };
}

/// Declares a struct of rules, all of them on by default.
#[macro_export]
macro_rules! rules {
    ($(#[doc = $about:literal])* $vis:vis struct $Rules:ident {
        $($(#[doc = $doc:literal])+ $name:ident,)*
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug)]
        $vis struct $Rules { $($(#[doc = $doc])+ pub $name: bool,)* }

        impl Default for $Rules {
            fn default() -> Self { $Rules { $($name: true,)* } }
        }

        impl $crate::params::Rules for $Rules {
            const RULES: &'static [(&'static str, &'static str)] =
                &[$((stringify!($name), concat!($($doc),+)),)*];
            #[allow(unused_mut, clippy::allow_attributes, reason = "a design may have no rules")]
            fn without(mut self, rule: &str) -> Self {
                $(if rule == stringify!($name) {
                    self.$name = false;
                    return self;
                })*
                unreachable!("{rule} is not a rule")
            }
        }
    };
}

/// Where `name` stands in `names`; used at compile time by [`params!`].
pub const fn index_of(names: &[&str], name: &str) -> u64 {
    let mut index = 0;
    while index < names.len() {
        if equal(names[index].as_bytes(), name.as_bytes()) {
            return index as u64;
        }
        index += 1;
    }
    panic!("the default is not among the choices")
}

const fn equal(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut index = 0;
    while index < left.len() {
        if left[index] != right[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{Params as _, Rules as _};

    params! {
        /// Parameters of nothing.
        pub struct Sizes {
            /// How many.
            entries = 20 in 1..=4096;
            /// How.
            mode = "lines" of ["pages", "lines", "words"];
        }
    }

    rules! {
        /// Rules of nothing.
        pub struct Habits {
            /// Log first.
            log_first,
        }
    }

    #[test]
    fn parameters_are_known_by_name() {
        let mut sizes = Sizes::default();
        assert_eq!((sizes.entries, sizes.mode), (20, 1));
        sizes.set("entries", 7);
        assert_eq!(sizes.get("entries"), 7);
        assert_eq!(Sizes::FIELDS[1].choices, ["pages", "lines", "words"]);
        assert_eq!(Sizes::FIELDS[1].limits, 0..=2);
    }

    #[test]
    fn a_rule_can_be_switched_off() {
        assert!(Habits::default().log_first);
        assert!(!Habits::default().without("log_first").log_first);
    }
}
