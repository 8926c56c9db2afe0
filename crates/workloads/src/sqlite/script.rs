//! The script that the workload runs: plain SQL in two parts, cut into statements and refused early
//! when it is wrong.

use model::workload::{Step, Stop};

use super::connection::{self, Connection};
use crate::rng::Random;

/// The script that is run if the user brings none, and its name.
const DEFAULT: (&str, &str) = ("default.sql", include_str!("default.sql"));
/// The line between the two parts.
const MARKER: &str = "-- measured";

/// Statements that the rehearsal runs: they cost nothing on empty tables, and later statements need
/// what they make.
const REHEARSED: [&str; 9] =
    ["ALTER", "BEGIN", "COMMIT", "CREATE", "DROP", "END", "RELEASE", "ROLLBACK", "SAVEPOINT"];

/// Statements that would take a commit out of the batch, with the reason.
const REFUSED: [(&str, &str); 3] = [
    ("ATTACH", "a commit that spans two files needs a journal instead of one atomic batch"),
    ("DETACH", "the workload has one database file for each core"),
    ("VACUUM", "it rewrites and cuts the file outside of an atomic batch"),
];

/// The pragmas that a script may set: those that leave files, journals and locks alone.
const PRAGMAS: [&str; 8] = [
    "automatic_index",
    "case_sensitive_like",
    "cell_size_check",
    "foreign_keys",
    "ignore_check_constraints",
    "recursive_triggers",
    "reverse_unordered_selects",
    "secure_delete",
];

/// What stands for a named parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    /// `:random`, uniform over the integers from 0 to 2^63 - 1, new for each execution.
    Random,
    /// `:n`, the transactions that this core has completed.
    Number,
    /// `:core`, the core, from 0 on.
    Core,
    /// `:rows`, the parameter `rows`.
    Rows,
}

impl Variable {
    /// The variable of that name, colon included.
    ///
    /// # Errors
    /// A sentence that says which there are.
    pub(super) fn named(name: Option<&str>) -> Result<Variable, String> {
        match name {
            Some(":random") => Ok(Variable::Random),
            Some(":n") => Ok(Variable::Number),
            Some(":core") => Ok(Variable::Core),
            Some(":rows") => Ok(Variable::Rows),
            other => Err(format!(
                "unknown parameter `{}`; a statement has `:random`, `:n`, `:core`, `:rows`",
                other.unwrap_or("?")
            )),
        }
    }
}

/// One statement of a script.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    /// Its text, up to and including the semicolon.
    pub(super) sql: String,
    /// The line of the script in which it begins, from 1 on.
    pub(super) line: usize,
    /// Its first word, in capitals.
    pub(super) keyword: String,
}

/// A script that was read and rehearsed.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// Its name, for messages.
    name: String,
    /// What fills the database.
    pub(super) populate: Vec<Statement>,
    /// What is measured, and repeated.
    pub(super) measured: Vec<Statement>,
}

impl Script {
    /// Reads a script, or the default one.
    ///
    /// # Errors
    /// [`Stop::Input`] with the script's name, the line and what is wrong there.
    pub(super) fn read(script: Option<&(String, String)>) -> Step<Script> {
        let (name, text) = match script {
            Some((name, text)) => (name.as_str(), text.as_str()),
            None => DEFAULT,
        };
        let empty = Script { name: name.to_owned(), populate: Vec::new(), measured: Vec::new() };
        let script = empty.with_statements_of(text)?;
        script.populate.iter().try_for_each(|statement| script.allow(statement, true))?;
        script.measured.iter().try_for_each(|statement| script.allow(statement, false))?;
        script.rehearse()?;
        Ok(script)
    }

    /// What is wrong in a line of this script.
    pub(super) fn wrong(&self, line: usize, what: impl std::fmt::Display) -> Stop {
        Stop::Input(format!("script `{}`, line {line}: {what}", self.name))
    }

    /// The variables of a statement's parameters, in the order of their numbers.
    pub(super) fn variables(
        &self,
        statement: &Statement,
        parameters: &[Option<String>],
    ) -> Step<Vec<Variable>> {
        let named = parameters.iter().map(|name| Variable::named(name.as_deref()));
        named.collect::<Result<_, _>>().map_err(|what| self.wrong(statement.line, what))
    }

