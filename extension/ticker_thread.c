/*-------------------------------------------------------------------------
 *
 * ticker_thread.c
 *	  a ticking clock that a thread of this backend writes
 *
 * The thread blocks every signal and calls no PostgreSQL code, so it does not disturb
 * the backend.  A timer signal instead would interrupt sleeps and polls of procedural
 * languages and foreign data wrappers, interfere with the server's timeouts, and cost
 * the query 12 to 19 us per tick on a virtual machine.  A thread that is not needed
 * waits, and ends after a while.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "thread.h"
#include "ticker_thread.h"

Ticker		thread_ticker;

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

/* protected by the mutex, as is thread_ticker */
static bool ticking = false;	/* a query needs the ticks */
static bool parked = true;		/* the thread waits for a query */
static bool has_thread = false;
static uint64 linger_ns;		/* ticks continue until then without a query */
static pg_prng_state random_state;

/* used only by the backend's main thread */
static uint64 retry_ns = 0;		/* no attempt to create the thread until then */
static int	create_error;		/* errno of the last attempt */

/* The thread's function.  It calls no server function that can fail or raise an error. */
static void *
tick_until_idle(void *unused)
{
	fast_thread_set_name();
	fast_thread_sleep_precisely();
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
		else if (now < thread_ticker.next_ns)
			fast_thread_wait(&changed, &mutex, thread_ticker.next_ns);
		else
			tick_now(&thread_ticker, now, &random_state);
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
	has_thread = ticking = false;
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
ticker_thread_ready(void)
{
	bool		ready = lock_with_thread();

	pthread_mutex_unlock(&mutex);
	if (!ready)
		errno = create_error;
	return ready;
}

int
ticker_thread_error(void)
{
	return retry_ns != 0 && system_now() < retry_ns ? create_error : 0;
}

bool
ticker_thread_start(uint64 period_ns, bool with_tsc)
{
	bool		ready = lock_with_thread();

	if (ready)
	{
		ticking = true;
		thread_ticker.with_tsc = with_tsc;
		if (parked || thread_ticker.period_ns != period_ns)
		{
			thread_ticker.period_ns = period_ns;
			tick_start(&thread_ticker, &random_state);
			parked = false;
			pthread_cond_signal(&changed);
		}
	}
	pthread_mutex_unlock(&mutex);
	return ready;
}

void
ticker_thread_stop(void)
{
	uint64		now = system_now();

	pthread_mutex_lock(&mutex);
	ticking = false;
	linger_ns = now + TICKER_LINGER_NS;
	pthread_mutex_unlock(&mutex);
}
