//! The machine: kernel, CPU, hypervisor, boot parameters and NTP; its activity, and what this process uses.

use super::*;
use crate::host::measure;
use serde_json::{Value, json};
use timing_clock::{Architecture, Clock, Features, Posix, SystemSyscall};

impl Host {
    /// Returns all facts about the host.
    pub fn facts(&self) -> HostFacts {
        HostFacts {
            // Linux prints (none) if no name is set.
            name: self.read_line("/proc/sys/kernel/hostname").and_then(|name| match name.as_str() {
                "(none)" => Fact::unavailable("the host has no name"),
                _ => Fact::Known(name),
            }),
            kernel: self.read_line("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}")),
            architecture: self.architecture(),
            cpu_model: self.cpuinfo_field(&["model name", "Model"]),
            virtualization: self.virtualization(),
            platform: self.platform(),
            cpu_flags: self.cpu_flags(),
            boot_parameters: self.boot_parameters(),
            suspends: self.suspends(),
            ntp: self.ntp(),
            uptime_seconds: self.number("/proc/uptime"),
        }
    }

    /// Returns the first number in a file.
    fn number<T: std::str::FromStr>(&self, path: &str) -> Fact<T> {
        let number = |text: String| text.split_whitespace().next().and_then(|number| number.parse().ok());
        self.read_line(path).and_then(|text| Fact::of(number(text), format!("{path}: not a number")))
    }

    /// Returns the value of the first of these fields of /proc/cpuinfo.
    fn cpuinfo_field(&self, names: &[&str]) -> Fact<String> {
        let value = |text: String| names.iter().find_map(|name| field(&text, name)).map(String::from);
        self.read("/proc/cpuinfo").and_then(|text| Fact::of(value(text), format!("/proc/cpuinfo has no {}", names[0])))
    }

    /// Returns the architecture. For a captured tree it follows from the fields of /proc/cpuinfo.
    pub fn architecture(&self) -> Fact<String> {
        if self.is_live() {
            return Fact::Known(std::env::consts::ARCH.into());
        }
        self.read("/proc/cpuinfo").and_then(|text| {
            let is_arm = field(&text, "CPU implementer").map(|_| "aarch64".into());
            let name = field(&text, "vendor_id").map(|_| "x86_64".into()).or(is_arm);
            Fact::of(name, "/proc/cpuinfo has neither vendor_id nor CPU implementer")
        })
    }

    /// Returns the number of suspends since boot.
    pub fn suspends(&self) -> Fact<u64> {
        self.number("/sys/power/suspend_stats/success")
    }

    /// Returns the time of the hardware clock in whole seconds since 1970, if there is one.
    pub fn hardware_clock_s(&self) -> Option<u64> {
        self.number("/sys/class/rtc/rtc0/since_epoch").known().copied()
    }

    /// Returns the disruption marker of the hypervisor's vmclock device. It changes if the virtual machine was restored, cloned or
    /// moved. Source: `struct vmclock_abi` in Linux's include/uapi/linux/vmclock-abi.h.
    pub fn vmclock_disruption(&self) -> Option<u64> {
        const MAGIC: &[u8] = b"VCLK";
        let mut page = [0; 24];
        self.open("/dev/vmclock0").ok()?.read_exact(&mut page).ok()?;
        let (fields, marker) = page.split_last_chunk()?;
        fields.starts_with(MAGIC).then(|| u64::from_le_bytes(*marker))
    }

    /// Returns the boot parameters that concern clocks.
    pub fn boot_parameters(&self) -> Fact<Vec<String>> {
        self.read("/proc/cmdline").map(|line| parameters_about_clocks(&line))
    }

    /// Returns the CPU's features: from CPUID, or in a captured tree from the flags in /proc/cpuinfo and the captured
    /// values of CPUID.
    pub fn features(&self) -> Fact<Features> {
        if self.is_live() {
            return Fact::Known(Features::of_this_cpu());
        }
        let cpuid = self.captured_json("cpuid").known().cloned().unwrap_or_default();
        match self.architecture().known().map(String::as_str) {
            Some("aarch64") => Fact::Known(captured_features(Architecture::Aarch64, "", &Value::Null)),
            _ => self.cpuinfo_field(&["flags"]).map(|flags| captured_features(Architecture::X86_64, &flags, &cpuid)),
        }
    }

    /// Returns the CPU flags about the counter, with the kernel's names.
    fn cpu_flags(&self) -> Fact<Vec<String>> {
        let about_counter = |flag: &&str| COUNTER_FLAGS.split(' ').any(|known| known == *flag);
        let flags = self.cpuinfo_field(&["flags", "Features"]);
        flags.map(|flags| flags.split_whitespace().filter(about_counter).map(Into::into).collect())
    }

    /// Returns the CPUs that this process may use. A captured tree does not contain them.
    pub fn allowed_cpus(&self) -> Fact<Vec<usize>> {
        let why = "a captured tree does not contain it";
        if self.is_live() { measure::allowed().map_err(|e| reason(&e)).into() } else { Fact::unavailable(why) }
    }

    /// Returns the CPUs that are online.
    pub fn online_cpus(&self) -> Fact<Vec<usize>> {
        let path = "/sys/devices/system/cpu/online";
        self.read_line(path).and_then(|list| Fact::of(number_list(&list), format!("{path}: not a list of CPUs")))
    }

    /// Returns the name of the hypervisor, or "none".
    fn virtualization(&self) -> Fact<String> {
        let named = self.is_gvisor().then_some("gVisor");
        if let Some(name) = named.or(self.cloud().map(|(hypervisor, _)| hypervisor)) {
            return Fact::Known(name.into());
        }
        // Only this file shows Xen without hardware virtualization.
        let xen = self.read_line("/sys/hypervisor/type").known().is_some_and(|kind| kind == "xen");
        self.features().and_then(|features| match (&features.hypervisor_signature, features.architecture) {
            _ if xen => Fact::Known("Xen".into()),
            (Some(signature), _) => Fact::Known(hypervisor_name(signature).into()),
            _ if features.hypervisor => Fact::Known("an unknown hypervisor".into()),
            (None, Architecture::X86_64) => Fact::Known("none".into()),
            _ => Fact::unavailable("this CPU does not report a hypervisor"),
        })
    }

    /// Returns the cloud platform. Firecracker has no product name, but root can read its name in an ACPI table.
    fn platform(&self) -> Fact<String> {
        let table = self.read("/sys/firmware/acpi/tables/DSDT");
        let firecracker = table.known().is_some_and(|table| table.contains("FIRECK")).then_some("Firecracker");
        let platform = self.cloud().map(|(_, platform)| platform).or(firecracker);
        let why = "the firmware's tables are missing, unknown, or not readable for this user";
        Fact::of(platform.map(Into::into), why)
    }

    /// Returns hypervisor and platform from the product names in the firmware's tables.
    fn cloud(&self) -> Option<(&'static str, &'static str)> {
        let dmi = |tag: &str| self.read_line(&format!("/sys/class/dmi/id/{tag}")).known().cloned().unwrap_or_default();
        Some(match dmi("sys_vendor").as_str() {
            "Amazon EC2" if dmi("product_name").contains(".metal") => ("none", "AWS bare metal"),
            "Amazon EC2" => ("KVM", "AWS Nitro"),
            "Xen" if dmi("bios_version").contains("amazon") => ("Xen", "AWS, Xen instance"),
            "Google" => ("KVM", "Google Compute Engine"),
            "Microsoft Corporation" if dmi("chassis_asset_tag") == AZURE_TAG => ("Hyper-V", "Azure"),
            _ => return None,
        })
    }

    /// Returns whether this is gVisor, a kernel in user space whose facts are not those of the host.
    pub(super) fn is_gvisor(&self) -> bool {
        self.read("/proc/version").known().is_some_and(|text| text.starts_with(GVISOR_VERSION))
    }

    /// Returns the kernel's state of NTP, or the state in a captured tree.
    pub fn ntp(&self) -> Fact<Ntp> {
        if self.is_live() { Host::own_ntp() } else { self.captured_json("ntp") }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn own_ntp() -> Fact<Ntp> {
        // SAFETY: an all-zero timex is valid. modes = 0 reads the state and changes nothing.
        let mut timex: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: `timex` is writable.
        match unsafe { libc::adjtimex(&mut timex) } {
            -1 => Fact::unavailable(reason(&std::io::Error::last_os_error())),
            state => Fact::Known(Ntp {
                synchronized: is_synchronized(state, timex.status, timex.maxerror),
                frequency_ppm: frequency_ppm(timex.freq as f64, timex.tick as f64),
            }),
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn own_ntp() -> Fact<Ntp> {
        Fact::unavailable("available only on Linux")
    }
}

/// The names of these parameters, without `=` and the value. Other parameters are neither used nor captured, because a
/// command line can contain addresses and keys.
const ABOUT_CLOCKS: &str = "clocksource tsc notsc clock hpet nohpet acpi_pm acpi_pm_good pmtmr lpj no-kvmclock no-kvmclock-vsyscall \
    no-steal-acc nohz nohz_full highres idle intel_idle.max_cstate processor.max_cstate xen_timer_slop \
    tsc_early_khz clocksource.verify_n_cpus clocksource.max_cswd_read_retries";

/// Returns the boot parameters in a command line that concern clocks.
pub fn parameters_about_clocks(line: &str) -> Vec<String> {
    let name = |word: &str| word.split('=').next().unwrap_or_default().to_string();
    let words = line.split_whitespace().filter(|word| ABOUT_CLOCKS.split(' ').any(|known| known == name(word)));
    words.map(String::from).collect()
}

/// Returns values from CPUID that /proc/cpuinfo does not contain. A captured tree has them in an extra file.
pub fn captured_cpuid(features: &Features) -> Value {
    json!({
        "hypervisor_signature": features.hypervisor_signature,
        "leaf_15_hz": features.leaf_15_hz,
        "leaf_16_hz": features.leaf_16_hz,
        "hypervisor_hz": features.hypervisor_hz,
    })
}

/// The CPU flags about the counter.
const COUNTER_FLAGS: &str =
    "tsc rdtscp constant_tsc nonstop_tsc nonstop_tsc_s3 tsc_known_freq tsc_reliable tsc_adjust hypervisor";

/// Returns the features that the flags of /proc/cpuinfo and the captured values of CPUID show. Linux sets `nonstop_tsc` and
/// `constant_tsc` for CPUID's invariant bit.
fn captured_features(architecture: Architecture, flags: &str, cpuid: &Value) -> Features {
    let has = |name| flags.split_whitespace().any(|flag| flag == name);
    let mut features = Features::default();
    features.architecture = architecture;
    features.rdtscp = has("rdtscp");
    features.invariant = has("nonstop_tsc") && has("constant_tsc");
    features.tsc_adjust = has("tsc_adjust");
    features.hypervisor = has("hypervisor");
    features.hypervisor_signature = cpuid["hypervisor_signature"].as_str().map(String::from);
    features.leaf_15_hz = cpuid["leaf_15_hz"].as_f64();
    features.leaf_16_hz = cpuid["leaf_16_hz"].as_f64();
    features.hypervisor_hz = cpuid["hypervisor_hz"].as_f64();
    features
}

/// Returns the first value of a field in a file of lines `name: value`, like /proc/cpuinfo.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

/// Parses the kernel's list format, like `0-3,8`.
fn number_list(list: &str) -> Option<Vec<usize>> {
    // No machine has more CPUs. A longer list is invalid.
    const MAX: usize = 1 << 16;
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        (from <= to && to <= MAX).then_some(from..=to)
    };
    let ranges: Vec<_> = list.split(',').take(MAX).map(range).collect::<Option<_>>()?;
    Some(ranges.into_iter().flatten().take(MAX).collect())
}

/// The file with the machine's asset tag.
pub const ASSET_TAG: &str = "/sys/class/dmi/id/chassis_asset_tag";
/// The asset tag of every Azure machine.
pub const AZURE_TAG: &str = "7783-7084-3265-9085-8269-3286-77";
/// gVisor's kernel version, which does not depend on the host.
pub const GVISOR_VERSION: &str = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016";

/// Returns the hypervisor's name for a signature of CPUID leaf 0x40000000. Unknown signatures are returned unchanged.
fn hypervisor_name(signature: &str) -> &str {
    match signature {
        "KVMKVMKVM" | "Linux KVM Hv" => "KVM",
        "XenVMMXenVMM" => "Xen",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "TCGTCGTCGTCG" => "QEMU TCG",
        "VBoxVBoxVBox" => "VirtualBox",
        "bhyve bhyve" => "bhyve",
        "prl hyperv" | "lrpepyh vr" => "Parallels",
        other => other,
    }
}

/// Returns the whole correction. `freq` is in units of 2^-16 ppm and at most 500 ppm; for more, chrony changes the tick.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn frequency_ppm(freq: f64, tick: f64) -> f64 {
    /// The microseconds between two ticks of the clock that user space sees (USER_HZ is 100).
    const TICK_US: f64 = 10_000.0;
    let ppm = freq / 65_536.0 + (tick - TICK_US) / TICK_US * 1e6;
    (ppm * 1000.0).round() / 1000.0
}

