//! A thread that parses and analyzes entries.

use super::{Batch, Collector, LoggedPlan, Number};
use crate::error::Error;
use crate::server::explain::captured::{Selected, executed};
use crate::server::explain::log::entry::{Content, Entry, Place};
use crate::server::explain::log::hosts::Hosts;
use crate::server::explain::log::parse;
use crate::server::explain::log::skipped::{self, Skips};
use std::sync::Mutex;
use std::sync::mpsc::Receiver;

/// Analyzes the entries of some batches.
pub struct Worker<C> {
    pub collector: C,
    pub skips: Skips,
    pub hosts: Hosts,
    /// batches, and their numbers of plans
    pub plans: Vec<(usize, usize)>,
}

impl<C: Collector> Worker<C> {
    pub fn new(collector: C) -> Worker<C> {
        Worker { collector, skips: Skips::default(), hosts: Hosts::default(), plans: Vec::new() }
    }

    pub fn work(mut self, batches: &Mutex<Receiver<Batch>>) -> Worker<C> {
        loop {
            // The lock is released before the work begins.
            let batch = batches.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recv();
            let Ok(Batch { number, entries, unfinished }) = batch else { return self };
            let mut plans = 0;
            for Entry { place, host, content } in entries {
                if let Content::Failed(session) = content {
                    self.collector.failed(session);
                    continue;
                }
                parse::each(content, self.collector.needs_source(), &mut |parsed| {
                    let plan = Number { batch: number, plan: plans };
                    plans += 1;
                    if let Some(host) = parsed.host.as_ref().or(host.as_ref()) {
                        self.hosts.add(host);
                    }
                    if let Err(error) = self.plan(place, plan, parsed) {
                        self.skips.add(place, error);
                    }
                });
            }
            self.plans.push((number, plans));
            self.collector.end_batch(number, unfinished);
            if !self.collector.wants_more() {
                return self;
            }
        }
    }

    fn plan(&mut self, place: Place, number: Number, parsed: parse::Parsed) -> Result<(), Error> {
        let explained = parsed.found.map_err(|unusable| skipped::error(&unusable));
        match explained.and_then(executed) {
            Ok(selected) => {
                let selected = Selected { source: parsed.source, ..selected };
                let parse::Parsed { query_id, nesting, .. } = parsed;
                self.collector.plan(LoggedPlan { place, number, query_id, nesting, selected })
            }
            Err(error) => {
                self.collector.skipped(&error, parsed.nesting);
                Err(error)
            }
        }
    }
}
