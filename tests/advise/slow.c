/*
 * A server whose timestamps take SLOW_NS longer, for LD_PRELOAD: glibc's gettimeofday asks the vDSO, so nothing less
 * than the function itself stands in between.
 */
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long slow_ns;

__attribute__((constructor)) static void
set_up(void)
{
	slow_ns = atol(getenv("SLOW_NS"));
}

static long
now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

int
gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	long		start = now_ns(CLOCK_MONOTONIC);
	long		ns;

	while (now_ns(CLOCK_MONOTONIC) - start < slow_ns)
		;
	ns = now_ns(CLOCK_REALTIME);
	now->tv_sec = ns / 1000000000L;
	now->tv_usec = ns % 1000000000L / 1000;
	return 0;
}
