/*-------------------------------------------------------------------------
 *
 * tsc.c
 *	  whether to trust the CPU's counter, and how fast it counts
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <math.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "clock.h"
#include "tsc.h"

/*
 * A TSC that the kernel has found wanting is no longer available; on a virtual
 * machine a good one often is second to the hypervisor's own clock.  On AArch64
 * there is nothing better than the counter, so it is in use if it is good.
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

#define SYSFS "/sys/devices/system/clocksource/clocksource0/"

/* The kernel's verdict is looked at anew after so long: it can change. */
#define RECHECK_NS		UINT64CONST(10000000000)

/*
 * Brackets are some 30 ns wide: 3 ms apart they are sure to give the rate to
 * 10 ppm, and give it to 1 ppm as a rule.  It gets better with each statement.
 * What a forked backend takes over from the postmaster needs no more than a
 * look at whether it still holds.
 */
#define CALIBRATION_NS	3000000
#define CHECK_NS		200000
#define BRACKETS		100

/*
 * How far the counter may be from the kernel's clock over a query, beyond what
 * the looks at both leave open.  The clocks of old hardware move in steps of up
 * to 300 ns.
 */
#define MOST_PPM		1000.0
#define MOST_STEP_NS	1000.0

uint64		fast_tsc_scale = 0;
char	   *fast_tsc_shared = NULL;

static const char *reason = "not looked at yet";
static double khz;
static double uncertainty_ppm;

const char *
fast_tsc_reason(void)
{
	return reason;
}

double
fast_tsc_khz(void)
{
	return khz;
}

double
fast_tsc_uncertainty_ppm(void)
{
	return uncertainty_ppm;
}

#ifdef HAVE_TSC

static bool judged = false;
static uint64 judged_at;
static bool distrusted = false; /* caught at being wrong: for this session */
static char rate_text[64];		/* what parallel workers are told */
static Bracket anchor;			/* what the rate is measured from */
static pid_t anchored_by = 0;

static const char *objection(void);

/*
 * Not CLOCK_MONOTONIC: NTP slews that by 500 ppm, and chrony by 8%.
 */
static pg_attribute_always_inline Bracket
bracket(void)
{
	Bracket		look;
	struct timespec now;

	look.tsc = tsc_now();
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	look.width = tsc_now() - look.tsc;
	look.tsc += look.width / 2;
	look.ns = (uint64) now.tv_sec * 1000000000 + now.tv_nsec;
	return look;
}

static Bracket
narrowest_bracket(void)
{
	Bracket		best = bracket();

	for (int i = 1; i < BRACKETS; i++)
	{
		Bracket		next = bracket();

		if (next.width < best.width)
			best = next;
	}
	return best;
}

static void
set_rate(double new_khz, double ppm)
{
	khz = new_khz;
	uncertainty_ppm = ppm;
	snprintf(rate_text, sizeof(rate_text), "%.4f %.3f", khz, ppm);
	fast_tsc_scale = (uint64) (1e6 / khz * 4294967296.0 + 0.5);
	fast_clocks[KIND_TSC].ns_per_tick = 1e6 / khz;
}

typedef struct Rate
{
	double		khz;
	double		ppm;			/* it is sure to be within these */
} Rate;

/*
 * Between two looks; the longer apart, the better.  The ends of a bracket are
 * uncertain by half its width and a step of either clock.  False if that is no
 * rate that a CPU has.
 */
static bool
rate_between(Bracket start, Bracket end, Rate *rate)
{
	double		ticks = (double) (end.tsc - start.tsc);
	double		ns = (double) (end.ns - start.ns);

	if (end.tsc <= start.tsc || end.ns <= start.ns)
		return false;
	rate->khz = ticks / ns * 1e6;
	rate->ppm = ((start.width + end.width) / 2.0 + 2 * fast_clocks[KIND_TSC].window) / ticks * 1e6;
	return rate->khz > 1e3 && rate->khz < 1e8;
}

static bool
agree(Rate a, Rate b)
{
	return fabs(a.khz / b.khz - 1) * 1e6 <= a.ppm + b.ppm;
}

static void
anchor_at(Bracket look)
{
	anchor = look;
	anchored_by = MyProcPid;
}

/* Makes the rate better, if it can. */
static void
refine(Bracket now)
{
	Rate		known = {khz, uncertainty_ppm};
	Rate		rate;

	/* nothing that is told apart from before it was sure enough */
	if (anchored_by != MyProcPid)
		return;
	if (!rate_between(anchor, now, &rate))
		anchor_at(now);
	else if (!agree(rate, known))
	{
		/* the machine slept or was moved since then: begin anew */
		anchor_at(now);
		set_rate(khz, uncertainty_ppm + fabs(rate.khz / khz - 1) * 1e6);
	}
	else if (rate.ppm < known.ppm / 2)
		set_rate(rate.khz, rate.ppm);
}

static void
wait_since(Bracket start, int64 ns)
{
	int64		left = ns - (int64) (bracket().ns - start.ns);

	if (left > 0)
		pg_usleep(left / 1000 + 1);
}

/*
 * The postmaster's anchor gives the rate at once, to next to nothing; unless
 * the machine slept or was moved since.  A short look tells, and as long as
 * there is no more, that is how sure it is.
 */
static bool
take_postmasters_rate(Bracket start)
{
	Rate		since;
	Rate		here;

	if (anchored_by == 0 || anchored_by == MyProcPid || !rate_between(anchor, start, &since))
		return false;
	wait_since(start, CHECK_NS);
	if (!rate_between(start, narrowest_bracket(), &here) || !agree(since, here))
		return false;
	set_rate(since.khz, Max(since.ppm, here.ppm));
	return true;
}

