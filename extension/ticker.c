/*-------------------------------------------------------------------------
 *
 * ticker.c
 *	  a clock in memory that moves about a thousand times a second
 *
 * A separate thread sleeps, and writes the time into memory.  It blocks every
 * signal and calls no PostgreSQL code, so it does not disturb the backend.  A
 * timer signal instead would interrupt sleeps and polls of procedural languages
 * and foreign data wrappers, interfere with the server's timeouts, and cost the
 * query 12 to 19 us per tick on a virtual machine.  A thread that is not needed
 * waits, and ends after a while.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"

#include "clock.h"
#include "settings.h"
#include "thread.h"
#include "ticker.h"
#include "tsc_rate.h"

Ticker		ticker;

/* Ticks at 1 kHz take at most 0.5% of a core, if a tick takes 5 us. */
#define DEFAULT_RATE	1000

/*
 * Waking the thread takes 0.1 ms or more, and ticks are lost meanwhile.  So the
 * thread continues to tick for a while, for the next statement or FETCH.
 */
#define LINGER_NS		20000000

/* A session that needs ticks once in a minute keeps its thread.  Tests use a shorter time. */
#ifndef TICKER_IDLE_NS
#define TICKER_IDLE_NS	UINT64CONST(60000000000)
#endif

/*
 * Time until the next attempt, if the thread could not be created.  An attempt can
 * take 0.1 ms, and without this limit the method auto would make one after each burst.
 */
#define RETRY_NS		UINT64CONST(60000000000)

static pthread_mutex_t mutex;
static pthread_cond_t changed;

/* protected by the mutex */
static bool ticking = false;	/* a query needs the ticks */
static bool parked = true;		/* the thread waits for a query */
static bool has_thread = false;
static uint64 period_ns;
static uint64 next_ns;			/* time of the next tick */
static uint64 linger_ns;		/* ticks continue until then without a query */
static bool with_tsc;
static pg_prng_state random_state;

/* used only by the backend's main thread */
static bool running = false;
static uint64 retry_ns = 0;		/* no attempt to create the thread until then */
static int	create_error;		/* errno of the last attempt */

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

void
ticker_note_period(FastQuery *query)
{
	query->period_ns = (double) ticker_period_ns();
	query->max_period_ns = Max(query->max_period_ns, query->period_ns);
}

/* Writes a tick.  Readers without a lock check that the version is even and unchanged. */
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
 * Returns a random interval around the period.  Regular ticks could coincide with
 * a rhythm of the query, and then always fall into the same node.
 */
static uint64
random_interval(void)
{
	return period_ns / 2 + pg_prng_uint64_range(&random_state, 0, period_ns);
}

/* The thread's function.  It calls no server function that can fail or raise an error. */
static void *
tick_until_idle(void *unused)
{
	fast_thread_prepare();
	pthread_mutex_lock(&mutex);
	for (;;)
	{
		uint64		now = system_now();

		if (!ticking && now >= linger_ns)
		{
			parked = true;
			if (now >= linger_ns + TICKER_IDLE_NS)
				break;
			fast_thread_wait(&changed, &mutex, linger_ns + TICKER_IDLE_NS);
		}
		else if (now < next_ns)
			fast_thread_wait(&changed, &mutex, next_ns);
		else
		{
			tick(now, with_tsc ? tsc_now() : 0);
			next_ns = now + random_interval();
		}
	}
	has_thread = false;
	pthread_mutex_unlock(&mutex);
	return NULL;
}

/* After a fork, the child has no thread, and the mutex can be locked. */
static void
forget_thread(void)
{
	fast_thread_init_locks(&mutex, &changed);
	has_thread = running = ticking = false;
	parked = true;
}

/*
 * Locks the mutex, and creates the thread if it does not exist.  The thread cannot
 * end until the mutex is unlocked.  Returns whether there is a thread.
 */
static bool
lock_with_thread(void)
{
	static bool initialized = false;
	uint64		now = system_now();

	if (!initialized)
	{
		fast_thread_init_locks(&mutex, &changed);
		pthread_atfork(NULL, NULL, forget_thread);
		initialized = true;
	}
	pthread_mutex_lock(&mutex);
	if (!has_thread && now >= retry_ns)
	{
		pg_prng_seed(&random_state, now);
		linger_ns = now;
		create_error = fast_thread_create(tick_until_idle);
		has_thread = create_error == 0;
		retry_ns = has_thread ? 0 : now + RETRY_NS;
	}
	return has_thread;
}

bool
ticker_ready(void)
{
	bool		ready = lock_with_thread();

	pthread_mutex_unlock(&mutex);
	if (!ready)
		errno = create_error;
	return ready;
}

/*
 * Starts in the middle of an interval, as if the ticks had always been running.
 *
 * An observer arriving at random is more likely to land in a long interval, and
 * lands at a random point of it.  Otherwise the first tick would account for too
 * much or too little time on average, which matters for a short query.
 */
static void
start_in_interval(void)
{
	uint64		now = system_now();
	uint64		interval;
	uint64		left;

	do
		interval = random_interval();
	while (pg_prng_uint64_range(&random_state, 0, period_ns * 3 / 2) > interval);
	left = pg_prng_uint64_range(&random_state, 0, interval);
	tick(now - (interval - left), with_tsc ? tsc_now() : 0);
	next_ns = now + left;
}

bool
ticker_start(void)
{
	/* Called here, because no function that can raise an error may be called under the lock. */
	bool		readable = fast_tsc_readable();

	/* The counter can have become usable since the outer statement started. */
	if (running && with_tsc == readable)
		return true;
	if (!lock_with_thread())
	{
		pthread_mutex_unlock(&mutex);
		return false;
	}
	with_tsc = readable;
	ticking = true;
	/* The rate does not change during a run, because the outer query relies on it. */
	if (parked || (!running && period_ns != wanted_period_ns()))
	{
		period_ns = wanted_period_ns();
		start_in_interval();
		parked = false;
		pthread_cond_signal(&changed);
	}
	pthread_mutex_unlock(&mutex);
	running = true;
	return true;
}

/*
 * On a busy machine the thread may not run until the backend sleeps.  A late tick
 * in a long run does no harm.  But a tick that is overdue at the end of the run is
 * lost, and so is the time that it would have accounted for.
 */
uint64
ticker_stop(void)
{
	uint64		now;
	uint64		lost = 0;

	/* Most runs need no ticks, and reading a slow clock takes a microsecond. */
	if (!running)
		return 0;
	now = system_now();
	pthread_mutex_lock(&mutex);
	ticking = false;
	linger_ns = now + LINGER_NS;
	if (next_ns < now)
		lost = now - ticker.last_ns;
	pthread_mutex_unlock(&mutex);
	running = false;
	return lost;
}
