//! What a log that is too small is to be raised to, where that is known.

/// The setting that gives each core's log so many bytes, in the steps in which it can be set.
pub fn log_size(bytes: u64) -> String {
    format!("--set pm.log_size={}KiB", bytes.div_ceil(1 << 10))
}
