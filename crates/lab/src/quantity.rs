//! Values as people write them: `50ns`, `4cycles`, `64KiB`, `2GHz`, `85%`, `2.47pJ/bit`, `64`,
//! `adr`.

use std::ops::RangeInclusive;

use model::config::Unit;

use crate::error::unknown;

/// The units of one kind of value.
struct Kind {
    /// Its name, as in `unit of time`.
    name: &'static str,
    /// The name with its article, as in `write a time`.
    one: &'static str,
    /// A value of this kind.
    example: &'static str,
    /// The units in which values are printed, ascending, each with its size in the base unit.
    units: &'static [(&'static str, u64)],
    /// Further units that are understood.
    aliases: &'static [(&'static str, u64)],
}

const TIME: Kind = Kind {
    name: "time",
    one: "a time",
    example: "50ns",
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
    ],
    aliases: &[("µs", 1_000_000)],
};

/// The decimal spellings mean the binary units, as they do in the tables of papers.
const BYTES: Kind = Kind {
    name: "size",
    one: "a size",
    example: "64KiB",
    units: &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)],
    aliases: &[("KB", 1 << 10), ("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30), ("TB", 1 << 40)],
};

const FREQUENCY: Kind = Kind {
    name: "frequency",
    one: "a frequency",
    example: "2GHz",
    units: &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)],
    aliases: &[],
};

const PERCENT: Kind =
    Kind { name: "share", one: "a share", example: "85%", units: &[("%", 1)], aliases: &[] };

const ENERGY_PER_BIT: Kind = Kind {
    name: "energy per bit",
    one: "an energy per bit",
    example: "2.47pJ/bit",
    units: &[("fJ/bit", 1), ("pJ/bit", 1_000), ("nJ/bit", 1_000_000)],
    aliases: &[("fJ/b", 1), ("pJ/b", 1_000), ("nJ/b", 1_000_000)],
};

const ENERGY_PER_BYTE: Kind = Kind {
    name: "energy per byte",
    one: "an energy per byte",
    example: "11.839nJ/B",
    units: &[("fJ/B", 1), ("pJ/B", 1_000), ("nJ/B", 1_000_000)],
    aliases: &[("fJ/byte", 1), ("pJ/byte", 1_000), ("nJ/byte", 1_000_000)],
};

const ENERGY_DENSITY: Kind = Kind {
    name: "energy density",
    one: "an energy density",
    example: "100uWh/cm3",
    units: &[("uWh/cm3", 1), ("mWh/cm3", 1_000), ("Wh/cm3", 1_000_000)],
    aliases: &[("µWh/cm3", 1)],
};

/// Reads a value of the given kind into its base unit; `frequency`, in hertz, is what cycles are
/// counted in.
///
/// # Errors
/// The rest of a sentence that begins with the name of the parameter and a colon.
pub fn parse(text: &str, unit: Unit, frequency: u64) -> Result<u64, String> {
    let text = text.trim();
    match unit {
        Unit::Count => count(text),
        Unit::Choice(names) => match names.iter().position(|name| *name == text) {
            Some(index) => Ok(index as u64),
            None => Err(unknown("choice", text, names.iter().copied()).text),
        },
        _ => measure(text, unit, frequency),
    }
}

/// Writes bytes as a person would: `7.9 MiB`.
pub fn about(bytes: u64) -> String {
    let (suffix, size) =
        BYTES.units.iter().rev().find(|(_, size)| bytes >= *size).unwrap_or(&BYTES.units[0]);
    let tenths = (u128::from(bytes) * 10 / u128::from(*size)) as u64;
    match tenths % 10 {
        0 => format!("{} {suffix}", tenths / 10),
        part => format!("{}.{part} {suffix}", tenths / 10),
    }
}

/// Whether a text is a number below 0, with a unit or not: no parameter takes one.
pub fn is_negative(text: &str) -> bool {
    let number = text.trim().strip_prefix('-');
    number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
}

