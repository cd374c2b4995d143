//! The hosts, containers and pods that wrote the plans of a log.

use crate::report::LogHost;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The names and numbers of plans of more hosts are not kept.
const MAX_HOSTS: usize = 1000;

/// The number of plans by host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hosts {
    plans: BTreeMap<Arc<str>, u64>,
    /// plans of hosts after the first thousand
    others: u64,
}

impl Hosts {
    /// Counts a plan of a host.
    pub fn add(&mut self, host: &Arc<str>) {
        if let Some(plans) = self.plans.get_mut(host) {
            *plans += 1;
        } else if self.plans.len() < MAX_HOSTS {
            self.plans.insert(Arc::clone(host), 1);
        } else {
            self.others += 1;
        }
    }

    /// Returns the hosts, if the plans are not all from one. The one with the most plans comes first.
    pub fn several(&self) -> Vec<LogHost> {
        if self.plans.len() < 2 {
            return Vec::new();
        }
        let named = self.plans.iter().map(|(name, plans)| LogHost { name: name.to_string(), plans: *plans });
        let mut all: Vec<LogHost> = named.collect();
        all.sort_by_key(|host| std::cmp::Reverse(host.plans));
        if self.others > 0 {
            all.push(LogHost { name: "other hosts".into(), plans: self.others });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(hosts: &Hosts) -> Vec<(String, u64)> {
        hosts.several().into_iter().map(|host| (host.name, host.plans)).collect()
    }

    #[test]
    fn plans_are_counted_by_host() {
        let of = |names: &[&str]| {
            let mut hosts = Hosts::default();
            names.iter().for_each(|name| hosts.add(&Arc::from(*name)));
            hosts
        };
        assert_eq!(counted(&of(&["db-1", "db-1"])), []);
        assert_eq!(
            counted(&of(&["db-1", "db-1", "db-2", "db-1", "db-3"])),
            [("db-1".into(), 3), ("db-2".into(), 1), ("db-3".into(), 1)]
        );
    }

    #[test]
    fn the_number_of_names_is_limited_but_all_plans_are_counted() {
        let mut hosts = Hosts::default();
        (0..MAX_HOSTS + 7).for_each(|number| hosts.add(&Arc::from(format!("db-{number}"))));
        let all = counted(&hosts);
        assert_eq!((all.len(), all.last()), (MAX_HOSTS + 1, Some(&("other hosts".into(), 7))));
    }
}
