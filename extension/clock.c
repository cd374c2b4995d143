/*-------------------------------------------------------------------------
 *
 * clock.c
 *	  the clocks that time calls: their cost, and whether the CPU's counter
 *	  can be trusted
 *
 * The rate of the counter is measured against the kernel's raw clock, from an
 * anchor: an earlier pair of readings.  With shared_preload_libraries, the
 * anchor is the server's start, and all processes share one rate.  Otherwise it
 * is the moment at which this process loaded the library, and the first
 * statement waits until 3 ms have passed since then.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

#if defined(__linux__)
#include <sys/prctl.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "miscadmin.h"

/*
 * Linux removes a faulty TSC from the available clock sources.  On a virtual
 * machine a good TSC is often available but not current, because the kernel
 * prefers the hypervisor's clock.  On AArch64 a good counter is always current.
 */
#if defined(__aarch64__)
#define KERNEL_FILE		"current_clocksource"
#define KERNEL_NAME		"arch_sys_counter"
#define KERNEL_SAYS		"the kernel does not use it as its clock source"
#else
#define KERNEL_FILE		"available_clocksource"
#define KERNEL_NAME		"tsc"
#define KERNEL_SAYS		"the kernel does not offer it as a clock source"
#endif

#define SYSFS			"/sys/devices/system/clocksource/clocksource0/"

/*
 * The kernel's decision and the rate can change, so they are checked again after
 * this time, and an imprecise rate earlier.
 */
#define RECHECK_NS		UINT64CONST(10000000000)
#define IMPROVE_NS		UINT64CONST(100000000)
#define PRECISE_PPM		10.0

/*
 * A pair of readings is about 30 ns wide.  Two pairs 3 ms apart give the rate
 * with a bound of 10 ppm, and 0.2 ms are enough to check a rate.
 */
#define CALIBRATION_NS	3000000
#define CHECK_NS		200000

/*
 * The largest difference between the two clocks, and the largest change of their
 * rate, beyond the errors of the readings.  The clocks of old hardware move in
 * steps of up to 300 ns.
 */
#define MAX_PPM			1000.0
#define MAX_DRIFT_PPM	100.0
#define MAX_STEP_NS		1000.0

/*
 * Runs that end within this time after a pair of readings are not compared exactly:
 * that would take longer than a FETCH of one row.  The coarse clock is enough to
 * notice a counter that stood still.
 */
#define COMPARE_NS		1000000.0
#define COARSE_NS		20000000

/* 17 reads take 0.5 us, or 0.05 ms with the slowest clocks.  With these, two rounds are enough. */
#define PAIRS			8
#define ROUNDS			10
#define SLOW_ROUND_NS	20000

/* The narrowest of these pairs of readings was not interrupted. */
#define ANCHOR_PAIRS	64

ClockFacts	pft_clocks[2] = {{.ns_per_tick = 1.0, .stale = true}, {.stale = true}};
uint64		pft_tsc_scale = 0;
const Ticker *pft_ticks = NULL;
double		pft_tsc_khz = 0;
double		pft_tsc_ppm = 0;
const char *pft_tsc_reason = "not checked yet";

/* What all processes know about the counter. */
typedef struct SharedClock
{
	ClockPair	anchor;			/* read when the server started; ns is 0: none */
	volatile double khz;		/* 0: unknown */
	volatile double ppm;		/* bound of its error */
	volatile uint64 checked_ns; /* last check of the rate, by the raw clock */
	pg_atomic_uint32 refused;	/* 1: the counter was wrong */
} SharedClock;

static SharedClock of_process;	/* without shared memory */
static SharedClock *shared = &of_process;
static ClockPair anchor;		/* of this process */
static pid_t anchored_by = 0;
static bool checked = false;
static uint64 checked_at;

Size
pft_clock_size(void)
{
	return sizeof(SharedClock);
}

/*
 * Measures the cost of timing a call: two reads, one after the other.  The
 * minimum ignores interruptions.
 */
void
pft_clock_measure(ClockKind kind)
{
	uint64		fastest = PG_UINT64_MAX;
	uint64		first;

	if (!pft_clocks[kind].stale)
		return;
	first = clock_ordered(kind);
	for (int round = 0; round < 2 || (round < ROUNDS && ns_between(kind, first, clock_now(kind)) < SLOW_ROUND_NS); round++)
	{
		uint64		start = clock_ordered(kind);
		uint64		end = start;

		for (int i = 0; i < 2 * PAIRS; i++)
			end = clock_ordered(kind);
		fastest = Min(fastest, end - start);
	}
	pft_clocks[kind].cost = (double) Max(fastest, 1) / PAIRS;
	pft_clocks[kind].stale = false;
}

/*
 * Returns whether the kernel names the counter in its file.  Without sysfs the
 * kernel's decision is unknown and does not matter.  The server's functions are
 * not used, because they can raise errors.
 */