/// Writes a value in the largest unit that suits it, such that [`parse`] reads the same value.
pub fn print(value: u64, unit: Unit) -> String {
    let whole = match unit {
        Unit::Count => return value.to_string(),
        Unit::Choice(names) => return names[value as usize].to_owned(),
        Unit::Bytes => true,
        _ => false,
    };
    let units = kind(unit).units;
    let (suffix, size) = units
        .iter()
        .rev()
        .find(|(_, size)| value >= *size && (!whole || value.is_multiple_of(*size)))
        .unwrap_or(if unit == Unit::Time { &units[1] } else { &units[0] });
    if value.is_multiple_of(*size) {
        return format!("{}{suffix}", value / size);
    }
    let digits = size.ilog10() as usize;
    let places = format!("{:0digits$}", value % size);
    format!("{}.{}{suffix}", value / size, places.trim_end_matches('0'))
}

/// The accepted values, in words: `1 to 4096`, `0ns to 100us`, `fcfs or frfcfs`.
pub fn range(limits: &RangeInclusive<u64>, unit: Unit) -> String {
    match unit {
        Unit::Choice(names) => either(names.iter().copied()),
        _ => format!("{} to {}", print(*limits.start(), unit), print(*limits.end(), unit)),
    }
}

/// The names that a value may have; a number has none.
pub fn choices(unit: Unit) -> &'static [&'static str] {
    match unit {
        Unit::Choice(names) => names,
        _ => &[],
    }
}

/// The name of a kind of value.
pub fn name(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Choice(_) => "choice",
        _ => kind(unit).name,
    }
}

/// Names in a row: `a, b or c`.
fn either<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn kind(unit: Unit) -> &'static Kind {
    match unit {
        Unit::Time => &TIME,
        Unit::Bytes => &BYTES,
        Unit::Frequency => &FREQUENCY,
        Unit::Percent => &PERCENT,
        Unit::EnergyPerBit => &ENERGY_PER_BIT,
        Unit::EnergyPerByte => &ENERGY_PER_BYTE,
        Unit::EnergyDensity => &ENERGY_DENSITY,
        Unit::Count | Unit::Choice(_) => unreachable!("{unit:?} has no units"),
    }
}

/// Reads a whole number that has digits alone, hexadecimal ones behind `0x`: a sign is none.
pub fn integer(text: &str) -> Option<u64> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let is_number = digits.chars().all(|digit| digit.is_digit(radix));
    is_number.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// Reads a bare whole number. If it is none, returns the rest of a sentence that begins with a
/// name.
pub fn count(text: &str) -> Result<u64, String> {
    let (number, suffix) = halves(text);
    match number.parse() {
        Ok(value) if suffix.is_empty() => Ok(value),
        Ok(_) if may_be_unit(suffix) => {
            Err(format!("`{text}` has a unit, but this counts things; write {number}"))
        }
        // Digits that do not fit are out of any range, and are reported as such.
        Err(_) if suffix.is_empty() && !number.is_empty() && !number.contains('.') => Ok(u64::MAX),
        _ => Err(format!("`{text}` is not a whole number; write one, such as 64")),
    }
}

fn measure(text: &str, unit: Unit, frequency: u64) -> Result<u64, String> {
    let Kind { name, one, example, units, aliases } = kind(unit);
    let cycles = (unit == Unit::Time).then_some("cycles");
    let units_named = || either(units.iter().map(|(suffix, _)| *suffix).chain(cycles));
    let (number, suffix) = halves(text);
    let is_read = |_: &(&str, &str)| suffix.is_empty() || may_be_unit(suffix);
    let Some((whole, decimals)) = decimal(number).filter(is_read) else {
        let units = units_named();
        return Err(format!(
            "`{text}` is not {one}; write {one} in {units}, such as \"{example}\""
        ));
    };
    if suffix.is_empty() {
        let units = units_named();
        return Err(format!(
            "`{text}` lacks its unit; write {one} in {units}, such as \"{example}\""
        ));
    }
    if decimals.len() > DECIMALS_MAX {
        return Err(format!("`{text}` has more than {DECIMALS_MAX} decimals; write fewer"));
    }
    let (digits, places) = digits(whole, decimals);
    let scale = 10_u128.pow(places);
    if cycles.is_some() && matches!(suffix, "cycle" | "cycles") {
        let divisor = u128::from(frequency) * scale;
        return Ok(fit((digits.saturating_mul(1_000_000_000_000) + divisor / 2) / divisor));
    }
    let Some((_, size)) = units.iter().chain(*aliases).find(|(known, _)| *known == suffix) else {
        let units = units_named();
        return Err(format!("`{suffix}` is not a unit of {name}; write {one} in {units}"));
    };
    let scaled = digits.saturating_mul(u128::from(*size));
    if scaled % scale != 0 {
        let base = units[0].0;
        return Err(format!("`{text}` is not a whole number of {base}; write fewer decimals"));
    }
    Ok(fit(scaled / scale))
}

