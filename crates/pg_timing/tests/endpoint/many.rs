//! Many connections at the same time.

use super::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allows as many open files as possible. Returns their number.
fn allow_open_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    limit.maximum.map_or(usize::MAX, |maximum| maximum as usize)
}

/// Slowloris: each connection sends one byte from time to time, so that no request is ever complete.
#[test]
fn a_thousand_slow_clients_do_not_stop_a_scrape() {
    allow_open_files();
    let endpoint = start(PAGE);
    let address = endpoint.address();
    let mut slow: Vec<TcpStream> = (0..1000).map(|_| connect(address)).collect();
    for byte in *b"GET /metri" {
        for stream in &mut slow {
            // The endpoint has closed most of them.
            _ = stream.write(&[byte]);
        }
        assert_scrape_works(address, PAGE);
    }
    let limit = MAX_CONNECTIONS as u64;
    let refused = count(&endpoint, "refused");
    assert!((1000 - limit..=1000).contains(&refused), "{refused}");
    assert_eq!(count(&endpoint, "200"), 10);
}

#[test]
fn a_scrape_works_among_ten_thousand_connections() {
    // Both ends are in this process, which has other tests.
    let most = allow_open_files().saturating_sub(4000).min(10_000);
    let endpoint = start(PAGE);
    let address = endpoint.address();
    let mut open = std::collections::VecDeque::new();
    for n in 0..10_000 {
        if open.len() >= most {
            open.pop_front();
        }
        open.push_back(connect(address));
        if n % 1000 == 999 {
            assert_scrape_works(address, PAGE);
        }
    }
    // A client that closes its connection first is not refused.
    let at_least = (10_000 - MAX_CONNECTIONS).saturating_sub(2 * (10_000 - most));
    let refused = count(&endpoint, "refused");
    assert!((at_least as u64..=10_000).contains(&refused), "{refused}");
}

/// Scrapes from many threads at once, among clients that come and go.
#[test]
fn parallel_scrapes_all_get_the_page() {
    let endpoint = start(PAGE);
    let address = endpoint.address();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..25).for_each(|_| assert_scrape_works(address, PAGE)));
        }
        for _ in 0..2 {
            // With the scrapes, there are never too many connections.
            scope.spawn(|| (0..10).for_each(|_| drop((0..20).map(|_| connect(address)).collect::<Vec<_>>())));
        }
    });
    assert_eq!(count(&endpoint, "200"), 200);
}
