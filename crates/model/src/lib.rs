//! The simulated machine, in the order in which to read it: a module uses only modules above it.

pub mod agenda;
pub mod caches;
pub mod calendar;
pub mod config;
pub mod contents;
pub mod controller;
pub mod core;
pub mod crash;
pub mod design;
pub mod device;
pub mod engine;
pub mod image;
pub mod locks;
pub mod machine;
pub mod meters;
pub mod oracle;
pub mod params;
pub mod report;
pub mod units;
pub mod workload;
pub mod write_combining;