static bool
calibrate(void)
{
	Rate		rate;

	if (anchored_by != MyProcPid)
	{
		Bracket		start = narrowest_bracket();
		bool		taken = take_postmasters_rate(start);

		anchor_at(start);
		if (taken)
			return true;
	}
	wait_since(anchor, CALIBRATION_NS);
	if (!rate_between(anchor, narrowest_bracket(), &rate))
		return false;
	set_rate(rate.khz, rate.ppm);
	return true;
}

/*
 * Takes the first look at the counter, when the library is loaded: by the time
 * that its rate is wanted, nobody needs to wait for it.
 */
void
fast_tsc_anchor(void)
{
	if (objection() == NULL)
		anchor_at(narrowest_bracket());
}

/*
 * A parallel worker lives for milliseconds: it takes its leader's rate, which
 * reaches it as a setting.
 */
static bool
take_leaders_rate(void)
{
	double		its_khz;
	double		its_ppm;

	if (!IsParallelWorker() || fast_tsc_shared == NULL ||
		sscanf(fast_tsc_shared, "%lf %lf", &its_khz, &its_ppm) != 2 ||
		!(its_khz > 1e3 && its_khz < 1e8))
		return false;
	set_rate(its_khz, its_ppm);
	return true;
}

void
fast_tsc_share(void)
{
	if (khz == 0 || IsInParallelMode() || IsParallelWorker())
		return;
	/* RESET ALL or a rollback takes it back */
	if (fast_tsc_shared == NULL || strcmp(rate_text, fast_tsc_shared) != 0)
		SetConfigOption("pg_fast_timing.tsc_rate", rate_text, PGC_SUSET, PGC_S_SESSION);
}

/* Whether a word stands in a file of one line.  Not by the server's means, which may throw. */
static bool
file_has_word(const char *path, const char *word, bool *readable)
{
	char		text[256];
	ssize_t		length;
	int			fd = open(path, O_RDONLY | O_CLOEXEC);

	*readable = false;
	if (fd < 0)
		return false;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	*readable = true;
	for (char *each = strtok(text, " \n"); each; each = strtok(NULL, " \n"))
	{
		if (strcmp(each, word) == 0)
			return true;
	}
	return false;
}

/* Why not to use it; NULL if there is no reason. */
static const char *
objection(void)
{
	bool		readable;

#ifdef PR_GET_TSC
	int			permission;

	/* Reading it where it is forbidden would kill the server. */
	if (prctl(PR_GET_TSC, &permission) == 0 && permission != PR_TSC_ENABLE)
		return "this process may not read it (PR_SET_TSC)";
#endif
	if (distrusted)
		return "it was not in step with the kernel's clock";
#if defined(__x86_64__)
	{
		unsigned int a,
					b,
					c,
					d;

		if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1 << 8)))
			return "the CPU does not say that its rate is constant (no invariant TSC)";
	}
#endif
	/* Where the kernel says nothing (no sysfs), its word is not waited for. */
	if (!file_has_word(SYSFS KERNEL_FILE, KERNEL_NAME, &readable) && readable)
		return KERNEL_SAYS;
	return NULL;
}

/* Whether it can be used, as things are now. */
bool
fast_tsc_usable(void)
{
	uint64		now = system_now();

	if (judged && now - judged_at < RECHECK_NS)
		return reason == NULL;

	reason = objection();
	if (reason == NULL && khz == 0)
		reason = take_leaders_rate() || calibrate() ? NULL : "its rate could not be measured";
	else if (reason == NULL)
		refine(narrowest_bracket());
	for (int kind = 0; kind < lengthof(fast_clocks); kind++)
		fast_clocks[kind].stale = true; /* the kernel may have changed its clock, too */
	judged = true;
	judged_at = now;
	return reason == NULL;
}

bool
fast_tsc_readable(void)
{
	return khz != 0;
}

Bracket
fast_tsc_look(void)
{
	Bracket		none = {0, 0, 0};

	return judged && reason == NULL ? bracket() : none;
}

/*
 * A virtual machine that was moved or put to sleep can come back with a
 * counter of another rate, or one that stood still.
 */
void
fast_tsc_compare(Bracket start)
{
	Bracket		end = fast_tsc_look();
	double		by_tsc;
	double		by_kernel;
	double		uncertain;

	if (start.ns == 0 || end.ns == 0)
		return;
	by_tsc = (double) (int64) (end.tsc - start.tsc) * fast_clocks[KIND_TSC].ns_per_tick;
	by_kernel = (double) (end.ns - start.ns);
	/* whoever is interrupted in the midst of a look has seen little */
	uncertain = (start.width + end.width) / 2.0 * fast_clocks[KIND_TSC].ns_per_tick;
	if (fabs(by_tsc - by_kernel) <= by_kernel * MOST_PPM / 1e6 + MOST_STEP_NS + uncertain)
	{
		refine(end);
		return;
	}

	distrusted = true;
	judged = false;
	fast_tsc_usable();
	ereport(WARNING,
			(errmsg("times of this statement's plan nodes are wrong: the CPU's counter took it for %.3f ms, the kernel's clock for %.3f ms",
					by_tsc / 1e6, by_kernel / 1e6),
			 errhint("pg_fast_timing does not use the counter any more in this session.")));
}

#else							/* no counter that we know */

bool
fast_tsc_usable(void)
{
	reason = "this platform has no counter that pg_fast_timing knows";
	return false;
}

bool
fast_tsc_readable(void)
{
	return false;
}

void
fast_tsc_anchor(void)
{
}

void
fast_tsc_share(void)
{
}

Bracket
fast_tsc_look(void)
{
	Bracket		none = {0, 0, 0};

	return none;
}

void
fast_tsc_compare(Bracket start)
{
}

#endif
