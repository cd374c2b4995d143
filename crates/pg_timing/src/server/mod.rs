//! The server wing: plans, the clock and the settings of a PostgreSQL server.

pub mod advise;
pub mod clock;
pub mod connection;
pub mod ephemeral;
pub mod explain;
pub mod fast_timing;
mod own_sql;
mod session;
mod settings;

pub use clock::node_read;