/// Returns whether a service synchronizes the clock. chrony without its option `rtcsync` leaves the flag, and sets only the
/// maximum error.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_synchronized(state: i32, status: i32, max_error_us: libc::c_long) -> bool {
    /// The error of a clock that no service has set for 9 hours (NTP_PHASE_LIMIT in Linux's kernel/time/ntp.c).
    const UNKNOWN_ERROR_US: libc::c_long = 16_000_000;
    (state != libc::TIME_ERROR && status & libc::STA_UNSYNC == 0) || max_error_us < UNKNOWN_ERROR_US
}

/// Returns the counters of the machine and of this thread since their start. See [`activity_since`].
pub fn counters(host: &Host) -> Activity {
    // /proc counts in 1/100 s (USER_HZ), independent of the kernel's tick.
    let stat = host.read("/proc/stat");
    let steal = stat.known().and_then(|text| text.lines().next()?.split_whitespace().nth(8)?.parse::<f64>().ok());
    let scheduled = host.read("/proc/thread-self/schedstat").known().and_then(|text| run_delay(text));
    // SAFETY: an all-zero rusage is valid. getrusage fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable. On failure it stays 0.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    Activity {
        involuntary_context_switches: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
        steal_ms: steal.map(|ticks| ticks * 10.0),
        suspends: host.suspends().known().copied(),
        // by a system call, because the vDSO's clock may be wrong
        period_ms: Some(SystemSyscall::default().read() as f64 / 1e6),
        run_delay_ms: scheduled.map(|(delay_ns, _)| delay_ns / 1e6),
        timeslices: scheduled.map(|(_, slices)| slices),
        throttled_ms: throttled_ms(host),
    }
}

