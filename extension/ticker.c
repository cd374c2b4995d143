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
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "common/pg_prng.h"

#include "ticker.h"

Ticker		ticker;

/* A rate of 1 kHz costs a core 0.5% at most where a tick takes 5 us. */
#define DEFAULT_RATE	1000

/*
 * A thread that waits for nobody takes 0.1 ms or more to be woken, in which
 * ticks are lost: so it goes on for a while, for the next statement or FETCH.
 */
#define LINGER_NS		20000000

static pthread_mutex_t mutex;
static pthread_cond_t changed;

/* under the mutex */
static bool ticking = false;	/* somebody looks at the clock */
static bool parked = true;		/* the thread waits for that */
static uint64 period_ns;
static uint64 next_ns;			/* when the next tick is due */
static uint64 linger_ns;		/* until then it ticks for nobody */
static bool with_tsc;
static pg_prng_state random_state;

/* of the backend alone */
static bool running = false;
static bool has_thread = false;

static uint64
wanted_period_ns(void)
{
	return 1000000000 / (fast_sample_rate > 0 ? fast_sample_rate : DEFAULT_RATE);
}

uint64
ticker_period_ns(void)
{
	return running ? period_ns : wanted_period_ns();
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
 * Random lengths around the period: ticks in step with a query's own rhythm
 * would always meet the same node.
 */
static uint64
random_nap(void)
{
	return period_ns / 2 + pg_prng_uint64_range(&random_state, 0, period_ns);
}

static void
wait_until(uint64 ns)
{
#if defined(__APPLE__)
	uint64		now = system_now();
	struct timespec left = {(ns - now) / 1000000000, (ns - now) % 1000000000};

	if (now < ns)
		pthread_cond_timedwait_relative_np(&changed, &mutex, &left);
#else
	struct timespec due = {ns / 1000000000, ns % 1000000000};

	pthread_cond_timedwait(&changed, &mutex, &due);
#endif
}

/* Nothing of the server's that can fail or throw is called here. */
static void *
tick_forever(void *unused)
{
#if defined(PR_SET_TIMERSLACK)
	/* ns; by default it is as much as a short query takes */
	prctl(PR_SET_TIMERSLACK, 1UL);
#endif
	pthread_mutex_lock(&mutex);
	for (;;)
	{
		uint64		now = system_now();

		if (!ticking && now >= linger_ns)
		{
			parked = true;
			pthread_cond_wait(&changed, &mutex);
		}
		else if (now < next_ns)
			wait_until(next_ns);
		else
		{
			tick(now, with_tsc ? tsc_now() : 0);
			next_ns = now + random_nap();
		}
	}
	return NULL;
}

static void
prepare(void)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&mutex, NULL);
	pthread_condattr_init(&attributes);
#if !defined(__APPLE__)
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
	pthread_cond_init(&changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

/* A language that forks leaves a child without the thread, and perhaps with its lock. */
static void
forget_thread(void)
{
	prepare();
	has_thread = running = ticking = false;
	parked = true;
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
	static bool prepared = false;

	if (!prepared)
	{
		prepare();
		pthread_atfork(NULL, NULL, forget_thread);
		prepared = true;
	}
	if (!has_thread)
	{
		pg_prng_seed(&random_state, system_now());
		has_thread = create_thread();
	}
	return has_thread;
}

/*
 * Ticks as if it had always done so.  Who comes at any time comes into a nap
 * that is the more likely the longer it is, at a random point of it.  Without
 * that, what is given out at the first tick would be too much or too little on
 * average, which is all there is of a short query.
 */
static void
begin_midway(void)
{
	uint64		now = system_now();
	uint64		nap;
	uint64		left;

	do
		nap = random_nap();
	while (pg_prng_uint64_range(&random_state, 0, period_ns * 3 / 2) > nap);
	left = pg_prng_uint64_range(&random_state, 0, nap);
	tick(now - (nap - left), with_tsc ? tsc_now() : 0);
	next_ns = now + left;
}

bool
ticker_start(void)
{
	/* asked here: nothing that can throw under the lock */
	bool		readable = fast_tsc_readable();

	/* a statement within one that knew no counter may know it */
	if (running && with_tsc == readable)
		return true;
	if (!ticker_ready())
		return false;

	pthread_mutex_lock(&mutex);
	with_tsc = readable;
	ticking = true;
	if (parked || period_ns != wanted_period_ns())
	{
		period_ns = wanted_period_ns();
		begin_midway();
		parked = false;
		pthread_cond_signal(&changed);
	}
	pthread_mutex_unlock(&mutex);
	running = true;
	return true;
}

/*
 * On a busy machine the thread may have to wait until the backend sleeps.  In a
 * long run a tick is late then, which does no harm; but one that was due at the
 * end is lost, and with it the time that it would have told.
 */
uint64
ticker_stop(void)
{
	uint64		now = system_now();
	uint64		lost = 0;

	if (!running)
		return 0;
	pthread_mutex_lock(&mutex);
	ticking = false;
	linger_ns = now + LINGER_NS;
	if (next_ns < now)
		lost = now - ticker.last_ns;
	pthread_mutex_unlock(&mutex);
	running = false;
	return lost;
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
