//! The script that the workload runs: plain SQL, in two parts if a line divides it, cut into
//! statements and refused early when it is wrong.

use std::borrow::Cow;

use model::workload::{Step, Stop};

use super::connection::{self, Connection};
use super::pragma::Pragma;
use super::words::{self, BYTE_ORDER_MARK};
use crate::rng::Random;

/// The script that is run by default, and its name.
const DEFAULT: (&str, &str) = ("default.sql", include_str!("default.sql"));
/// The line between the two parts, as messages name it.
pub(super) const MARKER: &str = "-- measured";

/// Statements that the rehearsal runs, because later statements need what they make. They cost
/// nothing, since all tables of the rehearsal are empty.
const REHEARSED: [&str; 10] = [
    "ALTER",
    "ANALYZE",
    "BEGIN",
    "COMMIT",
    "CREATE",
    "DROP",
    "END",
    "RELEASE",
    "ROLLBACK",
    "SAVEPOINT",
];

/// Statements that would take a commit out of the batch, with the reason.
const REFUSED: [(&str, &str); 3] = [
    ("ATTACH", "a commit that spans two files needs a journal instead of one atomic batch"),
    ("DETACH", "the workload has one database file for each core"),
    ("VACUUM", "it rewrites and cuts the file outside of an atomic batch"),
];

/// The value of a named parameter of a statement.
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
    /// Returns the variable with a name, colon included.
    ///
    /// # Errors
    /// A sentence that lists the variables.
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
    /// Its text, up to and including the semicolon, which the last of a part may lack.
    pub(super) sql: String,
    /// The line of the script in which it begins, from 1 on.
    pub(super) line: usize,
    /// Its first word, in capitals.
    pub(super) keyword: String,
    /// Its treatment, if it is a pragma.
    pub(super) pragma: Option<Pragma>,
}

/// A script that was read and rehearsed.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// Its name, for messages.
    name: String,
    /// Whether no line divides it: all is measured, and each pass begins on an empty database.
    pub(super) whole: bool,
    /// The statements that fill the database.
    pub(super) populate: Vec<Statement>,
    /// The statements that are measured, and repeated.
    pub(super) measured: Vec<Statement>,
}

impl Script {
    /// Reads a script, or the default one.
    ///
    /// # Errors
    /// [`Stop::Input`] with the script's name, the line and what is wrong there.
    pub(super) fn read(script: Option<&model::script::Script>) -> Step<Script> {
        let (name, text) = script.map_or(DEFAULT, |script| (script.name(), script.text()));
        let (name, populate, measured) = (name.to_owned(), Vec::new(), Vec::new());
        let mut script = Script { name, whole: false, populate, measured };
        script.divide(text)?;
        Ok(script)
    }

    /// The pragmas of the first part that hold for a connection, and not for the database.
    pub(super) fn settings(&self) -> impl Iterator<Item = &Statement> {
        self.populate.iter().filter(|statement| statement.sets())
    }

    /// The pragmas with which the database is checked. Rows that a script let in while it ignored
    /// constraints are no damage, also if it has minded them again since.
    pub(super) fn settings_of_check(&self) -> impl Iterator<Item = &str> {
        let all = self.populate.iter().chain(&self.measured).filter(|statement| statement.sets());
        let ignores = |statement: &Statement| {
            statement.sql.to_ascii_lowercase().contains("ignore_check_constraints")
        };
        let ignored = all.clone().any(ignores).then_some("PRAGMA ignore_check_constraints = ON");
        all.map(|statement| statement.sql.as_str()).chain(ignored)
    }

    /// Returns the error for a line of this script.
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

