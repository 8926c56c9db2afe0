//! The setting that enlarges a log that is too small, where the size that it needs is known.

/// The setting that gives each core's log at least this many bytes, in the steps of its unit.
pub fn log_size(bytes: u64) -> String {
    format!("--set pm.log_size={}KiB", bytes.div_ceil(1 << 10))
}
