//! Litmus tests, as `one` is one run: a request as JSON, `{}` for all there are.

use std::process::ExitCode;

mod asked;

fn main() -> ExitCode {
    asked::answer(lab::litmus)
}
