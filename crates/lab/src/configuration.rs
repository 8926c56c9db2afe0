//! The whole configuration of a run, and its identity.

use model::params::Field;
use serde_json::{Map, Value, json};

use crate::machines;
use crate::settings;
use crate::spec::Resolved;

/// All that a result of this version depends on: every parameter of the machine with its unit, of
/// the design and of the workload, whether it was set or is the default. Of a script and of a
/// design in Python it has a digest.
pub fn configuration(resolved: &Resolved) -> Value {
    let Resolved { design, workload, machine, .. } = resolved;
    json!({
        "cores": resolved.cores,
        "txs_per_core": resolved.txs,
        "warmup_per_core": resolved.warmup,
        "seed": resolved.seed,
        "exact": resolved.exact,
        "without": resolved.without,
        "design": {
            "name": design.card.name,
            "script": design.script,
            "params": params(design.fields, &resolved.design_settings),
        },
        "workload": {
            "name": workload.about.name,
            "script": resolved.script.as_ref().map(|script| machines::fingerprint(script.text())),
            "params": params(workload.fields, &resolved.workload_settings),
        },
        "machine": machines::values(&machine.config),
    })
}

/// The identity of what was run: whatever a result depends on changes it.
pub fn identity(configuration: &Value) -> String {
    machines::fingerprint(&format!("{}\n{configuration}", crate::version()))
}

fn params(fields: &[Field], set: &[(String, u64)]) -> Map<String, Value> {
    let value = |field: &Field| settings::shown(field, settings::value_of(field, set));
    fields.iter().map(|field| (field.name.into(), value(field))).collect()
}

#[cfg(test)]
mod tests {
    use model::script::Script;

    use super::*;
    use crate::spec::{Spec, Usual};

    fn resolved(change: &str) -> Resolved {
        let spec = format!(r#"{{"design": "silo", "workload": "hash", "cores": 3{change}}}"#);
        Spec::read(&spec).and_then(|spec| spec.resolve(Usual::RUN)).expect("a spec")
    }

    #[test]
    fn a_configuration_has_what_was_set_and_what_was_not() {
        let set =
            r#", "settings": {"design.entries": "7", "core.frequency": "1GHz"}, "exact": true"#;
        let said = configuration(&resolved(set));
        let of = |path: &str| said.pointer(path).unwrap_or_else(|| panic!("it has no {path}"));
        assert_eq!(*of("/design/params/entries"), 7);
        assert_eq!(*of("/design/params/overflow"), "parallel");
        assert_eq!(*of("/workload/params/buckets"), 0);
        assert_eq!(*of("/machine/core/clk_domain"), "1GHz");
        assert_eq!(*of("/machine/controller/write_buffer_size"), 64);
        assert_eq!((of("/cores"), of("/txs_per_core")), (&3.into(), &2_000.into()));
        assert_eq!((of("/seed"), of("/exact")), (&1.into(), &true.into()));
    }

    /// A default that is set is the same run.
    #[test]
    fn what_changes_no_value_does_not_change_the_identity() {
        let of = |change: &str| identity(&configuration(&resolved(change)));
        assert_eq!(of(""), of(r#", "txs": 2000, "settings": {"design.entries": "20"}"#));
    }

    #[test]
    fn whatever_a_result_depends_on_changes_the_identity() {
        let of = |resolved: &Resolved| identity(&configuration(resolved));
        let changes = [
            "",
            r#", "seed": 2"#,
            r#", "txs": 104"#,
            r#", "warmup": 11"#,
            r#", "exact": true"#,
            r#", "without": "undo_newest_first""#,
            r#", "machine": "tiny""#,
            r#", "settings": {"pm.banks": "32"}"#,
        ];
        let mut found: Vec<String> = changes.map(|change| of(&resolved(change))).into();
        let mut resolved = resolved("");
        resolved.cores = 2;
        found.push(of(&resolved));
        resolved.design_settings.push(("entries".into(), 7));
        found.push(of(&resolved));
        resolved.workload_settings.push(("items".into(), 7));
        found.push(of(&resolved));
        resolved.script = Some(Script::new("mine.sql", "SELECT 1;"));
        found.push(of(&resolved));
        resolved.script = Some(Script::new("mine.sql", "SELECT 2;"));
        found.push(of(&resolved));
        let changed = found.len();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), changed);
    }
}