static bool
kernel_trusts(void)
{
	FILE	   *file = fopen(SYSFS KERNEL_FILE, "re");
	char		word[32];
	bool		found = file == NULL;

	while (!found && fscanf(file, "%31s", word) == 1)
		found = strcmp(word, KERNEL_NAME) == 0;
	if (file != NULL)
		fclose(file);
	return found;
}

/* Returns why the counter must not be used, or NULL. */
static const char *
distrust_reason(void)
{
#if defined(__x86_64__)
	unsigned int r[4];
#endif
#ifdef PR_GET_TSC
	int			permission = 0; /* no known permission */

	/* A forbidden read would kill the process. */
	if (prctl(PR_GET_TSC, &permission) == 0 && permission != PR_TSC_ENABLE)
		return "this process may not read it (PR_SET_TSC)";
#endif
#if defined(__x86_64__)
	if (!__get_cpuid(0x80000007, &r[0], &r[1], &r[2], &r[3]) || !(r[3] & (1 << 8)))
		return "the CPU does not say that its rate is constant (no invariant TSC)";
#endif
	if (tsc_now() == 0)
		return "pg_fast_timing supports no counter on this platform";
	if (pg_atomic_read_u32(&shared->refused) != 0)
		return "it differed from the kernel's clock";
	return kernel_trusts() ? NULL : KERNEL_SAYS;
}

/*
 * Reads both clocks.  CLOCK_MONOTONIC is not suitable: ntpd slews it by up to
 * 500 ppm, and chrony by up to 8%.
 */
ClockPair
pft_read_pair(void)
{
	ClockPair	pair;

	pair.tsc = tsc_now();
	pair.ns = ns_of(CLOCK_MONOTONIC_RAW);
	pair.width = tsc_ordered() - pair.tsc;
	pair.tsc += pair.width / 2;
	return pair;
}

/* Returns the narrowest of many pairs. */
static ClockPair
narrowest_pair(void)
{
	ClockPair	best = pft_read_pair();

	for (int i = 1; i < ANCHOR_PAIRS; i++)
	{
		ClockPair	next = pft_read_pair();

		if (next.width < best.width)
			best = next;
	}
	return best;
}

/*
 * Computes the rate since a pair.  Each pair has an error of half its width, a
 * tick and a ns.  Returns 0 if no CPU has such a rate.
 */
static double
khz_between(ClockPair start, ClockPair end, double *ppm)
{
	double		ticks = (double) (int64) (end.tsc - start.tsc);
	double		ns = (double) (int64) (end.ns - start.ns);
	double		khz = ticks / ns * 1e6;

	if (ticks <= 0 || ns <= 0 || khz < 1e3 || khz > 1e8)
		return 0;
	*ppm = (((start.width + end.width) / 2.0 + 2) / ticks + 2 / ns) * 1e6;
	return khz;
}

static void
set_rate(double khz, double ppm)
{
	pft_tsc_khz = khz;
	pft_tsc_ppm = ppm;
	pft_tsc_scale = (uint64) (1e6 / khz * 4294967296.0 + 0.5);
	pft_clocks[KIND_TSC].ns_per_tick = 1e6 / khz;
}

/* Returns a pair of readings at least `ns` after another one.  A signal can end a sleep early, so it sleeps again. */
static ClockPair
pair_after(ClockPair start, int64 ns)
{
	for (int sleeps = 0; sleeps < 10; sleeps++)
	{
		int64		left = ns - (int64) (pft_read_pair().ns - start.ns);

		if (left <= 0)
			break;
		pg_usleep(Min(left, ns) / 1000 + 1);
	}
	return narrowest_pair();
}

/* Returns the time after which a rate must be measured again. */
static uint64
valid_ns(double ppm)
{
	return ppm > PRECISE_PPM ? IMPROVE_NS : RECHECK_NS;
}

static double
difference_ppm(double a, double b)
{
	return fabs(a / b - 1) * 1e6;
}

/*
 * Measures the rate since this process's anchor, or since now if the machine slept
 * or was migrated after the anchor.  The rate since the server's start is more
 * precise, but wrong if the machine slept since then or was migrated.  So it is
 * used only if the two agree.
 */
