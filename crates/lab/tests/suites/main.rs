//! Every suite of the crate, one module each and one program together: ten seconds of linking are
//! spent once, and the tests of all of them share the processors.

mod audit;
mod bad_input;
mod battery;
mod buffers;
mod campaigns;
mod check;
mod check_past_caches;
mod check_threads;
mod checker;
mod common;
mod conformance;
mod corners;
mod coverage_lad;
mod energy;
mod flushes;
mod litmus;
mod lives;
mod loc;
mod logcache;
mod logging;
mod machines;
mod mutants;
mod outside;
mod persistency;
mod programs;
mod replay;
mod room;
mod scenarios;
mod shadow;
mod silo;
mod sql;
mod ssp;
mod template;
mod tidy;
mod trace;
