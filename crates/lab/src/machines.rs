//! The machines, by name or from a file: presets, a user's own values over them, and where each
//! value comes from.

use std::fmt::Write as _;
use std::fs::FileType;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use model::config::{Config, ConfigField, FIELDS, Unit};
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{InputError, closest_first, unknown, unknown_of};
use crate::quantity;

/// The presets, in the order of their names.
const PRESETS: &[(&str, &str)] = &[
    ("cxl", include_str!("../../../machines/cxl.toml")),
    ("hops", include_str!("../../../machines/hops.toml")),
    ("loc", include_str!("../../../machines/loc.toml")),
    ("optane", include_str!("../../../machines/optane.toml")),
    ("silo", include_str!("../../../machines/silo.toml")),
    ("ssp", include_str!("../../../machines/ssp.toml")),
    ("tiny", include_str!("../../../machines/tiny.toml")),
];

/// The source of a value that a user gave without one.
const USER: &str = "user";

/// A machine with the source of each of its values.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The name.
    pub name: String,
    /// What it is, in one line.
    pub summary: String,
    /// The files on which it builds, each as the one before names it.
    pub extends: Vec<String>,
    /// Every parameter.
    pub config: Config,
    /// What was said of each parameter, in the order of [`FIELDS`].
    pub values: Vec<Given>,
}

/// A value as it was written, and its source.
#[derive(Clone, Debug)]
pub struct Given {
    /// The value as written; `None` for a default.
    pub written: Option<String>,
    /// The paper, the tool, "ours: " and a reason, or "user".
    pub source: String,
    /// The file and line, to begin an error with; empty for a default and for a setting.
    place: String,
    /// The key, and another of its names if that was written.
    named: String,
}

/// Loads the machine of that name, or of the TOML file at that path, with `settings`
/// (`section.key`, `value`) in place of its values. The order of the settings does not matter.
///
/// # Errors
/// When there is no such machine, or a key or a value is not one that it can have.
pub fn load(name_or_path: &str, settings: &[(String, String)]) -> Result<Machine, InputError> {
    let mut draft = Draft::read(name_or_path, None, &mut Vec::new())?;
    let settings = settings.iter().map(|(path, text)| {
        let (section, key) = path.split_once('.').unwrap_or((path, ""));
        Assignment {
            section: section.to_owned(),
            key: key.to_owned(),
            text: text.clone(),
            source: USER.to_owned(),
            place: String::new(),
        }
    });
    draft.apply(settings.collect())?;
    draft.resolve()
}

/// Returns the path of a parameter, as `section.key`, by its name here, whichever tool's name it
/// was given.
///
/// # Errors
/// A sentence, when there is none.
pub fn own_path(path: &str) -> Result<String, InputError> {
    let (section, key) = path.split_once('.').unwrap_or((path, ""));
    let field = &FIELDS[find(section, key)?];
    Ok(format!("{}.{}", field.section, field.key))
}

/// The names of the presets.
pub fn names() -> Vec<&'static str> {
    PRESETS.iter().map(|(name, _)| *name).collect()
}

/// The presets, one row each.
pub fn rows() -> Value {
    let row = |name: &&str| {
        let machine = load(name, &[]).expect("a test loads every preset");
        let config = &machine.config;
        let shown = |path: &str| printed(config, field(path));
        json!({
            "name": machine.name,
            "summary": machine.summary,
            "core": shown("core.model"),
            "cores_max": shown("core.cores_max"),
            "frequency": shown("core.clk_domain"),
            "llc": shown("llc.size"),
            "pm_read": shown("pm.tREAD"),
            "pm_write": shown("pm.tWRITE"),
            "wpq": shown("controller.write_buffer_size"),
            "domain": shown("controller.domain"),
            "hash": fingerprint(&canonical(config)),
        })
    };
    json!({ "kind": "machines", "rows": names().iter().map(row).collect::<Vec<_>>() })
}

/// Every parameter of a machine with its value, source, meaning and accepted range.
pub fn explain(machine: &Machine) -> Value {
    let row = |(field, given): (&ConfigField, &Given)| {
        json!({
            "section": field.section,
            "key": field.key,
            "value": printed(&machine.config, field),
            "written": given.written,
            "unit": quantity::name(field.unit),
            "source": given.source,
            "doc": field.doc.trim(),
            "range": quantity::range(&field.limits, field.unit),
            "choices": quantity::choices(field.unit),
            "default": value_of(field.default, field.unit),
            "aliases": field.aliases,
        })
    };
    json!({
        "kind": "machine",
        "name": machine.name,
        "summary": machine.summary,
        "extends": machine.extends,
        "rows": FIELDS.iter().zip(&machine.values).map(row).collect::<Vec<_>>(),
    })
}