/// The number that a text begins with, and the rest.
fn halves(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    (number, rest.trim_start())
}

/// Whether what follows digits can be a unit: in `1e3`, `0x10`, `1_000` and `1,5` the number goes
/// on.
fn may_be_unit(rest: &str) -> bool {
    let begins = |first: char| first.is_alphabetic() || first == '%';
    rest.starts_with(begins) && !rest.starts_with(['e', 'E', 'x', 'X'])
}

/// What stands before and after the point of a decimal number, without zeros at its end.
fn decimal(number: &str) -> Option<(&str, &str)> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let well_formed = !whole.is_empty() && !part.contains('.') && !number.ends_with('.');
    well_formed.then_some((whole, part.trim_end_matches('0')))
}

/// The most decimals of a number (ours: a second in picoseconds has as many).
const DECIMALS_MAX: usize = 12;

/// The digits of a decimal number, and how many of them stand after the point.
fn digits(whole: &str, decimals: &str) -> (u128, u32) {
    if whole.len() > 20 {
        // More than any value: kept as a number that is out of every range.
        return (10_u128.pow(21), 0);
    }
    let all = format!("{whole}{decimals}").parse().expect("32 digits at most");
    (all, decimals.len() as u32)
}

fn fit(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GHZ: u64 = 1_000_000_000;

    #[test]
    fn what_is_printed_is_read_back() {
        let measures = [
            Unit::Count,
            Unit::Time,
            Unit::Bytes,
            Unit::Frequency,
            Unit::Percent,
            Unit::EnergyPerBit,
            Unit::EnergyPerByte,
        ];
        for unit in measures {
            for power in 0..12 {
                for lead in [0, 1, 9, 10, 12, 99, 128, 333, 1000, 1024, 3_332, 65_536, 999_999] {
                    for value in [lead * 10_u64.pow(power), lead << power, (lead << power) + 1] {
                        let text = print(value, unit);
                        assert_eq!(parse(&text, unit, GHZ), Ok(value), "{text} of {unit:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn values_print_in_the_unit_that_suits_them() {
        for (value, unit, text) in [
            (0, Unit::Time, "0ns"),
            (1, Unit::Time, "1ps"),
            (3_332, Unit::Time, "3.332ns"),
            (12_500, Unit::Time, "12.5ns"),
            (100_000_000, Unit::Time, "100us"),
            (0, Unit::Bytes, "0B"),
            (680, Unit::Bytes, "680B"),
            (12 << 20, Unit::Bytes, "12MiB"),
            (1536, Unit::Bytes, "1536B"),
            (3_700_000_000, Unit::Frequency, "3.7GHz"),
            (85, Unit::Percent, "85%"),
            (2_470, Unit::EnergyPerBit, "2.47pJ/bit"),
            (11_839_000, Unit::EnergyPerByte, "11.839nJ/B"),
            (1, Unit::Choice(&["fcfs", "frfcfs"]), "frfcfs"),
        ] {
            assert_eq!(print(value, unit), text);
        }
    }

    #[test]
    fn other_spellings_are_understood() {
        for (text, unit, value) in [
            ("64KB", Unit::Bytes, 64 << 10),
            ("64 KiB", Unit::Bytes, 64 << 10),
            ("0.5MiB", Unit::Bytes, 512 << 10),
            ("4cycles", Unit::Time, 4_000),
            ("1.0000000000000ns", Unit::Time, 1_000),
            ("1 cycle", Unit::Time, 1_000),
            ("1.5µs", Unit::Time, 1_500_000),
            (" 2.47pJ/b ", Unit::EnergyPerBit, 2_470),
        ] {
            assert_eq!(parse(text, unit, GHZ), Ok(value), "{text}");
        }
        // 4 cycles at 3.7 GHz are 1081.08 ps.
        assert_eq!(parse("4cycles", Unit::Time, 3_700_000_000), Ok(1_081));
    }

    #[test]
    fn integers_have_digits_alone() {
        assert_eq!(["64", "0x40", "0xfF"].map(integer), [64, 64, 255].map(Some));
        for text in ["", "+64", "-1", "0x", "0x+40", "40h", "0X40", "18446744073709551616"] {
            assert_eq!(integer(text), None, "{text}");
        }
    }

    const MISTAKES: &[(&str, Unit, &str)] = &[
        (
            "50",
            Unit::Time,
            "`50` lacks its unit; write a time in ps, ns, us, ms, s or cycles, such as \
                \"50ns\"",
        ),
        (
            "64",
            Unit::Bytes,
            "`64` lacks its unit; write a size in B, KiB, MiB, GiB or TiB, such as \"64KiB\"",
        ),
        ("0.85", Unit::Percent, "`0.85` lacks its unit; write a share in %, such as \"85%\""),
        (
            "50GHz",
            Unit::Time,
            "`GHz` is not a unit of time; write a time in ps, ns, us, ms, s or cycles",
        ),
        (
            "4cycles",
            Unit::Bytes,
            "`cycles` is not a unit of size; write a size in B, KiB, MiB, GiB or TiB",
        ),
        (
            "11nJ/bit",
            Unit::EnergyPerByte,
            "`nJ/bit` is not a unit of energy per byte; write an energy per byte in fJ/B, \
                pJ/B or nJ/B",
        ),
        (
            "fast",
            Unit::Frequency,
            "`fast` is not a frequency; write a frequency in Hz, kHz, MHz or GHz, such as \
                \"2GHz\"",
        ),
        (
            "-5ns",
            Unit::Time,
            "`-5ns` is not a time; write a time in ps, ns, us, ms, s or cycles, such as \
                \"50ns\"",
        ),
        (
            "1.2.3ns",
            Unit::Time,
            "`1.2.3ns` is not a time; write a time in ps, ns, us, ms, s or cycles, such as \
                \"50ns\"",
        ),
        (
            "1e3KiB",
            Unit::Bytes,
            "`1e3KiB` is not a size; write a size in B, KiB, MiB, GiB or TiB, such as \"64KiB\"",
        ),
        (
            "1,5GHz",
            Unit::Frequency,
            "`1,5GHz` is not a frequency; write a frequency in Hz, kHz, MHz or GHz, such as \
                \"2GHz\"",
        ),
        ("0.0001ns", Unit::Time, "`0.0001ns` is not a whole number of ps; write fewer decimals"),
        (
            "1.0000000000001cycles",
            Unit::Time,
            "`1.0000000000001cycles` has more than 12 decimals; write fewer",
        ),
        ("4.0", Unit::Count, "`4.0` is not a whole number; write one, such as 64"),
        ("64B", Unit::Count, "`64B` has a unit, but this counts things; write 64"),
        ("4.5", Unit::Count, "`4.5` is not a whole number; write one, such as 64"),
        ("0x10", Unit::Count, "`0x10` is not a whole number; write one, such as 64"),
        ("1e99", Unit::Count, "`1e99` is not a whole number; write one, such as 64"),
        ("1_0", Unit::Count, "`1_0` is not a whole number; write one, such as 64"),
        ("1,000", Unit::Count, "`1,000` is not a whole number; write one, such as 64"),
        ("-1", Unit::Count, "`-1` is not a whole number; write one, such as 64"),
        ("many", Unit::Count, "`many` is not a whole number; write one, such as 64"),
        (
            "adrr",
            Unit::Choice(&["media", "adr", "eadr"]),
            "unknown choice `adrr`; did you mean `adr`? there are: adr, eadr, media",
        ),
    ];

    #[test]
    fn mistakes_are_explained() {
        for (text, unit, expect) in MISTAKES {
            assert_eq!(parse(text, *unit, GHZ), Err((*expect).to_owned()));
        }
    }

    #[test]
    fn words_are_told_one_by_one() {
        let policy = Unit::Choice(&["fcfs", "frfcfs"]);
        assert_eq!(choices(policy), ["fcfs", "frfcfs"]);
        assert_eq!(range(&(0..=1), policy), "fcfs or frfcfs");
        assert_eq!(choices(Unit::Count), [""; 0]);
    }

    #[test]
    fn huge_numbers_are_out_of_range_and_no_panic() {
        let nines = "9".repeat(60);
        assert_eq!(parse(&nines, Unit::Count, GHZ), Ok(u64::MAX));
        assert_eq!(parse(&format!("{nines}s"), Unit::Time, GHZ), Ok(u64::MAX));
        assert_eq!(parse(&format!("{nines}cycles"), Unit::Time, 1), Ok(u64::MAX));
    }
}
