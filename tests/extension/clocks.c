/*
 * Stands between a server and its clocks, for LD_PRELOAD. What it does is set in the environment:
 *
 *   SLOW_NS      each read of the clock takes so much longer
 *   RAW_PPM      CLOCK_MONOTONIC_RAW is faster by so much: a counter measured by it seems slower
 *   RAW_BACK     at each read, CLOCK_MONOTONIC_RAW has gone back by an hour
 *   SWITCH       once this file is there, it is no longer; and without RAW_PPM, CLOCK_MONOTONIC and it are 5 s ahead:
 *                they went on while the counter stood still
 *   TSC_DENIED   prctl says that this process may not read the counter
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int (*next)(clockid_t, struct timespec *);
static long slow_ns, raw_ppm, raw_reads;
static const char *switch_file;

__attribute__((constructor)) static void
set_up(void)
{
	const char *slow = getenv("SLOW_NS"), *ppm = getenv("RAW_PPM"), *file = getenv("SWITCH");

	next = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
	slow_ns = slow ? atol(slow) : 0;
	raw_ppm = ppm ? atol(ppm) : 0;
	/* a copy: PostgreSQL writes its title over the environment */
	switch_file = file ? strdup(file) : NULL;
}

static long
ns(const struct timespec *t)
{
	return t->tv_sec * 1000000000L + t->tv_nsec;
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	struct timespec start;
	int			result;
	bool		switched;

	if (!next)
		return syscall(SYS_clock_gettime, clock, now);
	if (slow_ns)
		for (next(CLOCK_MONOTONIC, &start), next(CLOCK_MONOTONIC, now); ns(now) - ns(&start) < slow_ns;)
			next(CLOCK_MONOTONIC, now);
	result = next(clock, now);
	if (clock == CLOCK_MONOTONIC_RAW && getenv("RAW_BACK"))
		now->tv_sec -= 3600 * ++raw_reads;
	if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_RAW)
		return result;
	switched = switch_file && access(switch_file, F_OK) == 0;
	if (raw_ppm && !switched && clock == CLOCK_MONOTONIC_RAW)
	{
		long		faster = ns(now) + ns(now) / 1000000 * raw_ppm;

		now->tv_sec = faster / 1000000000L;
		now->tv_nsec = faster % 1000000000L;
	}
	if (!raw_ppm && switched)
		now->tv_sec += 5;
	return result;
}

/* glibc's own asks the vDSO, and not the function above. */
int
gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec exact;
	int			result = clock_gettime(CLOCK_REALTIME, &exact);

	now->tv_sec = exact.tv_sec;
	now->tv_usec = exact.tv_nsec / 1000;
	return result;
}

int
prctl(int option, ...)
{
	unsigned long argument[4];
	va_list		list;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		argument[i] = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_GET_TSC && getenv("TSC_DENIED"))
	{
		*(int *) argument[0] = PR_TSC_SIGSEGV;
		return 0;
	}
	return syscall(SYS_prctl, option, argument[0], argument[1], argument[2], argument[3]);
}