/// The parameters in which two machines differ, with both values and sources.
pub fn diff(left: &Machine, right: &Machine) -> Value {
    let mut rows = Vec::new();
    for (index, field) in FIELDS.iter().enumerate() {
        let values = (printed(&left.config, field), printed(&right.config, field));
        if values.0 == values.1 {
            continue;
        }
        rows.push(json!({
            "section": field.section,
            "key": field.key,
            "left": values.0,
            "right": values.1,
            "left_source": left.values[index].source,
            "right_source": right.values[index].source,
            "unit": quantity::name(field.unit),
            "doc": field.doc.trim(),
        }));
    }
    json!({
        "kind": "machine-diff",
        "left": left.name,
        "right": right.name,
        "identical": rows.is_empty(),
        "parameters": FIELDS.len(),
        "rows": rows,
    })
}

/// Every value of a machine by section and canonical key, as a preset would have it.
pub fn values(config: &Config) -> Value {
    let mut sections = serde_json::Map::new();
    for field in FIELDS {
        let section = sections.entry(field.section).or_insert_with(|| json!({}));
        section[field.key] = printed(config, field);
    }
    sections.into()
}

/// A configuration as TOML: every parameter by its canonical key, in order of declaration. Loading
/// it gives the same configuration.
pub fn canonical(config: &Config) -> String {
    let mut text = String::new();
    let mut section = "";
    for field in FIELDS {
        if field.section != section {
            section = field.section;
            writeln!(text, "[{section}]").expect("a string takes every write");
        }
        // JSON and TOML write numbers and plain strings alike.
        writeln!(text, "{} = {}", field.key, printed(config, field))
            .expect("a string takes every write");
    }
    text
}

/// A hash of a text that stays the same between versions and hosts (FNV-1a, 128 bits).
pub fn fingerprint(text: &str) -> String {
    let hash = text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
    });
    format!("{hash:032x}")
}

/// A value as JSON: numbers for counts, otherwise the text that a preset would have.
fn printed(config: &Config, field: &ConfigField) -> Value {
    value_of(config.get(field.section, field.key), field.unit)
}

fn value_of(value: u64, unit: Unit) -> Value {
    match unit {
        Unit::Count => json!(value),
        _ => json!(quantity::print(value, unit)),
    }
}

/// The parameter at a path that is known to exist.
pub(crate) fn field(path: &str) -> &'static ConfigField {
    let at = |field: &&ConfigField| path.split_once('.') == Some((field.section, field.key));
    FIELDS.iter().find(at).unwrap_or_else(|| unreachable!("{path} is not a parameter"))
}

/// A value that a file or a setting gives to a parameter.
struct Assignment {
    section: String,
    key: String,
    text: String,
    source: String,
    place: String,
}

/// A machine in the making. Values stay as written until all of them are known, because what a
/// cycle is depends on a value that may come later.
struct Draft {
    name: String,
    summary: String,
    extends: Vec<String>,
    values: Vec<Given>,
}

impl Draft {
    /// Reads what a preset or a file says, over what it extends. `within` is the directory from
    /// which a file is extended, and `chain` has the files that are being read, each by one path.
    fn read(
        name_or_path: &str,
        within: Option<&Path>,
        chain: &mut Vec<PathBuf>,
    ) -> Result<Draft, InputError> {
        let preset = PRESETS.iter().find(|(name, _)| *name == name_or_path);
        let (shown, text, whole, directory) = if let Some((name, text)) = preset {
            (format!("machine {name}"), (*text).to_owned(), PathBuf::from(name), None)
        } else {
            let path = path_of(name_or_path, within)?;
            let shown = path.display().to_string();
            let text = text_of(&path).map_err(|why| {
                InputError::new(format!(
                    "machine file {shown}: {why}; name a file that can be read, or a preset"
                ))
            })?;
            let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
            (shown, text, whole, path.parent().map(Path::to_path_buf))
        };
        if chain.contains(&whole) {
            return Err(InputError::new(format!("{shown}: extends itself; name another machine")));
        }
        chain.push(whole);
        let stem = Path::new(name_or_path).file_stem().unwrap_or_default();
        let file = File::parse(&shown, &text)?;
        let mut draft = match &file.extends {
            Some(base) => Draft::read(base, directory.as_deref(), chain)
                .map_err(|error| at(&file.extends_at, format!("extends: {error}")))?,
            None => Draft::of_defaults(),
        };
        draft.extends.splice(0..0, file.extends.filter(|base| !names().contains(&base.as_str())));
        draft.name = file.name.unwrap_or_else(|| stem.to_string_lossy().into_owned());
        if preset.is_none() && names().contains(&draft.name.as_str()) {
            // A copy of a preset that has kept its name is not the preset.
            draft.name = format!("{} ({name_or_path})", draft.name);
        }
        draft.summary = file.summary.unwrap_or(draft.summary);
        draft.apply(file.assignments)?;
        Ok(draft)
    }

