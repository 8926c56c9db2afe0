//! One crash campaign, as `one` is one run.

use std::process::ExitCode;

mod asked;

fn main() -> ExitCode {
    asked::answer(lab::crash)
}
