//! The benchmark without Python: `cargo run --release -p indelible-native --example logging
//! '{"quick": true}'`.

use std::error::Error;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64};

use native::Watch;

fn main() -> Result<(), Box<dyn Error>> {
    let request = std::env::args().nth(1).unwrap_or_else(|| "{}".into());
    let (cancelled, done, total) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let watch = Watch { cancelled: &cancelled, done: &done, total: &total };
    writeln!(std::io::stdout(), "{}", native::logging(&request, watch)?)?;
    Ok(())
}