    fn of_defaults() -> Draft {
        let given = |field: &ConfigField| Given {
            written: None,
            source: field.source.to_owned(),
            place: String::new(),
            named: field.key.to_owned(),
        };
        Draft {
            name: String::new(),
            summary: String::new(),
            extends: Vec::new(),
            values: FIELDS.iter().map(given).collect(),
        }
    }

    /// Puts values in place of those that are there. No parameter may be given twice, also not
    /// under two of its names, so that the order does not matter.
    fn apply(&mut self, assignments: Vec<Assignment>) -> Result<(), InputError> {
        let mut assigned = vec![false; FIELDS.len()];
        for assignment in assignments {
            let Assignment { section, key, text, source, place } = assignment;
            let index = find(&section, &key).map_err(|error| at(&place, error.text))?;
            let own = FIELDS[index].key;
            if std::mem::replace(&mut assigned[index], true) {
                return Err(at(&place, format!("{section}.{own} is set twice; keep one")));
            }
            let named = if key == own { key } else { format!("{own} ({key})") };
            self.values[index] = Given { written: Some(text), source, place, named };
        }
        Ok(())
    }

    /// Reads every value, the frequency first, and checks each and then all.
    fn resolve(self) -> Result<Machine, InputError> {
        let mut config = Config::default();
        let is_frequency = |index: &usize| FIELDS[*index].unit == Unit::Frequency;
        let (first, rest): (Vec<usize>, Vec<usize>) = (0..FIELDS.len()).partition(is_frequency);
        for index in first.into_iter().chain(rest) {
            let ConfigField { section, key, unit, ref limits, .. } = FIELDS[index];
            let Given { written: Some(text), place, named, .. } = &self.values[index] else {
                continue;
            };
            let out_of_range = || {
                let mut range = quantity::range(limits, unit);
                // A setting of 0 keeps what the machine says, so 0 is no number for a machine.
                if place.is_empty() && (section, key) == ("workload", "items") {
                    range += &format!(", or 0 for as many as machine {} has", self.name);
                }
                at(place, format!("{section}.{named}: `{text}` is out of range; it takes {range}"))
            };
            if quantity::is_negative(text) {
                return Err(out_of_range());
            }
            let value = quantity::parse(text, unit, config.core.frequency)
                .map_err(|error| at(place, format!("{section}.{named}: {error}")))?;
            if !limits.contains(&value) {
                return Err(out_of_range());
            }
            config.set(section, key, value);
        }
        config.check().map_err(|(path, problem)| {
            InputError::new(format!("machine {}: {path}: {problem}", self.name))
        })?;
        let Draft { name, summary, extends, values } = self;
        Ok(Machine { name, summary, extends, config, values })
    }
}

/// The path that a name means, if it can mean a file.
fn path_of(name: &str, within: Option<&Path>) -> Result<PathBuf, InputError> {
    if !name.contains(['/', '\\']) && !name.ends_with(".toml") && !matches!(name, "." | "..") {
        let error = unknown("machine", name, names());
        return Err(InputError::new(format!("{error}, or the path of a TOML file")));
    }
    Ok(match within {
        Some(directory) => directory.join(name.strip_prefix("./").unwrap_or(name)),
        None => PathBuf::from(name),
    })
}

/// Reads a file, or says why that fails. Devices such as /dev/zero have no end.
fn text_of(path: &Path) -> Result<String, String> {
    let is_device = |kind: FileType| kind.is_char_device() || kind.is_block_device();
    if std::fs::metadata(path).is_ok_and(|about| is_device(about.file_type())) {
        return Err("is a device".into());
    }
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => "is a directory".into(),
        _ => error.to_string(),
    })
}

