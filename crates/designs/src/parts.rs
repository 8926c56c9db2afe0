//! What several designs are made of.

pub(crate) mod area;
