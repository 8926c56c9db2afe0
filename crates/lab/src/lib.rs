//! Experiments by name: where words become types and errors become sentences.

pub mod error;
pub mod quantity;
pub mod settings;
pub mod machines;
mod corners;
pub mod profiles;
pub mod scripts;
mod checker;
pub mod names;
pub mod spec;
mod configuration;
mod usage;
mod host_time;
pub mod results;
pub mod experiment;
mod plain;
mod lives;
mod left_out;
mod perfetto;
pub mod trace;
pub mod campaign;
pub mod describe;
pub mod battery;
pub mod litmus;

pub use battery::battery;
pub use campaign::crash;
pub use describe::{explain, list};
pub use error::InputError;
pub use experiment::{check, run};
pub use litmus::litmus;
pub use model::control::Control;
pub use plain::plain;
pub use trace::trace;

/// The version of the simulator.
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
