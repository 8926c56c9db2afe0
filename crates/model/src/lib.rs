//! The simulated machine, in the order in which to read it: a module uses only modules above it.

pub mod units;
pub mod params;
pub mod contents;
pub mod image;
pub mod workload;
pub mod config;
pub mod calendar;
pub mod agenda;
pub mod sieve;
pub mod meters;
pub mod device;
pub mod wpq;
pub mod controller;
pub mod caches;
pub mod core;
pub mod write_combining;
pub mod locks;
pub mod card;
pub mod design;
pub mod oracle;
pub mod persistency;
pub mod crash;
pub mod epochs;
pub mod report;
pub mod machine;
pub mod engine;
