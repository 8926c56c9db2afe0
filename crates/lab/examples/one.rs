//! One run, for a profiler: `perf record target/release/examples/one '{"design": ...}'`.

use std::process::ExitCode;

mod asked;

fn main() -> ExitCode {
    asked::answer(lab::run)
}
