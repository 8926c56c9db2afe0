//! Every suite of the crate, one module each and one program together, which is linked once.

mod common;
mod every;
mod kernels;
mod properties;
mod replay;
mod sqlite;
mod structures;
mod traffic;
