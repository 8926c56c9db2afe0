//! The program of one core: the script's statements, on a connection.

use std::rc::Rc;
use std::sync::Arc;

use model::units::CoreId;
use model::workload::{Pm, Program, Step, Stop};

use super::connection::{Connection, Prepared};
use super::pragma::Pragma;
use super::script::{MARKER, Script, Statement, Variable};
use crate::rng::Random;

/// A script on a connection.
pub(super) struct Runner {
    pub(super) connection: Rc<Connection>,
    script: Arc<Script>,
    /// Pragmas of the workload's own, which hold while the script is measured.
    pub(super) own_settings: Vec<String>,
    /// The file on which each pass begins, if the script is measured whole.
    pub(super) empty: Arc<[u8]>,
    /// Whether a pass is under way; otherwise the next one is to begin on the empty file.
    begun: bool,
    /// The measured statements that are prepared.
    plans: Vec<Option<Plan>>,
    /// The measured statement that is next.
    next: usize,
    /// The number of the pass over the measured statements; 0 while the first part runs.
    pass: u64,
    /// The completed transactions, counted from the number of the first one.
    number: i64,
    /// Draws `:random`.
    random: Random,
    core: CoreId,
    rows: u64,
    /// The values of a statement's parameters.
    values: Vec<i64>,
}

/// A prepared statement.
struct Plan {
    prepared: Prepared,
    variables: Vec<Variable>,
}

impl Runner {
    pub(super) fn new(
        connection: Rc<Connection>,
        script: Arc<Script>,
        random: Random,
        core: CoreId,
        rows: u64,
    ) -> Runner {
        Runner {
            connection,
            script,
            own_settings: Vec::new(),
            empty: Arc::default(),
            begun: false,
            plans: Vec::new(),
            next: 0,
            pass: 0,
            number: 0,
            random,
            core,
            rows,
            values: Vec::new(),
        }
    }

    /// Sets a pragma of the workload's own.
    pub(super) fn set(&self, pragma: &str) -> Step {
        self.connection
            .execute(&format!("PRAGMA {pragma}"))
            .map_err(|what| Stop::Failed(format!("SQLite does not take PRAGMA {pragma}: {what}")))
    }

    /// Runs the first part of the script, after a statement that makes the database's first page.
    pub(super) fn populate(&mut self, first: &str, pm: &mut Pm<'_>) -> Step {
        let (connection, script) = (Rc::clone(&self.connection), Arc::clone(&self.script));
        let result = connection.with_pm(pm, || {
            connection.execute(first).map_err(Stop::Failed)?;
            let does = |statement: &&Statement| statement.pragma != Some(Pragma::IsSo);
            script.populate.iter().filter(does).try_for_each(|statement| {
                let plan = self.plan(statement)?;
                let result = self.run(statement, &plan);
                connection.finalize(plan.prepared);
                result
            })
        });
        self.reason(result)
    }

    /// Prepares the measured part; `:n` begins at a number. In a second part the pragmas of the
    /// first part are set again, and statements are prepared; one that needs something that another
    /// makes is prepared at its turn, as are all of a script that is measured whole.
    pub(super) fn begin_measured(&mut self, first_number: i64) -> Step {
        (self.number, self.pass) = (first_number, 1);
        let script = Arc::clone(&self.script);
        if script.whole {
            self.plans = script.measured.iter().map(|_| None).collect();
            // A database that a power failure has left is emptied first.
            self.begun = *self.connection.file().bytes() == *self.empty;
            return if self.begun { self.begin_pass() } else { Ok(()) };
        }
        self.begun = true;
        self.set_own()?;
        for pragma in script.settings() {
            let result = self.connection.execute(&pragma.sql);
            result.map_err(|what| script.wrong(pragma.line, what))?;
        }
        self.plans = script.measured.iter().map(|statement| self.plan(statement).ok()).collect();
        Ok(())
    }

    fn set_own(&self) -> Step {
        self.own_settings.iter().try_for_each(|pragma| self.set(pragma))
    }

    /// Begins a pass of a script that is measured whole, on an empty database and another
    /// connection. Returns whether that took a transaction of the design.
    fn begin_anew(&mut self, pm: &mut Pm<'_>) -> Step<bool> {
        let emptied = self.connection.file().become_bytes(&self.empty, pm)?;
        self.connection = Rc::new(self.connection.open_again()?);
        self.begun = true;
        let connection = Rc::clone(&self.connection);
        let result = connection.with_pm(pm, || self.begin_pass());
        self.reason(result)?;
        Ok(emptied)
    }

