/*
 * faulty_clock.c
 *		A system clock with a fault, for LD_PRELOAD.
 *
 * FAULTY_CLOCK names the fault of CLOCK_MONOTONIC: "slow" (a read takes at
 * least 20 us), "back" (34 ms behind during the second half of every 500
 * reads) or "frozen" (the same time forever).  With "denied", the process may
 * not read the time stamp counter.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *fault = "";

__attribute__((constructor)) static void
choose_fault(void)
{
	const char *name = getenv("FAULTY_CLOCK");

	if (name != NULL)
		fault = name;
	if (strcmp(fault, "denied") == 0)
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

static long
nanos(const struct timespec *t)
{
	return t->tv_sec * 1000000000L + t->tv_nsec;
}

int
clock_gettime(clockid_t id, struct timespec *t)
{
	static long reads = 0;
	static struct timespec first;
	int			rc = syscall(SYS_clock_gettime, id, t);

	if (id != CLOCK_MONOTONIC)
		return rc;
	if (strcmp(fault, "slow") == 0)
	{
		struct timespec now;

		do
			syscall(SYS_clock_gettime, id, &now);
		while (nanos(&now) - nanos(t) < 20000);
		*t = now;
	}
	else if (strcmp(fault, "back") == 0)
	{
		if (++reads % 500 > 250)
		{
			long		late = nanos(t) - 34000000L;

			t->tv_sec = late / 1000000000L;
			t->tv_nsec = late % 1000000000L;
		}
	}
	else if (strcmp(fault, "frozen") == 0)
	{
		if (first.tv_sec == 0)
			first = *t;
		*t = first;
	}
	return rc;
}
