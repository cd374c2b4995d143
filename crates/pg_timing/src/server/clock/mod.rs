//! Measures the read cost of the server's clock: on this host if the server runs here, or else through the server.

mod by_statements;
mod on_host;

use super::session::Session;
use super::settings::Server;
use crate::error::Error;
use crate::report::{ReadCost, Report};
use crate::server::connection::Connection;
use std::sync::atomic::AtomicBool;

/// The read costs of the server's clocks.
#[derive(Clone, Debug)]
pub struct Clocks {
    /// the clock of timestamps, in every version
    pub system: ReadCost,
    /// the clock of the timing settings; the same clock, unless PostgreSQL 19 reads the TSC
    pub read: ReadCost,
    /// the clock of plan nodes
    pub node: ReadCost,
    /// the report about this host, if the server runs here
    pub here: Option<Report>,
}

impl Clocks {
    /// Returns the number of CPUs of the server's host, if it was measured.
    pub fn cpus(&self) -> Option<f64> {
        self.here.as_ref().and_then(|here| here.cpus.online.known().map(|cpus| cpus.len() as f64))
    }

    /// Measures the clocks.
    pub fn of(session: &mut Session, server: &Server, stop: &AtomicBool) -> Clocks {
        let here = match on_host::check_location(session, server) {
            Ok(()) => on_host::clocks(server, stop),
            Err(why) => return by_statements::clocks(session, server, &why, stop),
        };
        match here.read.ns {
            Some(_) => here,
            // For example, the host was too busy for the short measurement.
            None => Clocks { here: here.here, ..by_statements::clocks(session, server, &here.read.how, stop) },
        }
    }
}

/// Measures the read cost of the clock that times the server's plan nodes.
pub fn node_read(connection: &mut Connection, stop: &AtomicBool) -> Result<ReadCost, Error> {
    let mut session = Session::new(connection, stop);
    let server = Server::of(&mut session)?;
    Ok(Clocks::of(&mut session, &server, stop).node)
}

fn known(clock: &str, ns: f64, error: f64, how: &str) -> ReadCost {
    ReadCost {
        ns: Some(ns),
        low_ns: Some((ns - error).max(0.0)),
        high_ns: Some(ns + error),
        clock: clock.into(),
        how: how.into(),
    }
}

fn unknown(clock: &str, how: &str) -> ReadCost {
    ReadCost { ns: None, low_ns: None, high_ns: None, clock: clock.into(), how: how.into() }
}