/// Where a parameter stands in [`FIELDS`], by its key or another of its names.
fn find(section: &str, key: &str) -> Result<usize, InputError> {
    let sections = FIELDS.iter().map(|field| field.section);
    if !sections.clone().any(|known| known == section) {
        let mut known: Vec<&str> = sections.collect();
        known.dedup();
        return Err(unknown("section", section, known));
    }
    let is_named = |field: &ConfigField| field.key == key || field.aliases.contains(&key);
    let of_section = |field: &&ConfigField| field.section == section;
    if let Some(index) = FIELDS.iter().position(|field| field.section == section && is_named(field))
    {
        return Ok(index);
    }
    // `pm.size` means one of the sizes of `pm` rather than another section's.
    let is_part = |field: &ConfigField| field.key.ends_with(&format!("_{key}"));
    // A key that several sections have, as each cache has `latency`, does not say which is meant.
    let mut others = FIELDS.iter().filter(|field| is_named(field));
    let other = others.next().filter(|_| others.next().is_none());
    if let Some(other) = other.filter(|_| !FIELDS.iter().filter(of_section).any(is_part)) {
        let (right, key) = (other.section, other.key);
        let error =
            format!("`{key}` is a parameter of {right}, not of {section}; write {right}.{key}");
        return Err(InputError::new(error));
    }
    // An alias that is close counts for its parameter.
    let names = FIELDS.iter().filter(of_section).flat_map(|field| {
        field.aliases.iter().map(|alias| (*alias, field.key)).chain([(field.key, field.key)])
    });
    let names: Vec<(&str, &str)> = names.collect();
    let order = closest_first(key, names.iter().map(|(name, _)| *name));
    let closest = names.iter().find(|(name, _)| *name == order[0]).expect("it is one of them");
    let keys = FIELDS.iter().filter(of_section).map(|field| field.key);
    let mut error = unknown_of("parameter", key, section, keys);
    if closest.0 != closest.1 && !error.text.contains("did you mean") {
        let hint = format!("; did you mean `{}` ({})? there are: ", closest.1, closest.0);
        error.text = error.text.replacen("; there are: ", &hint, 1);
    }
    Err(error)
}

fn at(place: &str, error: String) -> InputError {
    InputError::new(if place.is_empty() { error } else { format!("{place}: {error}") })
}

/// What a TOML file says of a machine.
#[derive(Default)]
struct File {
    name: Option<String>,
    summary: Option<String>,
    extends: Option<String>,
    /// The place in the file at which it says what it extends.
    extends_at: String,
    assignments: Vec<Assignment>,
}

impl File {
    fn parse(shown: &str, text: &str) -> Result<File, InputError> {
        let place = |offset: usize| {
            let line = 1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
            format!("{shown}:{line}")
        };
        let table = DeTable::parse(text).map_err(|error| {
            let problem = error.message().trim().replace('\n', "; ");
            at(&place(error.span().map_or(0, |span| span.start)), problem)
        })?;
        let mut file = File::default();
        for (key, value) in table.get_ref() {
            let here = place(key.span().start);
            let word = match key.get_ref().as_ref() {
                "name" => &mut file.name,
                "summary" => &mut file.summary,
                "extends" => &mut file.extends,
                section => {
                    let assignments = section_of(section, value, &here, &place)?;
                    file.assignments.extend(assignments);
                    continue;
                }
            };
            let Some(text) = value.get_ref().as_str() else {
                return Err(at(&here, format!("{}: write a string in quotes", key.get_ref())));
            };
            if text.trim().is_empty() || text.contains(char::is_control) {
                return Err(at(&here, format!("{}: write one line of text", key.get_ref())));
            }
            *word = Some(text.to_owned());
            if key.get_ref() == "extends" {
                file.extends_at = here;
            }
        }
        Ok(file)
    }
}

/// The values that one section of a file gives.
fn section_of(
    section: &str,
    value: &Spanned<DeValue<'_>>,
    here: &str,
    place: &dyn Fn(usize) -> String,
) -> Result<Vec<Assignment>, InputError> {
    let Some(table) = value.get_ref().as_table() else {
        let error =
            format!("`{section}` is outside of a section; put it into one, such as [controller]");
        return Err(at(here, error));
    };
    let mut assignments = Vec::new();
    for (key, value) in table {
        let here = place(key.span().start);
        let path = format!("{section}.{}", key.get_ref());
        let (text, source) = value_in_file(value.get_ref())
            .map_err(|error| at(&here, format!("{path}: {error}")))?;
        assignments.push(Assignment {
            section: section.to_owned(),
            key: key.get_ref().to_string(),
            text,
            source,
            place: here,
        });
    }
    Ok(assignments)
}

/// The value and the source of `key = VALUE` or `key = { value = VALUE, source = "..." }`.
fn value_in_file(value: &DeValue<'_>) -> Result<(String, String), String> {
    let Some(table) = value.as_table() else {
        return Ok((scalar(value)?, USER.to_owned()));
    };
    let (mut text, mut source) = (None, None);
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "value" => text = Some(scalar(value.get_ref())?),
            "source" => match value.get_ref() {
                DeValue::String(text) => source = Some(text.to_string()),
                other => return Err(format!("`source` must be text, not {}", other.type_str())),
            },
            other => return Err(unknown("key", other, ["value", "source"]).text),
        }
    }
    let text = text.ok_or("`value` is missing; write { value = \"50ns\", source = \"...\" }")?;
    Ok((text, source.unwrap_or_else(|| USER.to_owned())))
}

/// Returns a value as it would stand in a setting. Which values are allowed is for its parameter to
/// say.
fn scalar(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(u64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| number.to_string(), |number| number.to_string())),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Ok(truth.to_string()),
        other => Err(format!("a value must be a string or a number, not {}", other.type_str())),
    }
}