static bool
measure_rate(bool may_wait)
{
	ClockPair	now = narrowest_pair();
	int64		needed_ns = shared->anchor.ns != 0 ? CHECK_NS : CALIBRATION_NS;
	double		here;
	double		here_ppm;
	double		since_start;
	double		since_start_ppm;

	here = khz_between(anchor, now, &here_ppm);
	if (anchored_by != MyProcPid ||
		(pft_tsc_khz != 0 && (here == 0 || difference_ppm(here, pft_tsc_khz) > MAX_DRIFT_PPM + here_ppm + pft_tsc_ppm)))
		anchor = now;
	anchored_by = MyProcPid;
	if ((int64) (now.ns - anchor.ns) < needed_ns)
	{
		if (!may_wait)
			return false;
		now = pair_after(anchor, needed_ns);
	}
	here = khz_between(anchor, now, &here_ppm);
	if (here == 0 || here_ppm > MAX_PPM)
	{
		anchored_by = 0;		/* the next attempt starts again */
		return false;
	}
	set_rate(here, here_ppm);
	since_start = khz_between(shared->anchor, now, &since_start_ppm);
	if (shared->anchor.ns != 0 && since_start != 0 &&
		difference_ppm(since_start, here) <= since_start_ppm + here_ppm)
		set_rate(since_start, since_start_ppm);
	else if (needed_ns < CALIBRATION_NS)
	{
		/* The machine slept or was migrated, so the processes need another anchor. */
		shared->anchor.ns = 0;
		return measure_rate(may_wait);
	}
	return true;
}

/*
 * Finds the rate, or checks it.  Another process's recent rate needs no waiting:
 * a pause of the machine does not change a rate that was measured before it.
 */
static bool
find_rate(bool may_wait)
{
	uint64		now_ns = pft_read_pair().ns;

	if (shared->khz != 0 && now_ns - shared->checked_ns < valid_ns(shared->ppm))
	{
		set_rate(shared->khz, shared->ppm);
		return true;
	}
	if (!measure_rate(may_wait))
		return false;
	shared->khz = pft_tsc_khz;
	shared->ppm = pft_tsc_ppm;
	shared->checked_ns = now_ns;
	return true;
}

/* Takes the anchor, so that a later measurement needs less waiting. */
void
pft_clock_init(void)
{
	if (distrust_reason() == NULL)
	{
		anchor = narrowest_pair();
		anchored_by = MyProcPid;
	}
}

/* The postmaster's anchor becomes that of all processes. */
void
pft_clock_attach(void *memory, bool found)
{
	shared = memory;
	if (!found)
		*shared = (SharedClock) {.anchor = anchor};
}

/*
 * Returns whether the counter can be used now.  Without `may_wait`, a process
 * that does not know the rate yet cannot use it.
 */
bool
pft_tsc_usable(bool may_wait)
{
	uint64		now = coarse_now();

	if (checked && now - checked_at < valid_ns(pft_tsc_ppm) && !(pft_tsc_reason == NULL && pg_atomic_read_u32(&shared->refused) != 0))
		return pft_tsc_reason == NULL;
	pft_tsc_reason = distrust_reason();
	checked = may_wait;
	if (pft_tsc_reason == NULL && !find_rate(may_wait))
		pft_tsc_reason = "its rate could not be measured";
	else
		checked = true;
	for (int kind = 0; kind < lengthof(pft_clocks); kind++)
		pft_clocks[kind].stale = true;	/* the kernel may have switched its clock source */
	checked_at = now;
	return pft_tsc_reason == NULL;
}

/* Returns a pair of readings for pft_clocks_agree().  `now` is a reading of the counter. */
ClockPair
pft_recent_pair(uint64 now)
{
	static ClockPair recent;
	double		age_ns = ns_between(KIND_TSC, recent.tsc, now);

	if (recent.ns == 0 || age_ns < 0 || age_ns > COMPARE_NS)
	{
		recent = pft_read_pair();
		recent.coarse_ns = coarse_now();
	}
	return recent;
}

/*
 * Compares the counter, which is `now`, with the kernel's clock since `start`.
 * After a migration or a suspend of a virtual machine, the counter can have
 * another rate, or it may have stood still.  Then no process uses it any more.
 */
bool
pft_clocks_agree(ClockPair start, uint64 now)
{
	ClockPair	end;
	double		by_tsc = ns_between(KIND_TSC, start.tsc, now);
	double		by_kernel;
	double		uncertain;

	if (by_tsc >= 0 && by_tsc < COMPARE_NS && coarse_now() - start.coarse_ns < COARSE_NS)
		return true;
	end = pft_read_pair();
	by_tsc = ns_between(KIND_TSC, start.tsc, end.tsc);
	by_kernel = (double) (int64) (end.ns - start.ns);
	/* An interruption during a reading makes it less precise. */
	uncertain = (start.width + end.width) / 2.0 * pft_clocks[KIND_TSC].ns_per_tick;

	if (fabs(by_tsc - by_kernel) <= by_kernel * (MAX_PPM + pft_tsc_ppm) / 1e6 + MAX_STEP_NS + uncertain)
		return true;
	if (pg_atomic_exchange_u32(&shared->refused, 1) == 0)
		ereport(LOG_SERVER_ONLY,
				(errmsg("CPU time stamp counter is not used any more"),
				 errdetail("A statement took %.3f ms by the counter, and %.3f ms by the kernel's clock.",
						   by_tsc / 1e6, by_kernel / 1e6),
				 errhidestmt(true), errhidecontext(true)));
	checked = false;
	return false;
}
