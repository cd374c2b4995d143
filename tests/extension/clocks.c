/*
 * A library for LD_PRELOAD that makes a server's clocks faulty. The environment selects the faults:
 *
 *   SLOW_NS      each read of a clock takes this many ns longer
 *   RAW_PPM      CLOCK_MONOTONIC_RAW runs faster by this rate, so a counter measured against it seems slower
 *   RAW_BACK     CLOCK_MONOTONIC_RAW goes back by an hour at each read
 *   RAW_LATE     this many reads of CLOCK_MONOTONIC_RAW return 0.3 ms late, with a value that is 2 us too low
 *   NO_THREAD    no thread can be created, so there is no ticking clock
 *   SWITCH       when this file exists, RAW_PPM ends, and RAW_LATE and NO_THREAD start. Without these three, CLOCK_MONOTONIC
 *                and CLOCK_MONOTONIC_RAW are 5 s ahead, as if the counter had stood still
 *   TSC_DENIED   prctl reports that this process may not read the counter
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
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
static long slow_ns, raw_ppm, raw_late, raw_reads;
static bool no_thread;
static const char *switch_file;

__attribute__((constructor)) static void
set_up(void)
{
	const char *slow = getenv("SLOW_NS"), *ppm = getenv("RAW_PPM"), *late = getenv("RAW_LATE"), *file = getenv("SWITCH");

	next = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
	slow_ns = slow ? atol(slow) : 0;
	raw_ppm = ppm ? atol(ppm) : 0;
	no_thread = getenv("NO_THREAD") != NULL;
	raw_late = late ? atol(late) : 0;
	/* a copy, because PostgreSQL overwrites the environment with its process title */
	switch_file = file ? strdup(file) : NULL;
}

static bool
is_switched(void)
{
	return switch_file && access(switch_file, F_OK) == 0;
}

static long
ns(const struct timespec *t)
{
	return t->tv_sec * 1000000000L + t->tv_nsec;
}

static void
spend(long ns_more)
{
	struct timespec start, now;

	for (next(CLOCK_MONOTONIC, &start), next(CLOCK_MONOTONIC, &now); ns(&now) - ns(&start) < ns_more;)
		next(CLOCK_MONOTONIC, &now);
}

static void
set(struct timespec *t, long to)
{
	t->tv_sec = to / 1000000000L;
	t->tv_nsec = to % 1000000000L;
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	int			result;
	bool		switched;

	if (!next)
		return syscall(SYS_clock_gettime, clock, now);
	if (slow_ns)
		spend(slow_ns);
	result = next(clock, now);
	if (clock == CLOCK_MONOTONIC_RAW && getenv("RAW_BACK"))
		now->tv_sec -= 3600 * ++raw_reads;
	if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_RAW && clock != CLOCK_MONOTONIC_COARSE)
		return result;
	switched = is_switched();
	if (raw_ppm && !switched && clock == CLOCK_MONOTONIC_RAW)
		set(now, ns(now) * (1 + raw_ppm / 1e6));
	if (raw_late && switched && clock == CLOCK_MONOTONIC_RAW && raw_reads++ < raw_late)
	{
		set(now, ns(now) - 2000);
		spend(300000);
	}
	if (!raw_ppm && !raw_late && !no_thread && switched)
		now->tv_sec += 5;
	return result;
}

/* glibc's version reads the vDSO, and does not call the function above. */
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
pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*start)(void *), void *restrict argument)
{
	int			(*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");

	return no_thread && (!switch_file || is_switched()) ? EAGAIN : real(thread, attributes, start, argument);
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
