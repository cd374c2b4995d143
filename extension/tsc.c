/*-------------------------------------------------------------------------
 *
 * tsc.c
 *	  whether the CPU's counter can be trusted
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

#include "clock.h"
#include "tsc.h"
#include "tsc_share.h"

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

#define SYSFS "/sys/devices/system/clocksource/clocksource0/"

/* The kernel's decision can change, so it is read again after this time. */
#define RECHECK_NS		UINT64CONST(10000000000)

/*
 * The largest difference between the counter and the kernel's clock over a query,
 * beyond the errors of the readings.  The clocks of old hardware move in steps
 * of up to 300 ns.
 */
#define MAX_PPM			1000.0
#define MAX_STEP_NS		1000.0

static const char *reason = "not checked yet";

const char *
fast_tsc_reason(void)
{
	return reason;
}

#ifdef HAVE_TSC

static bool checked = false;
static uint64 checked_at;
static bool distrusted = false; /* was wrong in this session */

/*
 * Returns whether a file of one line contains a word.  The server's functions
 * are not used, because they can raise errors.
 */
static bool
file_has_word(const char *path, const char *word, bool *readable)
{
	char		text[256];
	char	   *rest;
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
	for (char *token = strtok_r(text, " \n", &rest); token; token = strtok_r(NULL, " \n", &rest))
	{
		if (strcmp(token, word) == 0)
			return true;
	}
	return false;
}

/* Returns why the counter must not be used, or NULL. */
static const char *
distrust_reason(void)
{
	bool		readable;

#ifdef PR_GET_TSC
	int			permission = 0; /* no known permission */

	/* A forbidden read would kill the server process. */
	if (prctl(PR_GET_TSC, &permission) == 0 && permission != PR_TSC_ENABLE)
		return "this process may not read it (PR_SET_TSC)";
#endif
	if (distrusted || fast_leader_refuses())
		return "it differed from the kernel's clock";
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
	/* Without sysfs the kernel's decision is unknown and does not matter. */
	if (!file_has_word(SYSFS KERNEL_FILE, KERNEL_NAME, &readable) && readable)
		return KERNEL_SAYS;
	return NULL;
}

/* Takes the first reading, when the library is loaded. */
void
fast_tsc_init(void)
{
	if (distrust_reason() == NULL)
		fast_rate_init();
}

/* Returns whether the counter can be used now. */
bool
fast_tsc_usable(void)
{
	uint64		now = system_now();

	if (checked && now - checked_at < RECHECK_NS)
		return reason == NULL;

	reason = distrust_reason();
	if (reason == NULL && !fast_rate_measure())
		reason = "its rate could not be measured";
	for (int kind = 0; kind < lengthof(fast_clocks); kind++)
		fast_clocks[kind].stale = true; /* the kernel may have switched its clock source */
	checked = true;
	checked_at = now;
	return reason == NULL;
}

/*
 * Reads both clocks.  Also reads a counter that is no longer used, because an
 * earlier statement may still run with it.
 */
ClockPair
fast_tsc_read(void)
{
	ClockPair	pair = {0};

	if (fast_tsc_readable())
		pair = fast_read_pair();
	pair.ppm = fast_tsc_uncertainty_ppm();
	return pair;
}

/*
 * Compares the counter with the kernel's clock since `start`.  After a migration
 * or a suspend of a virtual machine, the counter can have another rate, or it
 * may have stood still.
 */
void
fast_tsc_compare(ClockPair start)
{
	ClockPair	end = fast_tsc_read();
	double		by_tsc;
	double		by_kernel;
	double		uncertain;

	if (start.ns == 0 || end.ns == 0)
		return;
	by_tsc = (double) (int64) (end.tsc - start.tsc) * fast_clocks[KIND_TSC].ns_per_tick;
	by_kernel = (double) (int64) (end.ns - start.ns);
	/* An interruption during a reading makes it less precise. */
	uncertain = (start.width + end.width) / 2.0 * fast_clocks[KIND_TSC].ns_per_tick;
	/* The rate has an error, too.  A nested statement may have measured it again since. */
	uncertain += by_kernel * start.ppm / 1e6;
	if (fabs(by_tsc - by_kernel) <= by_kernel * MAX_PPM / 1e6 + MAX_STEP_NS + uncertain)
	{
		if (reason == NULL)
			fast_rate_refine(end);
		checked = checked && fast_rate_certain();
		return;
	}

	distrusted = true;
	fast_share_refusal();
	checked = false;
	fast_tsc_usable();
	ereport(WARNING,
			(errmsg("times of this statement's plan nodes are wrong: it took %.3f ms by the CPU's counter, and %.3f ms by the kernel's clock",
					by_tsc / 1e6, by_kernel / 1e6),
			 errhint("pg_fast_timing does not use the counter in this session any more.")));
}

#else							/* no known counter */

bool
fast_tsc_usable(void)
{
	reason = "pg_fast_timing supports no counter on this platform";
	return false;
}

void
fast_tsc_init(void)
{
}

ClockPair
fast_tsc_read(void)
{
	ClockPair	none = {0};

	return none;
}

void
fast_tsc_compare(ClockPair start)
{
}

#endif