/// Returns the activity between two readings of the counters.
pub fn activity_since(before: &Activity, now: &Activity) -> Activity {
    // A steal count that is 0 since boot may not be maintained, so it is unknown.
    let now = Activity { steal_ms: now.steal_ms.filter(|ms| *ms > 0.0), ..*now };
    // Rounded to us.
    let ms = |now: f64, before: f64| ((now - before).max(0.0) * 1e3).round() / 1e3;
    now.combine(before, ms, u64::saturating_sub)
}

/// Parses `/proc/thread-self/schedstat`: run time and run delay in ns, and the number of time slices. Returns the last two.
/// A kernel that does not count them shows zeros, although this thread has run.
fn run_delay(text: &str) -> Option<(f64, u64)> {
    let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().ok());
    let (run_ns, delay_ns, slices) = (numbers.next()??, numbers.next()??, numbers.next()??);
    (run_ns > 0 && slices > 0).then_some((delay_ns as f64, slices))
}

/// Returns the time for which a CPU quota stopped this process's cgroup (version 2) or one of its parents.
fn throttled_ms(host: &Host) -> Option<f64> {
    let groups = host.read("/proc/self/cgroup");
    let path = groups.known()?.lines().find_map(|line| line.strip_prefix("0::"))?;
    let throttled = |path: &Path| {
        let stat = host.read(&format!("/sys/fs/cgroup{}/cpu.stat", path.display()));
        let us = stat.known()?.lines().find_map(|line| line.strip_prefix("throttled_usec "))?;
        Some(us.trim().parse::<f64>().ok()? / 1e3)
    };
    Path::new(path).ancestors().filter_map(throttled).reduce(|a, b| a + b)
}

