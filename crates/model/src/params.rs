//! Parameters, rules and counters, declared once: the struct, its defaults, its limits and its
//! documentation.

use std::fmt::Debug;
use std::ops::RangeInclusive;

/// One parameter of a design or a workload, as the command line and Python know it.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name, as in `--set design.NAME=value`.
    pub name: &'static str,
    /// What it is, with its unit and source.
    pub doc: &'static str,
    /// The default; for a [`Choice`], the index of the default.
    pub default: u64,
    /// The accepted values; for a [`Choice`], the accepted indices.
    pub limits: RangeInclusive<u64>,
    /// The names of a [`Choice`]; empty for a number.
    pub choices: &'static [&'static str],
    /// Values so small that what the parameter sizes fills, overflows and wraps within some
    /// transactions; a search for mutants goes through them. Empty if there are none.
    pub tight: &'static [u64],
}

/// A set of parameters with defaults.
pub trait Params: Clone + Debug + Default + Send + Sync + 'static {
    /// Every parameter, in order of declaration.
    const FIELDS: &'static [Field];

    /// Sets a field that is known to exist, to a value that is known to be within its limits; a
    /// [`Choice`], to the one with that index.
    fn set(&mut self, name: &str, value: u64);

    /// The value of a field that is known to exist; of a [`Choice`], its index.
    fn get(&self, name: &str) -> u64;
}

/// What a parameter that takes words can be; declared with [`choices!`](crate::choices).
pub trait Choice: Copy + Debug + Eq + Send + Sync + 'static {
    /// Every choice, in order of declaration.
    const ALL: &'static [Self];
    /// Their names, as in `--set design.overflow=NAME`.
    const NAMES: &'static [&'static str];

    /// The range of their indices.
    const LIMITS: RangeInclusive<u64> = RangeInclusive::new(0, Self::ALL.len() as u64 - 1);

    /// The choice's name.
    fn name(self) -> &'static str;

    /// The choice with an index, which is what [`Params::get`] returns, and known to be in range.
    fn of(index: u64) -> Self {
        Self::ALL[index as usize]
    }
}

/// A set of rules that a design obeys; a test switches one off and sees the checker catch it.
pub trait Rules: Clone + Debug + Default + PartialEq + Send + Sync + 'static {
    /// Every rule with its documentation, in order of declaration.
    const RULES: &'static [(&'static str, &'static str)];

    /// These rules with one of them, which is known to exist, switched off.
    fn without(self, rule: &str) -> Self;
}

/// The parameters, or the rules, of two parts that make one design: the first part's, then the
/// second's. A name that both parts have does not compile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Both<A, B> {
    /// The first part's.
    pub first: A,
    /// The second part's.
    pub second: B,
}

/// How many parameters, or rules, two parts may have together; more do not compile.
const BOTH_MAX: usize = 64;

impl<A: Params, B: Params> Both<A, B> {
    const FIELDS_AND_ROOM: &'static [Field; BOTH_MAX] = &{
        let (first, second) = (A::FIELDS, B::FIELDS);
        let mut joined = [const { NO_FIELD }; BOTH_MAX];
        let mut index = 0;
        while index < first.len() + second.len() {
            let own = index < first.len();
            let field = if own { &first[index] } else { &second[index - first.len()] };
            let mut other = 0;
            while other < index {
                let names = (joined[other].name.as_bytes(), field.name.as_bytes());
                assert!(!equal(names.0, names.1), "both parts have a parameter of one name");
                other += 1;
            }
            joined[index] = Field { limits: *field.limits.start()..=*field.limits.end(), ..*field };
            index += 1;
        }
        joined
    };
}

impl<A: Params, B: Params> Params for Both<A, B> {
    const FIELDS: &'static [Field] =
        Self::FIELDS_AND_ROOM.split_at(A::FIELDS.len() + B::FIELDS.len()).0;

    fn set(&mut self, name: &str, value: u64) {
        if A::FIELDS.iter().any(|field| field.name == name) {
            self.first.set(name, value);
        } else {
            self.second.set(name, value);
        }
    }

    fn get(&self, name: &str) -> u64 {
        if A::FIELDS.iter().any(|field| field.name == name) {
            return self.first.get(name);
        }
        self.second.get(name)
    }
}