    /// Cuts the text, rehearses its statements, and divides them at the marker, if there is one.
    fn divide(&mut self, text: &str) -> Step {
        if let Some(zero) = text.find('\0') {
            let line = 1 + newlines(&text[..zero]);
            return Err(self.wrong(line, "a zero byte; a script is plain text in UTF-8"));
        }
        let marker = self.find_marker(text)?;
        let mut rehearsal = Rehearsal::of(self)?;
        let (populate, mut measured) = match marker {
            Some((begins, line)) => {
                let populate = self.cut(&text[..begins], 1, true)?;
                let measured = self.cut(&text[begins..], line, false)?;
                rehearsal.take(&populate)?;
                rehearsal.end_first_part()?;
                (populate, measured)
            }
            None => (Vec::new(), self.cut(text, 1, true)?),
        };
        rehearsal.take(&measured)?;
        rehearsal.end()?;

        measured.retain(|statement| statement.pragma != Some(Pragma::IsSo));
        if measured.iter().all(Statement::sets) {
            let line = text.lines().count().max(1);
            let what = "the script ends, and has no statement to measure";
            return Err(match marker {
                Some(_) => {
                    let hint = format!("put what is to be measured after a line `{MARKER}`");
                    self.wrong(line, format!("{what}: {hint}"))
                }
                None => self.wrong(line, what),
            });
        }
        (self.whole, self.populate, self.measured) = (marker.is_none(), populate, measured);
        Ok(())
    }

    /// Where the marker's line begins, and its number.
    fn find_marker(&self, text: &str) -> Step<Option<(usize, usize)>> {
        let (mut found, mut begins) = (None, 0);
        // The end of the comment or string that a line above began.
        let mut open = 0;
        for (line, content) in (1..).zip(text.split_inclusive('\n')) {
            let ends = begins + content.len();
            let marker = if begins >= open { marker(content) } else { Marker::None };
            match marker {
                Marker::None => {}
                Marker::Slip => {
                    let what =
                        format!("`{}` divides nothing; did you mean `{MARKER}`?", content.trim());
                    return Err(self.wrong(line, what));
                }
                Marker::Divides if found.is_some() => {
                    return Err(self.wrong(line, format!("a second line `{MARKER}`")));
                }
                Marker::Divides => found = Some((begins, line)),
            }
            open = words::outside(text, begins.max(open), ends);
            begins = ends;
        }
        Ok(found)
    }

    /// Cuts a text that begins at `line` into its statements; with `may_set` they may be pragmas
    /// that set something.
    fn cut(&self, mut text: &str, mut line: usize, may_set: bool) -> Step<Vec<Statement>> {
        let mut statements = Vec::new();
        loop {
            let (before, statement) = text.split_at(words::blank(text));
            line += newlines(before);
            if statement.is_empty() {
                return Ok(statements);
            }
            if statement.starts_with('.') {
                let command = statement.split_whitespace().next().unwrap_or(statement);
                let what = format!("`{command}` is a command of the sqlite3 shell; leave it out");
                return Err(self.wrong(line, what));
            }
            let complete = words::statement(statement);
            let ends = complete.unwrap_or(statement.len());
            let sql = statement[..ends].to_owned();
            if complete.is_none() && !connection::is_complete(&format!("{sql}\n;")) {
                return Err(self.wrong(line, "the statement that begins here does not end"));
            }
            if sql != ";" {
                let allowed = Statement::allowed(sql, line, may_set);
                statements.push(allowed.map_err(|what| self.wrong(line, what))?);
            }
            line += newlines(&statement[..ends]);
            text = &statement[ends..];
        }
    }
}

impl Statement {
    /// Whether it sets something for its connection, and is no transaction of its own.
    pub(super) fn sets(&self) -> bool {
        self.pragma == Some(Pragma::Sets)
    }

    /// Returns a text as a statement, if a script may have it in this part.
    fn allowed(sql: String, line: usize, may_set: bool) -> Result<Statement, String> {
        let keyword = words::word(&sql).to_ascii_uppercase();
        if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == keyword) {
            return Err(format!("{keyword} is not supported here: {reason}"));
        }
        if keyword == "EXPLAIN" && words::explained(&sql).eq_ignore_ascii_case("PRAGMA") {
            let what = "EXPLAIN PRAGMA is not supported here: SQLite obeys some pragmas already \
                        when it compiles them";
            return Err(what.to_owned());
        }
        if keyword != "PRAGMA" {
            return Ok(Statement { sql, line, keyword, pragma: None });
        }
        let (name, pragma) = Pragma::read(&sql[keyword.len()..])?;
        if !may_set && pragma != Pragma::Asks {
            return Err(format!("PRAGMA {name} belongs before the line `{MARKER}`"));
        }
        Ok(Statement { sql, line, keyword, pragma: Some(pragma) })
    }
}

