//! A synthetic machine: its clocks show one true time, with the faults that a test chooses. Time passes only while a clock is
//! read and while the machine sleeps.

use super::super::{Machine, State};
use crate::host::kernel_log::parse;
use crate::host::measure::{Budget, DriftMeter, MAX_SLEW, Meter};
use crate::host::survey;
use crate::host::survey::clocks::{Instruments, OffsetMeter};
use crate::report::{Activity, COUNTER, Clocksource, Cpus, Fact, Ntp, Origin, OwnUse, Report, SYSTEM, Skew, TscReport};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use timing_clock::sim::World;
use timing_clock::{Clock, Features, Nanos, REFERENCE_NAME, Rate};

/// The state that the machine and its clocks share. Times are in ns.
pub struct Hardware {
    world: World,
    /// true time for which the machine was suspended: only CLOCK_BOOTTIME goes on
    suspended_ns: Cell<f64>,
    /// true time for which the hypervisor paused it: only the hardware clock goes on
    paused_ns: Cell<f64>,
    /// cost of one read of the kernel's clock
    pub cost_ns: Cell<f64>,
    /// the counter ahead of its rate
    pub counter_ahead_ns: Cell<f64>,
    /// the counter's rate relative to its first rate, and since when
    rate: Cell<(f64, f64)>,
    /// CLOCK_REALTIME ahead of its first offset
    pub realtime_ahead_ns: Cell<f64>,
    /// a read of the kernel's clock is this much too low: the first number counts the reads until then
    pub back: Cell<(u64, f64)>,
    /// empty if the kernel does not show it
    pub clocksource: RefCell<String>,
    /// messages that the kernel has logged since the last look
    messages: RefCell<Vec<String>>,
    pub kernel_log_readable: Cell<bool>,
    pub suspends: Cell<u64>,
    pub hypervisor_hz: Cell<f64>,
    pub vmclock_disruption: Cell<Option<u64>>,
    pub skew_ns: Cell<f64>,
    /// comparisons of CPUs that will fail
    pub busy: Cell<u32>,
    /// the next sleep takes this much longer
    pub oversleep_s: Cell<f64>,
    /// the hardware clock ahead of its first time
    pub rtc_ahead_s: Cell<f64>,
    /// the process is stopped for this time within the next sleep
    pub stopped_s: Cell<f64>,
}

impl Hardware {
    fn monotonic_ns(&self) -> f64 {
        self.world.now_ns() - self.suspended_ns.get() - self.paused_ns.get()
    }

    /// Returns the error of this read of the kernel's clock.
    fn back_ns(&self) -> f64 {
        match self.back.take() {
            (0, ns) => ns,
            (reads, ns) => {
                self.back.set((reads - 1, ns));
                0.0
            }
        }
    }

    fn counter_ns(&self) -> f64 {
        let (rate, since) = self.rate.get();
        let now = self.monotonic_ns();
        now + (now - since) * rate + self.counter_ahead_ns.get()
    }

    /// Changes the counter's rate from now on.
    pub fn change_rate(&self, ppm: f64) {
        self.counter_ahead_ns.set(self.counter_ns() - self.monotonic_ns());
        self.rate.set((ppm * 1e-6, self.monotonic_ns()));
    }

    /// Adds a message to the kernel's log.
    pub fn log(&self, message: &str) {
        let seconds = self.monotonic_ns() / 1e9 + 86_400.0;
        self.messages.borrow_mut().push(format!("[{seconds:12.6}] {message}"));
    }

    pub fn suspend(&self, seconds: f64) {
        self.world.pass_ns(seconds * 1e9);
        self.suspended_ns.set(self.suspended_ns.get() + seconds * 1e9);
    }

    /// Lets time pass outside of a sleep.
    pub fn pass(&self, seconds: f64) {
        self.world.pass_ns(seconds * 1e9);
    }

