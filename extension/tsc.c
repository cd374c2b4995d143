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
#include "storage/fd.h"
#include "utils/guc.h"

#include "clock.h"
#include "tsc.h"

#if defined(__aarch64__)
#define KERNEL_NAME		"arch_sys_counter"
#else
#define KERNEL_NAME		"tsc"
#endif

#define SYSFS "/sys/devices/system/clocksource/clocksource0/"

/* The kernel's verdict is looked at anew after so long: it can change. */
#define RECHECK_NS		UINT64CONST(10000000000)

/*
 * Brackets are some 30 ns wide: 3 ms apart they are sure to give the rate to
 * 10 ppm, and give it to 1 ppm as a rule.  It gets better with each look.
 */
#define CALIBRATION_NS	3000000
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

static bool judged = false;
static uint64 judged_at;
static const char *reason = "not looked at yet";
static bool distrusted = false; /* caught at being wrong: for this session */
static double khz;
static double uncertainty_ppm;
static char rate_text[64];		/* both, for parallel workers */
static Bracket anchor;
static bool anchored = false;

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

/*
 * The rate since the anchor; the longer ago that was, the better.  The ends
 * of a bracket are uncertain by half its width and a step of either clock.
 */
static bool
measure_rate(Bracket now)
{
	double		ticks = (double) (now.tsc - anchor.tsc);
	double		ns = (double) (now.ns - anchor.ns);
	double		error;

	if (now.tsc <= anchor.tsc || now.ns <= anchor.ns)
		return false;
	error = (anchor.width + now.width) / 2.0 + 2 * fast_clocks[KIND_TSC].window;
	set_rate(ticks / ns * 1e6, error / ticks * 1e6);
	return khz > 1e3 && khz < 1e8;
}

static bool
calibrate(void)
{
	int64		left = CALIBRATION_NS - (int64) (bracket().ns - anchor.ns);

	if (left > 0)
		pg_usleep(left / 1000 + 1);
	return measure_rate(narrowest_bracket());
}

/*
 * Takes the first look at the counter, when the library is loaded: by the time
 * that its rate is wanted, nobody needs to wait for it.
 */
void
fast_tsc_anchor(void)
{
	if (objection() == NULL)
	{
		anchor = narrowest_bracket();
		anchored = true;
	}
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
		sscanf(fast_tsc_shared, "%lf %lf", &its_khz, &its_ppm) != 2)
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

/* Whether a word stands in a file of one line. */
static bool
file_has_word(const char *path, const char *word, bool *readable)
{
	char		text[256];
	ssize_t		length;
	int			fd = OpenTransientFile(path, O_RDONLY);

	*readable = false;
	if (fd < 0)
		return false;
	length = read(fd, text, sizeof(text) - 1);
	CloseTransientFile(fd);
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
	if (!file_has_word(SYSFS "available_clocksource", KERNEL_NAME, &readable) && readable)
		return "the kernel does not offer it as a clock source";
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
	if (reason == NULL && !anchored)
		fast_tsc_anchor();		/* the kernel has changed its mind */
	if (reason == NULL && khz == 0)
		reason = take_leaders_rate() || calibrate() ? NULL : "its rate could not be measured";
	else if (reason == NULL)
		measure_rate(narrowest_bracket());
	judged = true;
	judged_at = now;
	return reason == NULL;
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
		return;

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
