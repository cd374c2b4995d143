/*-------------------------------------------------------------------------
 *
 * ticker.c
 *	  a clock in memory that moves some hundred times a second
 *
 * A thread of its own sleeps and writes down the time.  It blocks every signal
 * and calls nothing of PostgreSQL's, so that the backend is not disturbed: a
 * timer's signal would end the sleeps and polls of procedural languages and
 * foreign data wrappers early, take part in the server's own timeouts, and
 * cost the query 12 to 19 us each time on a virtual machine.  A thread that is
 * not needed sleeps until it is.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>

#include "common/pg_prng.h"
#include "miscadmin.h"

#include "ticker.h"

Ticker		ticker;

/* A rate of 1 kHz costs a core 0.5% at most where a tick takes 5 us. */
#define DEFAULT_RATE	1000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER;

/* under the mutex */
static bool ticking = false;
static uint64 period_ns;
static bool with_tsc;
static pg_prng_state random_state;

/* of the backend alone */
static bool running = false;
static pid_t thread_of = 0;		/* a forked child has no thread */

uint64
ticker_period_ns(void)
{
	return 1000000000 / (fast_sample_rate > 0 ? fast_sample_rate : DEFAULT_RATE);
}

/* A tick: what is read without a lock changes between two versions. */
static void
tick(uint64 ns, uint64 tsc)
{
	ticker.version++;
	pg_write_barrier();
	ticker.prev_ns = ticker.last_ns;
	ticker.last_ns = ns;
	ticker.last_tsc = tsc;
	pg_write_barrier();
	ticker.version++;
}

/*
 * Sleeps at random lengths around the period: ticks in step with a query's own
 * rhythm would always meet the same node.
 */
static void *
tick_forever(void *unused)
{
	pthread_mutex_lock(&mutex);
	for (;;)
	{
		struct timespec nap;
		uint64		ns;

		while (!ticking)
			pthread_cond_wait(&wanted, &mutex);
		ns = period_ns / 2 + pg_prng_uint64_range(&random_state, 0, period_ns);
		pthread_mutex_unlock(&mutex);

		nap.tv_sec = ns / 1000000000;
		nap.tv_nsec = ns % 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);

		pthread_mutex_lock(&mutex);
		if (ticking)
			tick(system_now(), with_tsc ? tsc_now() : 0);
	}
	return NULL;
}

static bool
create_thread(void)
{
	pthread_attr_t attributes;
	pthread_t	thread;
	sigset_t	all;
	sigset_t	old;
	bool		created;

	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, Max(64 * 1024, PTHREAD_STACK_MIN));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	created = pthread_create(&thread, &attributes, tick_forever, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	return created;
}

bool
ticker_ready(void)
{
	if (thread_of != MyProcPid)
	{
		pg_prng_seed(&random_state, system_now());
		if (!create_thread())
			return false;
		thread_of = MyProcPid;
	}
	return true;
}

bool
ticker_start(void)
{
	if (running)
		return true;
	if (!ticker_ready())
		return false;

	pthread_mutex_lock(&mutex);
	period_ns = ticker_period_ns();
	with_tsc = fast_tsc_usable();

	/*
	 * Nobody knows when the last tick would have been.  Somewhere in the last
	 * period: so that what is given out at the first tick is neither too much
	 * nor too little on average.
	 */
	tick(system_now() - pg_prng_uint64_range(&random_state, 0, period_ns),
		 with_tsc ? tsc_now() : 0);
	ticking = true;
	pthread_cond_signal(&wanted);
	pthread_mutex_unlock(&mutex);
	running = true;
	return true;
}

void
ticker_stop(void)
{
	if (!running)
		return;
	pthread_mutex_lock(&mutex);
	ticking = false;
	pthread_mutex_unlock(&mutex);
	running = false;
}

/*
 * A call that one tick met may have been nearly as short as nothing or nearly
 * as long as two periods; of one that spans several only the ends are
 * uncertain.
 */
double
tick_variance(uint64 ns)
{
	double		period = (double) ticker_period_ns();

	return ns < 2 * period ? (double) ns * ns : period * period / 6;
}
