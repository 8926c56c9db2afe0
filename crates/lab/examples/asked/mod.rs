//! What the examples share: the request is the first word, and the answer, or why there is none, is
//! printed.

use std::io::Write;
use std::process::ExitCode;

use lab::{Control, InputError};

/// Answers the request, and fails if there is no answer.
pub fn answer(of: fn(&str, &Control) -> Result<String, InputError>) -> ExitCode {
    let request = std::env::args().nth(1).unwrap_or_default();
    match of(&request, &Control::default()) {
        Ok(answer) => {
            writeln!(std::io::stdout(), "{answer}").expect("standard output is open");
            ExitCode::SUCCESS
        }
        Err(error) => {
            writeln!(std::io::stderr(), "{error}").expect("standard error is open");
            ExitCode::FAILURE
        }
    }
}
