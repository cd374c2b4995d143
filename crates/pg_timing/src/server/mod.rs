//! The server wing: plans, the clock and the settings of a PostgreSQL server.

pub mod advise;
pub mod clock;
pub mod connection;
pub mod ephemeral;
pub mod explain;
pub mod own_sql;
mod settings;

pub use settings::{fast_timing_info, plan_nodes};