    fn with_statements_of(mut self, text: &str) -> Step<Script> {
        let lines = || text.split_inclusive('\n').enumerate();
        let mut markers = lines().filter(|(_, line)| line.trim() == MARKER).map(|(at, _)| at);
        let marker = markers.next();
        if let Some(second) = markers.next() {
            return Err(self.wrong(second + 1, format!("a second line `{MARKER}`")));
        }
        if let Some(marker) = marker {
            let split = lines().take(marker).map(|(_, line)| line.len()).sum();
            self.populate = self.cut(&text[..split], 1)?;
            self.measured = self.cut(&text[split..], marker + 1)?;
        } else {
            let fills = |statement: &Statement| ["CREATE", "PRAGMA"].contains(&&*statement.keyword);
            (self.populate, self.measured) = self.cut(text, 1)?.into_iter().partition(fills);
        }
        if self.measured.is_empty() {
            let last = text.lines().count().max(1);
            return Err(self.wrong(last, "the script ends, and has no statement to measure"));
        }
        Ok(self)
    }

    /// Cuts a text that begins at `line` into its statements.
    fn cut(&self, text: &str, line: usize) -> Step<Vec<Statement>> {
        let mut statements = Vec::new();
        let mut rest = text;
        loop {
            let begins = text.len() - rest.len() + blank(rest);
            let line = line + text[..begins].matches('\n').count();
            rest = &text[begins..];
            if rest.is_empty() {
                return Ok(statements);
            }
            // A semicolon in a string, a comment or a trigger's body does not complete a statement.
            let ends = rest.match_indices(';').map(|(at, _)| at + 1);
            let complete = ends.into_iter().find(|end| connection::is_complete(&rest[..*end]));
            let sql = match complete {
                Some(end) => rest[..end].to_owned(),
                None => format!("{rest}\n;"),
            };
            if !connection::is_complete(&sql) {
                return Err(self.wrong(line, "the statement that begins here does not end"));
            }
            rest = &rest[complete.unwrap_or(rest.len())..];
            let keyword = word(&sql).to_ascii_uppercase();
            if sql != ";" {
                statements.push(Statement { sql, line, keyword });
            }
        }
    }

    fn allow(&self, statement: &Statement, populates: bool) -> Step {
        let wrong = |what: String| Err(self.wrong(statement.line, what));
        let keyword = statement.keyword.as_str();
        if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == keyword) {
            return wrong(format!("{keyword} is not possible here: {reason}"));
        }
        if keyword != "PRAGMA" {
            return Ok(());
        }
        let rest = &statement.sql[keyword.len()..];
        let name = word(&rest[blank(rest)..]).to_ascii_lowercase();
        if !PRAGMAS.contains(&name.as_str()) {
            return wrong(format!(
                "PRAGMA {name} is not possible here: it could take commits out of the atomic \
                 batch; possible are {}",
                PRAGMAS.join(", ")
            ));
        }
        if !populates {
            return wrong(format!("PRAGMA {name} belongs before the line `{MARKER}`"));
        }
        Ok(())
    }

    /// Prepares every statement, in order, on an empty database in host memory, so that a wrong one
    /// is told before anything runs.
    fn rehearse(&self) -> Step {
        let database = Connection::memory(Random::new(0, model::units::CoreId(0), "rehearsal"))?;
        let mut begun = None;
        for part in [&self.populate, &self.measured] {
            for statement in part {
                let wrong = |what| self.wrong(statement.line, what);
                let parameters = database.parameters(&statement.sql).map_err(wrong)?;
                self.variables(statement, &parameters)?;
                if REHEARSED.contains(&statement.keyword.as_str()) {
                    database.execute(&statement.sql).map_err(wrong)?;
                }
                begun = match (database.is_autocommit(), begun) {
                    (true, _) => None,
                    (false, None) => Some(statement.line),
                    (false, begun) => begun,
                };
            }
            if let Some(line) = begun {
                return Err(self.wrong(line, "the transaction that begins here does not end"));
            }
        }
        Ok(())
    }
}

/// How many bytes of white space and comments a text begins with.
fn blank(text: &str) -> usize {
    let mut rest = text.trim_start();
    loop {
        let comment = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            return text.len() - rest.len();
        };
        rest = rest[comment..].trim_start();
    }
}

/// The word that a text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    &text[..end.unwrap_or(text.len())]
}
