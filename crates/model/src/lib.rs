//! The simulated machine, in the order in which to read it: a module uses only modules above it.

pub mod config;
pub mod contents;
pub mod image;
pub mod params;
pub mod units;
pub mod workload;
