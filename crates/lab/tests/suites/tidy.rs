//! Rules of the house's style that a stranger would have to be told, checked where neither
//! `rustfmt` nor `clippy` does.

use std::path::{Path, PathBuf};

/// The most lines of a file.
const FILE_LINES_MAX: usize = 600;

/// The most lines of a function.
const FUNCTION_LINES_MAX: usize = 70;

/// The most columns of a comment; `rustfmt` leaves comments alone.
const COMMENT_COLUMNS_MAX: usize = 100;

/// Crates that compute, and neither print nor read anything of the host.
const BELOW_LAB: [&str; 3] = ["model", "designs", "workloads"];

#[test]
fn registries_are_in_the_order_of_names() {
    let designs: Vec<&str> = designs::ALL.iter().map(|entry| entry.card.name).collect();
    let workloads: Vec<&str> = workloads::ALL.iter().map(|entry| entry.about.name).collect();
    assert!(designs.is_sorted(), "{designs:?}");
    assert!(workloads.is_sorted(), "{workloads:?}");
}

/// The documents name everything that a reader may look for: README.md every design (each half of
/// `LOG@ORDER`) and workload, ARCHITECTURE.md every file of one. The suite `litmus` checks
/// docs/litmus.md.
#[test]
fn documents_name_everything_in_the_registries() {
    let read = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        std::fs::read_to_string(path).expect("a document")
    };
    let (readme, map) = (read("README.md"), read("ARCHITECTURE.md"));
    let mut missing = Vec::new();
    let designs = designs::ALL.iter().map(|entry| ("design", entry.card.name));
    let workloads = workloads::ALL.iter().map(|entry| ("workload", entry.about.name));
    for (kind, name) in designs.chain(workloads) {
        let is_named = match name.split_once('@') {
            Some((log, order)) => {
                readme.contains(&format!("`{log}@")) && readme.contains(&format!("@{order}`"))
            }
            None => readme.contains(&format!("`{name}`")),
        };
        if !is_named {
            missing.push(format!("README.md (What there is) does not name the {kind} `{name}`"));
        }
    }
    let orders = designs::ORDERS.iter().map(|entry| entry.card.file);
    let designs = designs::ALL.iter().map(|entry| entry.card.file);
    for file in orders.chain(designs).chain(workloads::ALL.iter().map(|entry| entry.about.file)) {
        let (_, file) = file.split_once("/src/").expect("a file of a crate");
        let name = file.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        let ways = [format!("`{name}`"), format!("`{name}.rs`"), format!("`{name}/`")];
        if !ways.iter().any(|way| map.contains(way)) {
            missing.push(format!("ARCHITECTURE.md (Code map) does not name `{file}`"));
        }
    }
    missing.dedup();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn files_and_functions_are_short() {
    let mut long = Vec::new();
    for (path, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > FILE_LINES_MAX {
            long.push(format!("{} has {} lines", path.display(), lines.len()));
        }
        for (number, name, length) in functions(&lines) {
            if length > FUNCTION_LINES_MAX {
                long.push(format!("{}:{number}: `{name}` has {length} lines", path.display()));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn comments_are_sentences_that_fit() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let (mut fenced, mut sentence) = (false, String::new());
        for (line, number) in text.lines().chain([""]).zip(1..) {
            let comment = line.trim_start();
            fenced ^= comment.starts_with("//") && comment.contains("```");
            if comment.starts_with("//") && !fenced && line.chars().count() > COMMENT_COLUMNS_MAX {
                wrong.push(format!("{}:{number}: too wide", path.display()));
            }
            match comment.strip_prefix("// ") {
                Some(words) => sentence = [&sentence, words].concat(),
                None if is_sentence(&sentence) => sentence.clear(),
                None => {
                    let shown = path.display();
                    wrong.push(format!("{shown}:{}: no sentence: {sentence}", number - 1));
                    sentence.clear();
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_computes_neither_prints_nor_hashes_at_random() {
    let banned = [
        "println!",
        "print!(",
        "std::time::",
        "std::env::",
        "RandomState",
        "collections::HashMap",
        "collections::HashSet",
        "dbg!(",
        "todo!(",
        "unimplemented!(",
    ];
    let mut found = Vec::new();
    for (path, text) in sources() {
        let below = BELOW_LAB.iter().any(|name| path.starts_with(format!("crates/{name}/src")));
        for (line, number) in text.lines().zip(1..).filter(|_| below) {
            let words = banned.iter().filter(|word| line.contains(**word));
            found.extend(words.map(|word| format!("{}:{number}: {word}", path.display())));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// `model` knows no other crate, designs and workloads know `model` alone, and `lab` knows all of
/// them.
#[test]
fn crates_know_what_is_below_them_alone() {
    let known = |name: &str| {
        let path = root().join("crates").join(name).join("Cargo.toml");
        let text = std::fs::read_to_string(path).expect("a crate has a manifest");
        let all = ["model", "designs", "workloads", "lab"];
        let names = |other: &&str| text.contains(&format!("\n{other}.workspace = true"));
        all.into_iter().filter(names).collect::<Vec<_>>()
    };
    assert_eq!(known("model"), [""; 0]);
    assert_eq!(known("designs"), ["model"]);
    assert_eq!(known("workloads"), ["model"]);
    assert_eq!(known("lab"), ["model", "designs", "workloads"]);
}

/// Inside `model` a module uses only modules above it in `lib.rs`, which is in reading order.
#[test]
fn modules_use_what_is_above_them() {
    let all = sources();
    let (_, library) = all
        .iter()
        .find(|(path, _)| path == Path::new("crates/model/src/lib.rs"))
        .expect("model has a lib.rs");
    let order: Vec<&str> = library
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .collect();
    assert!(order.len() > 20, "{order:?}");
    let mut wrong = Vec::new();
    for (path, text) in &all {
        let Ok(inside) = path.strip_prefix("crates/model/src") else { continue };
        let module = inside.iter().next().expect("a file").to_string_lossy();
        let module = module.trim_end_matches(".rs");
        let Some(own) = order.iter().position(|name| *name == module) else { continue };
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        for part in text.lines().filter(is_code).flat_map(|line| line.split("crate::").skip(1)) {
            let used = part.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next();
            if order.iter().position(|name| Some(*name) == used).is_some_and(|used| used > own) {
                wrong.push(format!("{} uses crate::{part}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a design may ask of the controllers: the machine alone has writes arrive, and drains them.
const ASKED_OF_MEMORY: [&str; 14] = [
    "came",
    "controller_of",
    "count_replaced",
    "durable",
    "has_room",
    "is_queued",
    "longer",
    "next_comes",
    "now",
    "on_the_way",
    "prefetch",
    "read",
    "read_beneath",
    "when_room",
];

#[test]
fn designs_write_through_the_floor() {
    let mut wrong = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| path.starts_with("crates/designs"))
    {
        let text: String = text.split_whitespace().collect();
        for asked in text.split("below.memory.").skip(1) {
            let name = asked.split('(').next().unwrap_or_default();
            if !ASKED_OF_MEMORY.contains(&name) {
                wrong.push(format!("{}: below.memory.{name}", path.display()));
            }
        }
        // Under another name the memory would not be found above.
        let has_memory =
            |names: &str| names.split('}').next().is_some_and(|own| own.contains("memory"));
        if text.contains("&mutbelow.memory;") || text.split("letBelow{").skip(1).any(has_memory) {
            wrong.push(format!("{}: a name for below.memory", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What hooks in Python are lent is borrowed again by each of their methods, which is sound while
/// those run one at a time. A Python without the global lock would run them beside each other, and
/// modules of PyO3 allow that unless they say otherwise.
#[test]
fn what_python_is_lent_is_used_under_its_lock() {
    let all = sources();
    let text = |path: &str| {
        let found = all.iter().find(|(other, _)| other == Path::new(path));
        &found.unwrap_or_else(|| panic!("{path} is not there")).1
    };
    assert!(
        text("crates/python/src/script/lent.rs").contains("unsafe"),
        "there is nothing to hold"
    );
    assert!(text("crates/python/src/lib.rs").contains("#[pymodule(gil_used = true)]"));
}

/// The checks of this file see what they are for.
#[test]
fn what_is_wrong_is_seen() {
    let source =
        ["    fn a(", "        b: u64,", "    ) -> u64 {", "        b", "    }", "fn c();"];
    assert_eq!(functions(&source), [(1, "a".to_string(), 5)]);
    assert!(is_sentence("") && is_sentence("It ends.") && is_sentence("`x` is one:"));
    assert!(!is_sentence("lower case.") && !is_sentence("It does not end"));
    assert!(sources().len() > 100);
}

/// The functions that have bodies: the line of each, its name, and how many lines it takes.
fn functions(lines: &[&str]) -> Vec<(usize, String, usize)> {
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let (before, after) = match line.split_once("fn ") {
            Some(parts) if !line.trim_start().starts_with("//") => parts,
            _ => continue,
        };
        let is_item = before.trim_start().split(' ').all(|word| {
            word.is_empty()
                || ["pub", "const", "unsafe", "extern", "\"C\""].contains(&word)
                || word.starts_with("pub(")
        });
        let name: String =
            after.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        let head = lines[index..].iter().find(|line| line.ends_with(['{', ';', '}']));
        if !is_item || name.is_empty() || !head.is_some_and(|head| head.ends_with('{')) {
            continue;
        }
        let close = format!("{}}}", " ".repeat(indent));
        if let Some(length) = lines[index..].iter().position(|line| *line == close) {
            found.push((index + 1, name, length + 1));
        }
    }
    found
}

/// Whether a comment begins and ends as a sentence does.
fn is_sentence(comment: &str) -> bool {
    let Some(first) = comment.chars().next() else { return true };
    !first.is_lowercase() && comment.ends_with(['.', ':', '?', '!', ';', ')', '`'])
}

/// Every Rust file of the workspace, by its path from the root.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder can be read") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source is text");
                let short = path.strip_prefix(root()).expect("it is below the root").to_path_buf();
                found.push((short, text));
            }
        }
    }
    found
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
