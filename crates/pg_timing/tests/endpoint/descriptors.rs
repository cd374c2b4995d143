//! An endpoint without file descriptors, and its thread. These tests run in a process of their own.

use super::*;
use std::fs::File;
use std::process::Command;

const CHILD: &str = "PG_TIMING_TEST_CHILD";

/// Runs the test of that name again, in a process in which it is alone. Returns whether this is that process.
fn is_alone(name: &str) -> bool {
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let child =
        Command::new(std::env::current_exe().unwrap()).args(["--exact", name]).env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
    false
}

/// Returns the CPU time of this process.
fn cpu_time() -> Duration {
    // SAFETY: the call only writes into this structure.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

#[test]
fn without_file_descriptors_it_waits_and_then_continues() {
    if !is_alone("descriptors::without_file_descriptors_it_waits_and_then_continues") {
        return;
    }
    let endpoint = start(PAGE);
    let address = endpoint.address();
    assert_scrape_works(address, PAGE);
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    // One descriptor for the client. The endpoint has none.
    files.pop();
    let mut waiting = TcpStream::connect(address).unwrap();
    waiting.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let before = cpu_time();
    std::thread::sleep(Duration::from_millis(700));
    let used = cpu_time() - before;
    assert!(used < Duration::from_millis(100), "{used:?}");
    drop(files);
    let start = Instant::now();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with(PAGE) && start.elapsed() < SCRAPE, "{answer}, {:?}", start.elapsed());
    assert_scrape_works(address, PAGE);
}

/// If its own connections use up the file descriptors, the oldest ones make room.
#[test]
fn old_connections_make_room_for_a_scrape() {
    if !is_alone("descriptors::old_connections_make_room_for_a_scrape") {
        return;
    }
    let endpoint = start(PAGE);
    let address = endpoint.address();
    let _old: Vec<TcpStream> = (0..50).map(|_| connect(address)).collect();
    assert_scrape_works(address, PAGE);
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    files.pop();
    assert_scrape_works(address, PAGE);
    assert!(count(&endpoint, "refused") >= 1);
}

#[test]
#[cfg(target_os = "linux")]
fn its_thread_blocks_signals_and_uses_no_cpu_for_idle_clients() {
    if !is_alone("descriptors::its_thread_blocks_signals_and_uses_no_cpu_for_idle_clients") {
        return;
    }
    let endpoint = start(PAGE);
    let mut idle: Vec<TcpStream> = (0..100).map(|_| connect(endpoint.address())).collect();
    for stream in &mut idle {
        stream.write_all(b"GET").unwrap();
    }
    assert_scrape_works(endpoint.address(), PAGE);
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path().join("status"));
    // The thread of a closed connection may end meanwhile.
    let states: Vec<String> = threads.filter_map(|status| std::fs::read_to_string(status).ok()).collect();
    let http = states.iter().find(|state| state.starts_with("Name:\thttp\n")).unwrap();
    let blocked = http.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap();
    let blocked = u64::from_str_radix(blocked, 16).unwrap();
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGWINCH, libc::SIGCHLD] {
        assert!(blocked >> (signal - 1) & 1 == 1, "{signal}");
    }
    let before = cpu_time();
    std::thread::sleep(Duration::from_millis(500));
    let used = cpu_time() - before;
    assert!(used < Duration::from_millis(50), "{used:?}");
}
