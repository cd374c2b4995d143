//! What is measured on a PostgreSQL server: its plans, its clock, and its settings.

pub mod advise;
mod clock;
pub mod connection;
pub mod ephemeral;
pub mod explain;
mod session;
mod settings;
