/*-------------------------------------------------------------------------
 *
 * tsc.c
 *	  whether to trust the CPU's counter
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
 * How far the counter may be from the kernel's clock over a query, beyond what
 * the looks at both leave open.  The clocks of old hardware move in steps of up
 * to 300 ns.
 */
#define MOST_PPM		1000.0
#define MOST_STEP_NS	1000.0

static const char *reason = "not looked at yet";

const char *
fast_tsc_reason(void)
{
	return reason;
}

#ifdef HAVE_TSC

static bool judged = false;
static uint64 judged_at;
static bool distrusted = false; /* caught at being wrong: for this session */

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
	if (distrusted || fast_rate_refused())
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

/* Takes the first look at the counter, when the library is loaded. */
void
fast_tsc_anchor(void)
{
	if (objection() == NULL)
		fast_rate_anchor();
}

/* Whether it can be used, as things are now. */
bool
fast_tsc_usable(void)
{
	uint64		now = system_now();

	if (judged && now - judged_at < RECHECK_NS)
		return reason == NULL;

	reason = objection();
	if (reason == NULL && !fast_rate_measure())
		reason = "its rate could not be measured";
	for (int kind = 0; kind < lengthof(fast_clocks); kind++)
		fast_clocks[kind].stale = true; /* the kernel may have changed its clock, too */
	judged = true;
	judged_at = now;
	return reason == NULL;
}

/* Also of one that is no longer used: a statement that began before may still go on. */
Bracket
fast_tsc_look(void)
{
	Bracket		look = {0};

	if (fast_tsc_readable())
		look = fast_bracket();
	look.ppm = fast_tsc_uncertainty_ppm();
	return look;
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
	by_kernel = (double) (int64) (end.ns - start.ns);
	/* whoever is interrupted in the midst of a look has seen little */
	uncertain = (start.width + end.width) / 2.0 * fast_clocks[KIND_TSC].ns_per_tick;
	/* nor is the rate better known than it said; a nested statement may have begun anew since */
	uncertain += by_kernel * start.ppm / 1e6;
	if (fabs(by_tsc - by_kernel) <= by_kernel * MOST_PPM / 1e6 + MOST_STEP_NS + uncertain)
	{
		if (reason == NULL)
			fast_rate_refine(end);
		judged = judged && fast_rate_sure();
		return;
	}

	distrusted = true;
	fast_rate_refuse();
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

Bracket
fast_tsc_look(void)
{
	Bracket		none = {0};

	return none;
}

void
fast_tsc_compare(Bracket start)
{
}

#endif