/// Returns the CPU time and the memory of this process. `running_s` is the time since its start.
pub fn own_use(host: &Host, running_s: f64) -> OwnUse {
    let cpu_s = Posix::<{ libc::CLOCK_PROCESS_CPUTIME_ID }>.read() as f64 / 1e9;
    // `VmRSS:   12345 kB`
    let resident_kb = |status: &String| field(status, "VmRSS")?.strip_suffix(" kB")?.parse::<u64>().ok();
    let memory_bytes = host.read("/proc/self/status").known().and_then(resident_kb).map(|kb| kb * 1024);
    OwnUse { cpu_s, cpu_share: if running_s > 0.0 { cpu_s / running_s } else { 0.0 }, memory_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_about_clocks_are_kept() {
        for word in ["clocksource=tsc", "tsc=reliable", "notsc", "no-kvmclock"] {
            assert_eq!(parameters_about_clocks(word), [word]);
        }
        for word in ["root=UUID=1", "ip=10.0.0.1", "tscx=1", ""] {
            assert_eq!(parameters_about_clocks(word), [""; 0]);
        }
    }

    #[test]
    fn the_marker_of_vmclock_is_read() {
        let root = tempfile::tempdir().unwrap();
        let marker = |page: &[u8]| {
            std::fs::create_dir_all(root.path().join("dev")).unwrap();
            std::fs::write(root.path().join("dev/vmclock0"), page).unwrap();
            Host::captured(root.path().into()).vmclock_disruption()
        };
        assert_eq!(marker(b"VCLK\x68\0\0\0\x01\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0more"), Some(7));
        assert_eq!([marker(b"VCLK"), marker(&[0; 104])], [None, None]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_service_sets_the_flag_or_the_error() {
        assert!(is_synchronized(libc::TIME_OK, libc::STA_PLL, 500));
        assert!(is_synchronized(libc::TIME_ERROR, libc::STA_UNSYNC, 250_000), "chrony without rtcsync");
        assert!(!is_synchronized(libc::TIME_ERROR, libc::STA_UNSYNC, 16_000_000));
    }

    #[test]
    fn a_correction_by_the_tick_counts() {
        assert_eq!(frequency_ppm(65_536.0 * -12.5, 10_000.0), -12.5);
        assert_eq!(frequency_ppm(65_536.0 * -43.0, 9256.0), -74_443.0);
    }

    #[test]
    fn flags_are_translated_to_features() {
        let features = |flags| captured_features(Architecture::X86_64, flags, &Value::Null);
        let guest = features("fpu rdtscp constant_tsc nonstop_tsc hypervisor");
        assert!(guest.rdtscp && guest.invariant && guest.hypervisor && !guest.tsc_adjust);
        assert!(!features("constant_tsc").invariant);
    }

    #[test]
    fn lists_have_ranges_and_single_numbers() {
        assert_eq!(number_list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(number_list("0"), Some(vec![0]));
        for invalid in ["", "x", "5-3", "0-99999999999", "1-", "0-0-0"] {
            assert_eq!(number_list(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn the_first_value_of_a_field_is_returned() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A B\nmodel name\t: C\n";
        assert_eq!(field(cpuinfo, "model name"), Some("A B"));
        assert_eq!(field(cpuinfo, "model"), None);
    }

    #[test]
    fn counters_are_subtracted() {
        let at = |seconds: f64, schedstat| {
            let scheduled = run_delay(schedstat);
            Activity {
                involuntary_context_switches: seconds as u64 * 1000,
                steal_ms: Some(seconds * 100.0),
                suspends: None,
                period_ms: Some(seconds * 1e3),
                run_delay_ms: scheduled.map(|(delay_ns, _)| delay_ns / 1e6),
                timeslices: scheduled.map(|(_, slices)| slices),
                throttled_ms: Some(seconds * 500.0),
            }
        };
        let activity = activity_since(&at(1.0, "100 2000000 3"), &at(3.0, "500 1502000000 13"));
        let expected = Activity {
            involuntary_context_switches: 2000,
            steal_ms: Some(200.0),
            suspends: None,
            period_ms: Some(2000.0),
            run_delay_ms: Some(1500.0),
            timeslices: Some(10),
            throttled_ms: Some(1000.0),
        };
        assert_eq!(activity, expected);
        assert_eq!(activity.waiting_share(), Some(0.75));
    }

    #[test]
    fn counters_that_are_not_maintained_are_unknown() {
        for text in ["", "0 0 0", "1 2", "x 2 3", "-1 2 3"] {
            assert_eq!(run_delay(text), None, "{text}");
        }
        let steal = |ms| Activity { steal_ms: Some(ms), ..Activity::default() };
        assert_eq!(activity_since(&steal(0.0), &steal(0.0)), Activity::default());
        assert_eq!(activity_since(&steal(0.0), &steal(10.0)).steal_ms, Some(10.0));
    }

    #[test]
    fn the_throttled_time_is_read_from_the_cgroup_and_its_parents() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::captured(root.path().into());
        let add = |path: &str, text: &str| {
            std::fs::create_dir_all(host.file(path).parent().unwrap()).unwrap();
            std::fs::write(host.file(path), text).unwrap();
        };
        add("/proc/self/cgroup", "4:memory:/x\n0::/a.slice/b.scope\n");
        assert_eq!(throttled_ms(&host), None);
        add("/sys/fs/cgroup/a.slice/b.scope/cpu.stat", "usage_usec 5\nnr_throttled 3\nthrottled_usec 2500\n");
        assert_eq!(throttled_ms(&host), Some(2.5));
        // A container has a quota, and the pod around it can have another one.
        add("/sys/fs/cgroup/a.slice/cpu.stat", "throttled_usec 40000\n");
        add("/sys/fs/cgroup/cpu.stat", "usage_usec 5\n");
        assert_eq!(throttled_ms(&host), Some(42.5));
        add("/proc/self/cgroup", "0::/\n");
        assert_eq!(throttled_ms(&host), None);
        add("/sys/fs/cgroup/cpu.stat", "throttled_usec 1000\n");
        assert_eq!(throttled_ms(&host), Some(1.0));
    }
}
