/*-------------------------------------------------------------------------
 *
 * ticker_shared.c
 *	  a ticking clock in shared memory, for all backends: the backends' part
 *
 * The background worker writes the clock while a backend needs it, and sleeps
 * otherwise.  No backend waits for the worker: it does not use a clock that does
 * not tick.
 *
 * A backend that needs ticks adds itself to `users`, and then reads `state`.  The
 * worker that wants to sleep changes `state`, and then reads `users`.  Both use atomic
 * operations with full barriers, so at least one of them sees the other one.
 *
 * The backend that wakes the worker writes the first tick itself, because it takes the
 * worker 0.1 ms or more to wake.  Only one backend can change the state for that.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#include "clock.h"
#include "ticker_shared.h"

/*
 * A worker that has not ticked for this time is dead, stopped, or gets no CPU time.
 * On a busy machine it gets CPU time within some ms.
 */
#define DEAD_NS			100000000
#define DEAD_PERIODS	4

/*
 * Writing the first tick takes 0.2 us.  A backend that sees another one do that reads
 * the state again, for some us.
 */
#define MAX_READS		1000

SharedTicker *shared_ticker = NULL;
bool		ticker_worker_registered = false;

static bool is_user = false;	/* this backend is in `users` */

Size
ticker_shared_size(void)
{
	return sizeof(SharedTicker);
}

void
ticker_shared_attach(void)
{
	bool		found;

	shared_ticker = ShmemInitStruct("pg_fast_timing ticker", sizeof(SharedTicker), &found);
	if (found)
		return;
	memset(shared_ticker, 0, sizeof(*shared_ticker));
	pg_atomic_init_u32(&shared_ticker->state, SHARED_PARKED);
	pg_atomic_init_u32(&shared_ticker->users, 0);
}

const char *
ticker_shared_refusal(uint64 period_ns, bool needs_tsc)
{
	const Ticker *clock;

	if (shared_ticker == NULL)
		return "the library is not in shared_preload_libraries";
	if (!ticker_worker_registered)
		return "pg_fast_timing.ticker had another value when the server started";
	if (shared_ticker->latch == NULL)
		return "the background worker is not running; max_worker_processes may be too small";
	clock = &shared_ticker->ticker;
	if (clock->period_ns != period_ns)
		return "the background worker has another sample_rate than this session";
	if (needs_tsc && !clock->with_tsc)
		return "the background worker cannot read the CPU's counter";
	if (pg_atomic_read_u32(&shared_ticker->state) == SHARED_TICKING &&
		tick_overdue_ns(clock, system_now()) > DEAD_NS + DEAD_PERIODS * period_ns)
		return "the background worker does not tick";
	return NULL;
}

/*
 * Called when the backend exits, also after a FATAL error.  A crash resets the shared
 * memory.  A child process of the backend is not a user.
 */
static void
forget_user(int code, Datum unused)
{
	if (is_user && MyProcPid == (int) getpid())
		ticker_shared_stop();
}

static void
add_user(void)
{
	static bool registered = false;

	if (!registered)
		on_shmem_exit(forget_user, 0);
	registered = true;
	pg_atomic_fetch_add_u32(&shared_ticker->users, 1);
	is_user = true;
}

void
ticker_shared_stop(void)
{
	is_user = false;
	pg_atomic_fetch_sub_u32(&shared_ticker->users, 1);
}

/* Writes the first tick, and wakes the worker. */
static void
wake_worker(void)
{
	Latch	   *latch;

	tick_start(&shared_ticker->ticker, &pg_global_prng_state);
	/* The worker stores its latch before it reads the state. */
	pg_atomic_exchange_u32(&shared_ticker->state, SHARED_TICKING);
	latch = shared_ticker->latch;
	if (latch != NULL)
		SetLatch(latch);
}

/* Wakes the worker if it sleeps.  Returns false if another backend takes too long for that. */
static bool
ensure_ticking(void)
{
	for (int i = 0; i < MAX_READS; i++)
	{
		uint32		state = SHARED_PARKED;

		if (pg_atomic_compare_exchange_u32(&shared_ticker->state, &state, SHARED_STARTING))
		{
			wake_worker();
			return true;
		}
		if (state == SHARED_TICKING)
			return true;
	}
	return false;
}

const char *
ticker_shared_start(uint64 period_ns, bool needs_tsc)
{
	const char *refusal = ticker_shared_refusal(period_ns, needs_tsc);

	if (refusal != NULL)
		return refusal;
	add_user();
	if (ensure_ticking())
		return NULL;
	ticker_shared_stop();
	return "another session is waking the background worker";
}