    pub fn pause(&self, seconds: f64) {
        self.world.pass_ns(seconds * 1e9);
        self.paused_ns.set(self.paused_ns.get() + seconds * 1e9);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    System,
    Syscall,
    Counter,
    Reference,
    Boottime,
    Realtime,
}

/// The time of day when a test begins, in seconds since 1970.
const UNIX_S: f64 = 1.8e9;

/// The counter has this many ticks per nanosecond.
const TICKS_PER_NS: f64 = 2.5;

struct SyntheticClock(Rc<Hardware>, Kind);

impl Clock for SyntheticClock {
    fn read(&self) -> u64 {
        let SyntheticClock(hardware, kind) = self;
        let cost_ns = match kind {
            Kind::Counter => 9.0,
            Kind::Syscall => hardware.cost_ns.get().max(160.0),
            _ => hardware.cost_ns.get(),
        };
        let jitter = hardware.world.random_below(1000) as f64 / 500.0;
        hardware.world.pass_ns((cost_ns + jitter) / 2.0);
        let ns = match kind {
            Kind::System => hardware.monotonic_ns() - hardware.back_ns(),
            Kind::Syscall | Kind::Reference => hardware.monotonic_ns(),
            Kind::Counter => hardware.counter_ns() * TICKS_PER_NS,
            Kind::Boottime => hardware.monotonic_ns() + hardware.suspended_ns.get(),
            Kind::Realtime => hardware.monotonic_ns() + hardware.realtime_ahead_ns.get(),
        };
        hardware.world.pass_ns((cost_ns + jitter) / 2.0);
        // A machine has been running for a day when the test begins.
        (ns + 86_400e9) as u64
    }
}

pub struct SyntheticMachine {
    pub hardware: Rc<Hardware>,
    log: Vec<String>,
}

impl Default for SyntheticMachine {
    fn default() -> SyntheticMachine {
        let hardware = Hardware {
            world: World::new(7),
            suspended_ns: Cell::new(0.0),
            paused_ns: Cell::new(0.0),
            cost_ns: Cell::new(20.0),
            counter_ahead_ns: Cell::new(0.0),
            rate: Cell::new((0.0, 0.0)),
            realtime_ahead_ns: Cell::new(0.0),
            back: Cell::new((0, 0.0)),
            clocksource: RefCell::new("tsc".into()),
            messages: RefCell::new(Vec::new()),
            kernel_log_readable: Cell::new(true),
            suspends: Cell::new(0),
            hypervisor_hz: Cell::new(2.5e9),
            vmclock_disruption: Cell::new(Some(1)),
            skew_ns: Cell::new(0.0),
            busy: Cell::new(0),
            oversleep_s: Cell::new(0.0),
            rtc_ahead_s: Cell::new(0.0),
            stopped_s: Cell::new(0.0),
        };
        SyntheticMachine { hardware: Rc::new(hardware), log: vec!["[    0.000000] Linux version 6.1.0 (x)".into()] }
    }
}

impl SyntheticMachine {
    fn clock(&self, kind: Kind) -> SyntheticClock {
        SyntheticClock(self.hardware.clone(), kind)
    }
}

impl Machine for SyntheticMachine {
    fn facts(&mut self) -> Report {
        let log = parse(&self.log.join("\n"));
        let kernel = match self.hardware.kernel_log_readable.get() {
            true => Fact::Known(survey::kernel_report(&log)),
            false => Fact::unavailable("not permitted"),
        };
        let cpus = Fact::Known(vec![0, 1]);
        let empty = Report::empty(Origin::Measured, "not measured");
        let clocksource = self.clocksource();
        Report { kernel, clocksource, cpus: Cpus { online: cpus.clone(), allowed: cpus, ..empty.cpus }, ..empty }
    }

    fn instruments(&mut self) -> Instruments {
        let mut clocks: Vec<Result<Meter, _>> = vec![
            Ok(Meter::new(SYSTEM, self.clock(Kind::System), 4.0, false)),
            Ok(Meter::new("rdtsc", self.clock(Kind::Counter), 4.0, true)),
            Ok(Meter::new("system_syscall", self.clock(Kind::Syscall), 1.0, false)),
        ];
        let (stop, limit) = (AtomicBool::new(false), Nanos::from_millis(50.0));
        clocks
            .iter_mut()
            .flatten()
            .for_each(|meter| meter.step = Some(meter.clock.step(&Budget::new(limit, &stop), limit)));
        let meter = |clock, reference| DriftMeter::new(self.clock(clock), 1.0, self.clock(reference), Nanos(1.0));
        let offset =
            |clock, kind, reference, other, slew| OffsetMeter { clock, reference, meter: meter(kind, other), slew };
        Instruments {
            clocks,
            outside: Box::new(self.clock(Kind::Counter)),
            outside_cost: 9.0 * TICKS_PER_NS,
            counter: Ok(meter(Kind::Counter, Kind::Reference)),
            offsets: vec![
                offset(SYSTEM, Kind::System, REFERENCE_NAME, Kind::Reference, MAX_SLEW),
                offset("boottime", Kind::Boottime, SYSTEM, Kind::System, 1e-9),
                offset("realtime", Kind::Realtime, SYSTEM, Kind::System, 1e-9),
            ],
        }
    }

