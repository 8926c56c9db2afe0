//! One run, for a profiler: `perf record target/release/examples/one '{"design": ...}'`.

use std::io::Write;

fn main() {
    let spec = std::env::args().nth(1).unwrap_or_default();
    let answer = match lab::run(&spec, &lab::Control::default()) {
        Ok(answer) => answer,
        Err(error) => error.to_string(),
    };
    writeln!(std::io::stdout(), "{answer}").expect("standard output is open");
}
