//! A connection to a PostgreSQL server, by libpq: whatever psql understands is understood.

mod connection;
mod libpq;
mod parameters;
mod result;
mod target;

pub use connection::Connection;
pub use result::{Output, Rows};
pub use target::{Password, Target};
