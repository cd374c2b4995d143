//! A connection to a PostgreSQL server, by libpq: whatever psql understands is understood.

mod connection;
mod error;
mod libpq;
mod parameters;
mod target;

pub use connection::{Connection, Output, Rows};
pub use error::{Error, SqlState};
pub use target::{Password, Target};
