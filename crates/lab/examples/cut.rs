//! One crash campaign, as `one` is one run.

use std::io::Write;

fn main() {
    let spec = std::env::args().nth(1).unwrap_or_default();
    let answer = match lab::crash(&spec, &lab::Control::default()) {
        Ok(answer) => answer,
        Err(error) => error.to_string(),
    };
    writeln!(std::io::stdout(), "{answer}").expect("standard output is open");
}
