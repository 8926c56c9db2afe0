//! What a user sets with `--set section.field=value`: the machine's sections, the design, the
//! workload.

use model::config::{ConfigField, FIELDS};
use model::params::Field;
use serde_json::Value;

use crate::error::{InputError, unknown, unknown_of};
use crate::quantity;

/// Settings by what they apply to, in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Parameters of the machine, as `section.key`.
    pub machine: Vec<(String, String)>,
    /// Parameters of the design, by name.
    pub design: Vec<(String, String)>,
    /// Parameters of the workload, by name.
    pub workload: Vec<(String, String)>,
}

/// Splits `section.field=value` into `section.field` and `value`.
///
/// # Errors
/// When the text has another form.
pub fn pair(text: &str) -> Result<(String, String), InputError> {
    match text.split_once('=') {
        Some((path, value)) if path.contains('.') && !value.trim().is_empty() => {
            Ok((path.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(InputError::new(format!(
            "`{text}` is not a setting; write section.field=value, such as controller.wpq=128"
        ))),
    }
}

/// Sorts settings (`section.field`, `value`) by what they apply to.
///
/// `workload.items` is the machine's parameter for every workload, and 0 leaves it as it is; other
/// fields of `workload` belong to the workload that is run.
///
/// # Errors
/// When a section is unknown. Fields and values are checked by their owners.
pub fn split(settings: &[(String, String)]) -> Result<Settings, InputError> {
    let mut split = Settings::default();
    for (path, value) in settings {
        let Some((section, field)) = path.split_once('.') else {
            return Err(InputError::new(format!(
                "`{path}` is not section.field; {}",
                instance(path)
            )));
        };
        if path == "workload.items" && value.trim() == "0" {
            // The setting 0 asks for as many as the machine says, which is what it says anyway.
            continue;
        }
        let of_machine = FIELDS.iter().any(|known| known.section == section);
        let of_workload =
            !FIELDS.iter().any(|known| known.section == section && known.key == field);
        let (owner, name) = match section {
            "design" => (&mut split.design, field),
            "workload" if of_workload => (&mut split.workload, field),
            _ if of_machine => (&mut split.machine, path.as_str()),
            _ if section.is_empty() || section.contains('/') => {
                return Err(section_of_a_file(path));
            }
            _ => return Err(unknown_section(section)),
        };
        owner.push((name.to_owned(), value.clone()));
    }
    Ok(split)
}

/// Says what to write for the name of a field without its section, which may be that of the
/// machine, of some design or of some workload.
fn instance(name: &str) -> String {
    let is_named = |field: &&ConfigField| field.key == name || field.aliases.contains(&name);
    let mut sections: Vec<&str> =
        FIELDS.iter().filter(is_named).map(|field| field.section).collect();
    let has = |fields: &[Field]| fields.iter().any(|field| field.name == name);
    let of_designs = designs::ALL.iter().any(|entry| has(entry.fields));
    let of_workloads = workloads::ALL.iter().any(|entry| has(entry.fields));
    sections.extend(of_designs.then_some("design"));
    sections.extend(of_workloads.then_some("workload"));
    if sections.is_empty() {
        return "write, for instance, controller.wpq".to_owned();
    }
    let names: Vec<String> = sections.iter().map(|section| format!("{section}.{name}")).collect();
    format!("write {}", names.join(" or "))
}

/// The error for the path of a file in the place of a section.
fn section_of_a_file(path: &str) -> InputError {
    let field = path.rsplit('.').next().unwrap_or_default();
    InputError::new(format!(
        "`{path}` is not section.field; for a design in a file write design.{field}, or the \
         file's name without folder and suffix in place of `design`"
    ))
}

/// The error for a section that does not exist. The command line replaces the name of a design or a
/// workload that is run by `design` or `workload`, so one that comes here is not run.
fn unknown_section(section: &str) -> InputError {
    let is_design = designs::ALL.iter().any(|entry| entry.card.name == section);
    let is_workload = workloads::ALL.iter().any(|entry| entry.about.name == section);
    match (is_design, is_workload) {
        (true, _) => InputError::new(format!("`{section}` is a design that is not run here")),
        (_, true) => InputError::new(format!("`{section}` is a workload that is not run here")),
        _ => unknown("section", section, sections()),
    }
}

/// The sections that a setting may name.
pub fn sections() -> Vec<&'static str> {
    let mut sections = vec!["design", "workload"];
    sections.extend(FIELDS.iter().map(|field| field.section));
    let mut seen = Vec::new();
    sections.retain(|section| {
        !seen.contains(section) && {
            seen.push(section);
            true
        }
    });
    sections
}

/// Reads settings of a design or a workload against its parameters; `owner` is, for instance,
/// `design silo`.
///
/// # Errors
/// When a name is unknown or set twice, or a value is not one that the parameter takes.
pub fn params(
    owner: &str,
    fields: &[Field],
    settings: &[(String, String)],
) -> Result<Vec<(String, u64)>, InputError> {
    let mut values: Vec<(String, u64)> = Vec::new();
    for (name, text) in settings {
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            return Err(match fields {
                [] => InputError::new(format!("{owner} has no parameter `{name}`; it has none")),
                _ => unknown_of("parameter", name, owner, fields.iter().map(|field| field.name)),
            });
        };
        if values.iter().any(|(set, _)| set == name) {
            return Err(InputError::new(format!("`{name}` of {owner} is set twice; keep one")));
        }
        values.push((name.clone(), value(owner, field, text.trim())?));
    }
    Ok(values)
}

/// The value of a parameter where these are set: the last one that was set, or the default.
pub fn value_of(field: &Field, set: &[(String, u64)]) -> u64 {
    let own = set.iter().rev().find(|(name, _)| name == field.name);
    own.map_or(field.default, |(_, value)| *value)
}

/// A value of a parameter as JSON: the name of a choice, or the number.
pub fn shown(field: &Field, value: u64) -> Value {
    match field.choices.get(value as usize) {
        Some(choice) => Value::from(*choice),
        None => Value::from(value),
    }
}

fn value(owner: &str, field: &Field, text: &str) -> Result<u64, InputError> {
    let name = field.name;
    if !field.choices.is_empty() {
        return match field.choices.iter().position(|choice| *choice == text) {
            Some(index) => Ok(index as u64),
            None => {
                let owner = format!("`{name}` of {owner}");
                Err(unknown_of("value", text, &owner, field.choices.iter().copied()))
            }
        };
    }
    let (least, most) = field.limits.clone().into_inner();
    match quantity::count(text) {
        Ok(value) if field.limits.contains(&value) => Ok(value),
        Ok(_) => Err(InputError::new(format!(
            "`{name}` of {owner} is out of range: `{text}`; it takes {least} to {most}"
        ))),
        Err(_) => Err(InputError::new(format!(
            "`{name}` of {owner} takes a bare number, {least} to {most}, not `{text}` ({})",
            field.doc.trim().trim_end_matches('.')
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[Field] = &[
        Field {
            name: "entries",
            doc: " Logs that one core's buffer holds.",
            default: 20,
            limits: 1..=4096,
            choices: &[],
            tight: &[],
        },
        Field {
            name: "mode",
            doc: " How.",
            default: 0,
            limits: 0..=1,
            choices: &["eager", "lazy"],
            tight: &[],
        },
    ];

    fn of(settings: &[(&str, &str)]) -> Vec<(String, String)> {
        settings.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn settings_go_to_their_owners() {
        let pairs = of(&[
            ("controller.wpq", "128"),
            ("design.entries", "40"),
            ("workload.items", "24"),
            ("workload.skew", "9"),
        ]);
        let settings = split(&pairs).expect("each has a section that exists");
        assert_eq!(settings.machine, of(&[("controller.wpq", "128"), ("workload.items", "24")]));
        assert_eq!(settings.design, of(&[("entries", "40")]));
        assert_eq!(settings.workload, of(&[("skew", "9")]));
    }

    #[test]
    fn settings_of_no_owner_are_refused() {
        let error = split(&of(&[("controler.wpq", "1")])).expect_err("a misspelt section");
        let text = error.to_string();
        let start =
            "unknown section `controler`; did you mean `controller`? there are: controller, ";
        assert!(text.starts_with(start), "{text}");
        assert_eq!(
            split(&of(&[("wpq", "1")])).expect_err("no section").to_string(),
            "`wpq` is not section.field; write controller.wpq"
        );
        for (path, instance) in [
            ("tWRITE", "write pm.tWRITE"),
            ("latency", "write l1d.latency or l2.latency or llc.latency"),
            ("entries", "write tlb.entries or design.entries"),
            ("buckets", "write workload.buckets"),
            ("delay", "write, for instance, controller.wpq"),
            (
                "./mine.py.entries",
                "for a design in a file write design.entries, or the file's name",
            ),
        ] {
            let text = split(&of(&[(path, "1")])).expect_err("no section").to_string();
            assert!(text.contains(&format!(" is not section.field; {instance}")), "{text}");
        }
        assert_eq!(pair("pm.tREAD= 50ns"), Ok(("pm.tREAD".into(), "50ns".into())));
        for text in ["pm.tREAD", "tREAD=50ns", "pm.tREAD=", ""] {
            let expect = "is not a setting; write section.field=value, such as controller.wpq=128";
            let error = pair(text).expect_err("not a setting").to_string();
            assert_eq!(error, format!("`{text}` {expect}"));
        }
    }

    #[test]
    fn parameters_are_numbers_or_choices() {
        let settings = of(&[("entries", "40"), ("mode", "lazy")]);
        assert_eq!(
            params("design silo", FIELDS, &settings),
            Ok(vec![("entries".into(), 40), ("mode".into(), 1)])
        );
    }

    #[test]
    fn the_last_value_that_is_set_counts() {
        let set = [("entries".to_owned(), 7), ("entries".to_owned(), 8)];
        assert_eq!(FIELDS.iter().map(|field| value_of(field, &set)).collect::<Vec<_>>(), [8, 0]);
    }

    #[test]
    fn mistakes_are_explained() {
        for (settings, expect) in [
            (
                vec![("entires", "1")],
                "unknown parameter `entires` of design silo; did you mean `entries`? there are: \
                entries, mode",
            ),
            (
                vec![("entries", "64B")],
                "`entries` of design silo takes a bare number, 1 to 4096, not `64B` (Logs that \
                one core's buffer holds)",
            ),
            (
                vec![("entries", "0")],
                "`entries` of design silo is out of range: `0`; it takes 1 to 4096",
            ),
            (
                vec![("mode", "lasy")],
                "unknown value `lasy` of `mode` of design silo; did you mean `lazy`? there are: \
                lazy, eager",
            ),
            (
                vec![("mode", "lazy"), ("mode", "lazy")],
                "`mode` of design silo is set twice; keep one",
            ),
        ] {
            let error = params("design silo", FIELDS, &of(&settings)).expect_err("a mistake");
            assert_eq!(error.to_string(), expect);
        }
        assert_eq!(
            params("design native", &[], &of(&[("x", "1")])).expect_err("none").to_string(),
            "design native has no parameter `x`; it has none"
        );
    }
}
