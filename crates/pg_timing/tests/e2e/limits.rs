//! Checks under limits of the operating system: no further thread, a CPU quota, and a CPU that others use.

#![cfg(target_os = "linux")]

use super::{alarms, assert_status_matches_verdict, json};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// The number of Debian's user nobody. Limits of processes and threads do not apply to root.
const NOBODY: u32 = 65_534;

fn finding<'a>(report: &'a Value, id: &str) -> &'a Value {
    report["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id).unwrap()
}

fn parse(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr, "");
    let report = json(std::str::from_utf8(&output.stdout).unwrap());
    assert_status_matches_verdict(output.status.code().expect("a signal ended the program"), &report);
    report
}

/// A user that has its maximum number of processes gets a report without the comparison of the CPUs.
#[test]
fn without_a_second_thread_the_skew_is_not_determined() {
    // The directory of the build may be closed for other users.
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("pg_timing");
    // Another process copies it. A child that another thread forks now would hold a descriptor of ours, and the kernel does
    // not run a file that is open for writing (ETXTBSY).
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_pg_timing")).arg(&binary).status().unwrap().success());
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).unwrap();
    let mut command = Command::new(binary);
    command.args(["-d", "2", "--format", "json"]);
    // SAFETY: geteuid() cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    // SAFETY: only a system call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            // The process itself counts, so no second thread is possible.
            let limit = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
            match libc::setrlimit(libc::RLIMIT_NPROC, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let report = parse(&command.output().unwrap());
    assert!(report["clocks"][0]["read_ns"].as_f64().unwrap() > 0.0, "{report}");
    if report["cpus"]["allowed"].as_array().is_none_or(|cpus| cpus.len() < 2) {
        return eprintln!("SKIPPED: only one CPU");
    }
    let skew = finding(&report, "cpu-skew");
    assert_eq!(skew["severity"], "unknown", "{skew}");
    if skew["summary"].as_str().unwrap().ends_with("the time limit was reached") {
        return eprintln!("SKIPPED: this machine was too busy to begin the comparison in time");
    }
    assert!(skew["summary"].as_str().unwrap().contains("no second thread can be created: "), "{skew}");
}

/// Busy processes on one CPU. Dropping it ends them.
struct Hogs(Vec<Child>);

impl Hogs {
    fn start(cpu: usize) -> Hogs {
        let hog = |_| {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            // SAFETY: only system calls between fork and exec.
            unsafe { command.pre_exec(move || pin(cpu)) };
            command.spawn().unwrap()
        };
        // With equal shares, each of three processes gets a third of the CPU.
        Hogs((0..2).map(hog).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            _ = hog.kill();
            _ = hog.wait();
        }
    }
}

fn pin(cpu: usize) -> std::io::Result<()> {
    // SAFETY: an all-zero set is valid, and the index is below its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        match libc::sched_setaffinity(0, size_of_val(&set), &set) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

fn first_cpu() -> usize {
    // SAFETY: an all-zero set is valid, and each index is below its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &mut set), 0);
        (0..libc::CPU_SETSIZE as usize).find(|cpu| libc::CPU_ISSET(*cpu, &set)).unwrap()
    }
}

fn assert_heavy_interruptions(report: &Value, cause: &str) {
    assert!(alarms(report).contains(&("clock-gaps", "warning")), "{:?}", alarms(report));
    let gaps = finding(report, "clock-gaps");
    let evidence = gaps["evidence"].to_string();
    assert!(evidence.contains("pg_timing waited "), "{gaps}");
    assert!(gaps["fix"].to_string().contains(cause), "{gaps}");
    assert_ne!(report["verdict"]["severity"], "ok");
    let activity = &report["activity"];
    let (waited, period) = (&activity["run_delay_ms"], &activity["period_ms"]);
    assert!(waited.as_f64().unwrap() > 0.1 * period.as_f64().unwrap(), "{activity}");
}

#[test]
fn busy_processes_on_the_same_cpu_are_a_warning() {
    if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
        return eprintln!("SKIPPED: this kernel has no /proc/thread-self/schedstat");
    }
    let cpu = first_cpu();
    let _hogs = Hogs::start(cpu);
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.args(["-d", "1", "--format", "json"]);
    // SAFETY: only system calls between fork and exec.
    unsafe { command.pre_exec(move || pin(cpu)) };
    let report = parse(&command.output().unwrap());
    assert_heavy_interruptions(&report, "other processes");
}

/// A cgroup with a CPU quota. Dropping it removes the cgroup.
struct Quota {
    dir: PathBuf,
    tasks: PathBuf,
}

impl Quota {
    /// Creates a cgroup that may use 2% of a CPU: 2 ms in each 100 ms. `None` if no cgroup can be created.
    fn create() -> Option<Quota> {
        let name = format!("pg_timing_test_{}", std::process::id());
        let v2 = PathBuf::from("/sys/fs/cgroup").join(&name);
        let v1 = PathBuf::from("/sys/fs/cgroup/cpu").join(&name);
        let write = |dir: &PathBuf, file: &str, text: &str| std::fs::write(dir.join(file), text);
        for (dir, tasks, quota) in
            [(v2, "cgroup.procs", ("cpu.max", "2000 100000")), (v1, "tasks", ("cpu.cfs_quota_us", "2000"))]
        {
            if std::fs::create_dir(&dir).is_err() {
                continue;
            }
            let group = Quota { tasks: dir.join(tasks), dir };
            if group.dir.join(quota.0).exists() && write(&group.dir, quota.0, quota.1).is_ok() {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        _ = std::fs::remove_dir(&self.dir);
    }
}

#[test]
fn a_cpu_quota_is_a_warning_and_no_step_of_a_clock() {
    let Some(quota) = Quota::create() else {
        return eprintln!("SKIPPED: no cgroup with a CPU quota can be created");
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.args(["-d", "2", "--format", "json"]);
    let tasks = std::ffi::CString::new(quota.tasks.to_str().unwrap()).unwrap();
    // SAFETY: only system calls between fork and exec.
    unsafe { command.pre_exec(move || join(&tasks)) };
    let report = parse(&command.output().unwrap());
    assert_heavy_interruptions(&report, "CPU quota");
    let clocks = report["clocks"].as_array().unwrap();
    for clock in clocks.iter().filter(|clock| clock["name"] != "monotonic_coarse") {
        // Without the quota these clocks have steps of 1 to 300 ns. The pauses last 98 ms.
        assert!(clock["granularity_ns"].as_f64().is_none_or(|step| step < 1e6), "{clock}");
    }
    let coarse = clocks.iter().find(|clock| clock["name"] == "monotonic_coarse").unwrap();
    // The kernel's tick is 1 to 10 ms long.
    match coarse["granularity_ns"].as_f64() {
        Some(step) => assert!((0.9e6..=10.1e6).contains(&step), "{coarse}"),
        None => assert!(coarse["granularity_unavailable"].is_string(), "{coarse}"),
    }
}

/// Moves this process to a cgroup.
fn join(tasks: &std::ffi::CStr) -> std::io::Result<()> {
    // SAFETY: the path ends with a zero byte. Writing 0 means the writing process.
    unsafe {
        let file = libc::open(tasks.as_ptr(), libc::O_WRONLY);
        if file < 0 || libc::write(file, c"0".as_ptr().cast(), 1) != 1 {
            return Err(std::io::Error::last_os_error());
        }
        libc::close(file);
    }
    Ok(())
}