/// An empty database in host memory on which all statements of a script are prepared in order, so
/// that a wrong one is reported before anything runs.
struct Rehearsal<'a> {
    script: &'a Script,
    database: Connection,
    /// The line in which the open transaction begins.
    begun: Option<usize>,
    /// The line of the first statement that made something temporary.
    temporary: Option<usize>,
}

impl Rehearsal<'_> {
    fn of(script: &Script) -> Step<Rehearsal<'_>> {
        let random = Random::new(0, model::units::CoreId(0), "rehearsal");
        let database = Connection::memory(random)?;
        Ok(Rehearsal { script, database, begun: None, temporary: None })
    }

    fn take(&mut self, statements: &[Statement]) -> Step {
        for statement in statements {
            let wrong = |what| self.script.wrong(statement.line, what);
            let parameters = self.database.parameters(&statement.sql).map_err(wrong)?;
            self.script.variables(statement, &parameters)?;
            if !REHEARSED.contains(&statement.keyword.as_str()) {
                continue;
            }
            let sql = self.without_rows(&statement.sql).map_err(wrong)?;
            self.database.execute(&sql).map_err(wrong)?;
            let begun = self.begun.or(Some(statement.line));
            self.begun = begun.filter(|_| !self.database.is_autocommit());
            let temporary = self.database.query("SELECT name FROM temp.sqlite_schema");
            let is_none = temporary.map_err(wrong)?.is_empty();
            self.temporary = self.temporary.or(Some(statement.line)).filter(|_| !is_none);
        }
        Ok(())
    }

    /// Returns a statement that makes the same table without its rows, because the query may have
    /// no end without the rows and the parameters on which it counts.
    fn without_rows<'a>(&self, sql: &'a str) -> Result<Cow<'a, str>, String> {
        let Some((table, select)) = words::table_as(sql) else { return Ok(Cow::Borrowed(sql)) };
        let select = select.trim_end().trim_end_matches(';');
        // The columns of a subquery have the same names as those of a table made from it.
        let columns = self.database.columns(&format!("SELECT * FROM ({select}\n)"))?;
        let quoted = columns.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
        Ok(Cow::Owned(format!("{table}({})", quoted.collect::<Vec<_>>().join(", "))))
    }

    /// Checks that the first part leaves no open transaction, and nothing temporary.
    fn end_first_part(&self) -> Step {
        self.end()?;
        let Some(line) = self.temporary else { return Ok(()) };
        let what = format!(
            "the measured part has a connection of its own, in which nothing temporary of before is \
             left: put `CREATE TEMP ... IF NOT EXISTS` after the line `{MARKER}`"
        );
        Err(self.script.wrong(line, what))
    }

    fn end(&self) -> Step {
        let Some(line) = self.begun else { return Ok(()) };
        Err(self.script.wrong(line, "the transaction that begins here does not end"))
    }
}

/// The role of a line as the marker between the two parts.
enum Marker {
    None,
    /// It differs from the marker by a letter, and would be skipped as a comment.
    Slip,
    /// It is the marker: `--measured`, `-- Measured` and so on.
    Divides,
}

fn marker(line: &str) -> Marker {
    let is_around = |letter: char| letter.is_whitespace() || letter == BYTE_ORDER_MARK;
    let Some(comment) = line.trim_matches(is_around).strip_prefix("--") else {
        return Marker::None;
    };
    let is_before = |letter: char| letter.is_whitespace() || letter == '-';
    let comment = comment.trim_start_matches(is_before).to_ascii_lowercase();
    match strsim::damerau_levenshtein(&comment, "measured") {
        0 => Marker::Divides,
        1 => Marker::Slip,
        _ => Marker::None,
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}
