//! Experiments by name: where words become types and errors become sentences.

pub mod campaign;
pub mod describe;
pub mod error;
pub mod experiment;
pub mod machines;
pub mod quantity;
pub mod results;
pub mod settings;
pub mod spec;

pub use campaign::crash;
pub use describe::{explain, list};
pub use error::InputError;
pub use experiment::{plain, run};
pub use model::engine::Control;

/// The version of the simulator.
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