impl<A: Rules, B: Rules> Both<A, B> {
    const RULES_AND_ROOM: &'static [(&'static str, &'static str); BOTH_MAX] = &{
        let (first, second) = (A::RULES, B::RULES);
        let mut joined = [("", ""); BOTH_MAX];
        let mut index = 0;
        while index < first.len() + second.len() {
            let own = index < first.len();
            let rule = if own { first[index] } else { second[index - first.len()] };
            let mut other = 0;
            while other < index {
                let names = (joined[other].0.as_bytes(), rule.0.as_bytes());
                assert!(!equal(names.0, names.1), "both parts have a rule of one name");
                other += 1;
            }
            joined[index] = rule;
            index += 1;
        }
        joined
    };
}

impl<A: Rules, B: Rules> Rules for Both<A, B> {
    const RULES: &'static [(&'static str, &'static str)] =
        Self::RULES_AND_ROOM.split_at(A::RULES.len() + B::RULES.len()).0;

    fn without(self, rule: &str) -> Self {
        if A::RULES.iter().any(|(name, _)| *name == rule) {
            return Both { first: self.first.without(rule), ..self };
        }
        Both { second: self.second.without(rule), ..self }
    }
}

/// Declares what parameters that take words can be: enums, each value with the word for it on the
/// command line, in the order in which users see them.
#[macro_export]
macro_rules! choices {
    ($($(#[doc = $about:literal])+ $vis:vis enum $Choice:ident {
        $($(#[doc = $doc:literal])* $Value:ident = $name:literal),+ $(,)?
    })+) => {$(
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Choice {
            $(
                $(#[doc = $doc])*
                #[doc = concat!("\n\nOn the command line: `", $name, "`.")]
                $Value,
            )+
        }

        impl $crate::params::Choice for $Choice {
            const ALL: &'static [Self] = &[$($Choice::$Value,)+];
            const NAMES: &'static [&'static str] = &[$($name,)+];
            fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }
    )+};
}

/// Declares a struct of parameters: `name = default in limits;` for a number, with `, tight [4, 1]`
/// before the semicolon if it sizes something ([`Field::tight`]), and `name: Choice = Default;` for
/// one that takes words, with an enum that [`choices!`](crate::choices) declares.
#[macro_export]
macro_rules! params {
    ($(#[doc = $about:literal])* $vis:vis struct $Params:ident {
        $($(#[doc = $doc:literal])+
        $name:ident $(: $Choice:ty)? = $default:tt $(in $limits:expr)? $(, tight $tight:expr)?;)*
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug)]
        $vis struct $Params {
            $($(#[doc = $doc])+ pub $name: $crate::params!(@type $($Choice)?),)*
        }

        impl Default for $Params {
            fn default() -> Self {
                $Params { $($name: $crate::params!(@default $name $default $($Choice)?),)* }
            }
        }

        impl $crate::params::Params for $Params {
            const FIELDS: &'static [$crate::params::Field] = &[$($crate::params::Field {
                name: stringify!($name),
                doc: concat!($($doc),+),
                default: $crate::params!(
                    @index $crate::params!(@default $name $default $($Choice)?); $($Choice)?
                ),
                limits: $crate::params!(@limits $name $(in $limits)? $(of $Choice)?),
                choices: $crate::params!(@names $($Choice)?),
                tight: $crate::params!(@tight $($tight)?),
            },)*];
            fn set(&mut self, name: &str, _value: u64) {
                match name {
                    $(stringify!($name) => {
                        self.$name = $crate::params!(@value _value $($Choice)?);
                    })*
                    _ => unreachable!("{name} is not a parameter"),
                }
            }
            fn get(&self, name: &str) -> u64 {
                match name {
                    $(stringify!($name) => $crate::params!(@index self.$name; $($Choice)?),)*
                    _ => unreachable!("{name} is not a parameter"),
                }
            }
        }
    };
    // Each twice: of a number, and of a choice.
    (@type) => { u64 };
    (@type $Choice:ty) => { $Choice };
    (@default $name:ident $default:literal) => { $default };
    (@default $name:ident $Default:ident $Choice:ty) => { <$Choice>::$Default };
    (@index $value:expr;) => { $value };
    (@index $value:expr; $Choice:ty) => { $value as u64 };
    (@value $index:ident) => { $index };
    (@value $index:ident $Choice:ty) => { <$Choice as $crate::params::Choice>::of($index) };
    (@limits $name:ident in $limits:expr) => { $limits };
    (@limits $name:ident of $Choice:ty) => { <$Choice as $crate::params::Choice>::LIMITS };
    (@names) => { &[] };
    (@names $Choice:ty) => { <$Choice as $crate::params::Choice>::NAMES };
    (@tight) => { &[] };
    (@tight $tight:expr) => { &$tight };
    (@$rule:ident $name:ident $($wrong:tt)*) => {
        compile_error!(concat!(
            "`", stringify!($name), "` is neither `name = 20 in 1..=4096` nor `name: Enum = Value`"
        ))
    };
}

/// Declares a struct of rules, all of them on by default.
#[macro_export]
macro_rules! rules {
    ($(#[doc = $about:literal])* $vis:vis struct $Rules:ident {
        $($(#[doc = $doc:literal])+ $name:ident,)*
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
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

/// Declares a struct of counters that begin at 0: `field,`, or `field "name",` if reports call it
/// by another name. Its `list` has them by name, in order of declaration.
#[macro_export]
macro_rules! counters {
    ($(#[doc = $about:literal])* $vis:vis struct $Counts:ident {
        $($field:ident $($name:literal)?,)*
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, Default)]
        $vis struct $Counts {
            $(#[doc = concat!("The counter `", $crate::counters!(@name $field $($name)?), "`.")]
            $vis $field: u64,)*
        }

        impl $Counts {
            /// The counts by name.
            $vis fn list(&self) -> Vec<(&'static str, u64)> {
                vec![$(($crate::counters!(@name $field $($name)?), self.$field),)*]
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
}

const NO_FIELD: Field =
    Field { name: "", doc: "", default: 0, limits: 0..=0, choices: &[], tight: &[] };

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
    use super::{Both, Choice as _, Params as _, Rules as _};

    choices! {
        /// Kinds of nothing.
        pub enum Mode {
            /// The largest.
            Pages = "pages",
            Lines = "lines",
            Words = "single-words",
        }
    }

    params! {
        /// Parameters of nothing.
        pub struct Sizes {
            /// How many.
            entries = 20 in 1..=4096, tight [4, 1];
            /// How.
            mode: Mode = Lines;
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
        assert_eq!(sizes.entries, 20);
        sizes.set("entries", 7);
        assert_eq!(sizes.get("entries"), 7);
        assert_eq!(Sizes::FIELDS.iter().map(|field| field.tight.len()).collect::<Vec<_>>(), [2, 0]);
    }

    #[test]
    fn a_choice_is_a_number_to_those_who_do_not_know_its_type() {
        let mut sizes = Sizes::default();
        assert_eq!((sizes.mode, sizes.get("mode")), (Mode::Lines, 1));
        sizes.set("mode", 2);
        assert_eq!((sizes.mode, sizes.get("mode")), (Mode::Words, 2));
        assert_eq!(Mode::of(0), Mode::Pages);
        let mode = &Sizes::FIELDS[1];
        assert_eq!((mode.default, mode.choices), (1, &["pages", "lines", "single-words"][..]));
        assert_eq!(mode.limits, 0..=2);
    }

    params! {
        /// Parameters of something else.
        pub struct Speeds {
            /// How fast.
            speed = 3 in 1..=9;
        }
    }

    rules! {
        /// Rules of something else.
        pub struct Manners {
            /// Knock.
            knock,
            /// Wait.
            wait,
        }
    }

    #[test]
    fn two_parts_are_known_by_the_names_of_both() {
        type Params = Both<Sizes, Speeds>;
        let names: Vec<&str> = Params::FIELDS.iter().map(|field| field.name).collect();
        assert_eq!(names, ["entries", "mode", "speed"]);
        assert_eq!(Params::FIELDS[2].limits, 1..=9);
        let mut params = Params::default();
        params.set("speed", 7);
        params.set("mode", 0);
        assert_eq!((params.first.mode, params.second.speed), (Mode::Pages, 7));
        assert_eq!((params.get("entries"), params.get("speed")), (20, 7));
    }

    #[test]
    fn a_rule_of_either_part_can_be_switched_off() {
        type Rules = Both<Habits, Manners>;
        let names: Vec<&str> = Rules::RULES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["log_first", "knock", "wait"]);
        let rules = Rules::default().without("wait");
        assert!(rules.first.log_first && rules.second.knock && !rules.second.wait);
        assert!(!Rules::default().without("log_first").first.log_first);
    }

    #[test]
    fn a_rule_can_be_switched_off() {
        assert!(Habits::default().log_first);
        assert!(!Habits::default().without("log_first").log_first);
    }
}