    fn clocksource(&mut self) -> Clocksource {
        let available = ["tsc", "hpet", "acpi_pm"].map(String::from).into();
        Clocksource {
            current: match self.hardware.clocksource.borrow().as_str() {
                "" => Fact::unavailable("current_clocksource: no such file"),
                name => Fact::Known(name.into()),
            },
            available: Fact::Known(available),
            before: None,
        }
    }

    fn kernel_messages(&mut self) -> Result<Vec<String>, String> {
        if !self.hardware.kernel_log_readable.get() {
            return Err("not permitted".into());
        }
        let messages = parse(&self.hardware.messages.take().join("\n")).lines_about_clocks();
        self.log.extend(messages.iter().cloned());
        self.log.drain(1..self.log.len().saturating_sub(100).max(1));
        Ok(messages)
    }

    fn state(&mut self) -> State {
        let boottime_ns = self.hardware.monotonic_ns() + self.hardware.suspended_ns.get();
        let rtc_s = UNIX_S + self.hardware.world.now_ns() / 1e9 + self.hardware.rtc_ahead_s.get();
        let mut features = Features::default();
        features.hypervisor_hz = Some(self.hardware.hypervisor_hz.get());
        State {
            suspends: Some(self.hardware.suspends.get()),
            hardware_clock: Some((rtc_s.floor(), boottime_ns / 1e9)),
            unix_s: self.unix_time(),
            features,
            vmclock_disruption: self.hardware.vmclock_disruption.get(),
            ntp: Fact::Known(Ntp { synchronized: true, frequency_ppm: 0.0 }),
        }
    }

    fn on_cpu(&mut self, _: usize, read: &mut dyn FnMut()) -> Activity {
        read();
        Activity { period_ms: Some(10.0), run_delay_ms: Some(0.0), timeslices: Some(1), ..Activity::default() }
    }

    fn judge_counter(&self, _: &Report, rate: &Result<Rate, String>) -> TscReport {
        TscReport {
            frequency_khz: rate.clone().map(|rate| rate.rate.khz()).into(),
            uncertainty_ppm: rate.as_ref().ok().map(|rate| rate.uncertainty.0),
            usable: Some(true),
            invariant: Some(true),
            permitted: Some(true),
            ..TscReport::unavailable("")
        }
    }

    fn skew(&mut self, cpus: Cpus, _: Option<Rate>) -> Cpus {
        let low_ns = self.hardware.skew_ns.get() - 50.0;
        let skew = |clock: &str| Skew {
            clock: clock.into(),
            a: 0,
            b: 1,
            low_ns,
            high_ns: low_ns + 100.0,
            moving: false,
            passes: 4000,
        };
        if self.hardware.busy.get() > 0 {
            self.hardware.busy.set(self.hardware.busy.get() - 1);
            // Another program came between the comparisons of two clocks.
            let why = "system: CPUs 0 and 1 did not answer each other in time";
            return Cpus { skew: vec![skew(COUNTER)], skew_unavailable: Some(why.into()), ..cpus };
        }
        Cpus { skew: vec![skew(COUNTER), skew(SYSTEM)], skew_unavailable: None, ..cpus }
    }

    fn own_use(&mut self) -> OwnUse {
        OwnUse::default()
    }

    fn monotonic_s(&mut self) -> f64 {
        self.hardware.monotonic_ns() / 1e9
    }

    fn unix_time(&mut self) -> f64 {
        UNIX_S + (self.hardware.monotonic_ns() + self.hardware.suspended_ns.get()) / 1e9
    }

    fn sleep(&mut self, seconds: f64) -> f64 {
        self.hardware.world.pass_ns((seconds.max(0.0) + self.hardware.oversleep_s.take()) * 1e9);
        self.hardware.stopped_s.take()
    }
}
