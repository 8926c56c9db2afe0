//! Every suite of the crate, one module each and one program together, which is linked once.

mod campaigns;
mod common;
mod controller;
mod domains;
mod early;
mod link;
mod measured;
mod past_caches;
mod saving;
mod turns;
mod waits;