    /// Sets the pragmas with which a pass begins.
    fn begin_pass(&mut self) -> Step {
        self.set_own()?;
        self.run_settings()
    }

    /// Runs the next statements as long as they are pragmas that set something. The script has at
    /// least one other statement.
    fn run_settings(&mut self) -> Step {
        let script = Arc::clone(&self.script);
        while let Some(pragma) = script.measured.get(self.next).filter(|next| next.sets()) {
            self.run_next(pragma)?;
            if self.next == 0 {
                break;
            }
        }
        Ok(())
    }

    fn plan(&self, statement: &Statement) -> Step<Plan> {
        let wrong = |what| self.wrong(statement, what);
        let parameters = self.connection.parameters(&statement.sql).map_err(wrong)?;
        let variables = self.script.variables(statement, &parameters)?;
        let prepared = self.connection.prepare(&statement.sql).map_err(wrong)?;
        Ok(Plan { prepared, variables })
    }

    fn run(&mut self, statement: &Statement, plan: &Plan) -> Step {
        let random = (self.random.any() >> 1) as i64;
        self.values.clear();
        self.values.extend(plan.variables.iter().map(|variable| match variable {
            Variable::Random => random,
            Variable::Number => self.number,
            Variable::Core => i64::from(self.core.0),
            Variable::Rows => self.rows as i64,
        }));
        let result = self.connection.run(&plan.prepared, &self.values);
        result.map_err(|what| self.wrong(statement, what))
    }

    /// Returns the error of a statement, with the pass, since a statement may fail only when it is
    /// repeated.
    fn wrong(&self, statement: &Statement, mut what: String) -> Stop {
        if self.pass > 1 && self.script.whole {
            what += &format!(" (in pass {})", self.pass);
        } else if self.pass > 1 {
            what += &format!(
                " (in pass {}: what is measured is repeated; what is to be done once belongs before \
                 a line `{MARKER}`)",
                self.pass
            );
        }
        self.script.wrong(statement.line, what)
    }

    /// Runs the next measured statement, which is the one given.
    fn run_next(&mut self, statement: &Statement) -> Step {
        let at = self.next;
        let plan = match self.plans[at].take() {
            Some(plan) => plan,
            None => self.plan(statement)?,
        };
        let result = self.run(statement, &plan);
        if self.script.whole {
            // It is run again only on another connection.
            self.connection.finalize(plan.prepared);
        } else {
            self.plans[at] = Some(plan);
        }
        result?;
        self.next = (at + 1) % self.plans.len();
        self.pass += u64::from(self.next == 0);
        self.begun = !self.script.whole || self.next != 0;
        Ok(())
    }

    /// Runs statements up to the end of a transaction, and the pragmas after it that set something.
    fn run_transaction(&mut self) -> Step {
        let script = Arc::clone(&self.script);
        let begins = self.next;
        loop {
            self.run_next(&script.measured[self.next])?;
            if self.connection.is_autocommit() {
                return if self.begun { self.run_settings() } else { Ok(()) };
            }
            if self.next == 0 {
                let line = script.measured[begins].line;
                return Err(script.wrong(line, "the transaction that begins here does not end"));
            }
        }
    }

    /// Returns how many of the measured statements the current pass, or the last one, has run.
    #[cfg(test)]
    pub(super) fn ran(&self) -> usize {
        if self.begun { self.next } else { self.script.measured.len() }
    }

    /// Returns the result, or the reason of a failed operation on the file, which says more than
    /// SQLite's error.
    fn reason(&self, result: Step) -> Step {
        self.connection.file().stop.clone().map_or(result, Err)
    }
}

impl Program for Runner {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        if !self.begun && self.begin_anew(pm)? {
            return Ok(());
        }
        let batches_before = self.connection.file().batches;
        let connection = Rc::clone(&self.connection);
        connection.take_rolled_back();
        let result = connection.with_pm(pm, || self.run_transaction());
        self.reason(result)?;
        let batches = self.connection.file().batches - batches_before;
        match batches {
            0 if connection.take_rolled_back() => {
                pm.begin_abortable()?;
                pm.abort();
            }
            0 => pm.tx(|_| Ok(()))?,
            1 => {}
            _ => {
                return Err(Stop::Failed(format!(
                    "SQLite committed one transaction in {batches} atomic batches"
                )));
            }
        }
        self.number += 1;
        Ok(())
    }
}
