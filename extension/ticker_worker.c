/*-------------------------------------------------------------------------
 *
 * ticker_worker.c
 *	  the background worker that writes the ticking clock in shared memory
 *
 * It needs no database connection, so it also runs during recovery and on a standby.
 * ticker_shared.c describes how backends wake it.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/pmsignal.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

#include "clock.h"
#include "settings.h"
#include "thread.h"
#include "ticker_shared.h"
#include "ticker_worker.h"
#include "tsc.h"

/* Sessions use their own threads until then.  A worker that always fails does not fill the log. */
#define RESTART_SECONDS	5

/*
 * A wait for the latch ends at once after a signal, but has a resolution of 1 ms.  So the
 * end of an interval is a sleep, and a signal that arrives just before it is noticed
 * after this time at the latest.
 */
#define MAX_SLEEP_NS	10000000

static pg_prng_state random_state;

extern PGDLLEXPORT void pg_fast_timing_ticker(Datum unused);

void
ticker_worker_register(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = RESTART_SECONDS;
	snprintf(worker.bgw_name, sizeof(worker.bgw_name), "pg_fast_timing ticker");
	snprintf(worker.bgw_type, sizeof(worker.bgw_type), "pg_fast_timing ticker");
	snprintf(worker.bgw_library_name, sizeof(worker.bgw_library_name), "pg_fast_timing");
	snprintf(worker.bgw_function_name, sizeof(worker.bgw_function_name), "pg_fast_timing_ticker");
	/* Logs a message if max_worker_processes is too small. */
	RegisterBackgroundWorker(&worker);
	ticker_worker_registered = true;
}

static void
retire(int code, Datum unused)
{
	shared_ticker->latch = NULL;
}

/* Reads the CPU's counter if this process may do that.  The kernel's decision can change. */
static void
choose_clocks(void)
{
	fast_tsc_usable();
	shared_ticker->ticker.with_tsc = fast_tsc_readable();
}

static void
handle_signals(void)
{
	CHECK_FOR_INTERRUPTS();
	/* With the exit status 0 the postmaster would not restart the worker. */
	if (ShutdownRequestPending || !PostmasterIsAlive())
		proc_exit(1);
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
		shared_ticker->ticker.period_ns = fast_tick_period_ns();
	}
}

/* Sleeps until `ns` at the latest. */
static void
sleep_until(uint64 now, uint64 ns)
{
	uint64		left = ns - now;

	if (left > MAX_SLEEP_NS)
		WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
				  (long) ((left - MAX_SLEEP_NS) / 1000000 + 1), PG_WAIT_EXTENSION);
	else
	{
		struct timespec interval = {0, (long) left};

		nanosleep(&interval, NULL);
	}
}

/* Changes the state before a sleep.  Returns false if a backend needs ticks. */
static bool
park(void)
{
	uint32		state = SHARED_TICKING;

	pg_atomic_compare_exchange_u32(&shared_ticker->state, &state, SHARED_PARKED);
	if (pg_atomic_read_u32(&shared_ticker->users) == 0)
		return true;
	/* A backend that still saw the ticks does not wake the worker. */
	state = SHARED_PARKED;
	pg_atomic_compare_exchange_u32(&shared_ticker->state, &state, SHARED_TICKING);
	return false;
}

/* Sleeps until a backend needs ticks, or a signal arrives. */
static void
sleep_parked(void)
{
	/* Not after the wait, because it takes some ms. */
	choose_clocks();
	WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, -1, PG_WAIT_EXTENSION);
}

/* Ticks while a backend needs it, and TICKER_LINGER_NS longer. */
static void
tick_or_sleep(void)
{
	static uint64 linger_ns = 0;
	uint64		now = system_now();
	uint64		next_ns = shared_ticker->ticker.next_ns;

	if (pg_atomic_read_u32(&shared_ticker->state) != SHARED_TICKING)
	{
		sleep_parked();
		linger_ns = system_now() + TICKER_LINGER_NS;
		return;
	}
	if (pg_atomic_read_u32(&shared_ticker->users) > 0)
		linger_ns = now + TICKER_LINGER_NS;
	if (now >= linger_ns && park())
		return;
	if (now < next_ns)
		sleep_until(now, next_ns);
	else
		tick_now(&shared_ticker->ticker, now, &random_state);
}

/* The worker's main function. */
void
pg_fast_timing_ticker(Datum unused)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	fast_thread_sleep_precisely();
	pg_prng_seed(&random_state, system_now());

	shared_ticker->ticker.period_ns = fast_tick_period_ns();
	choose_clocks();
	before_shmem_exit(retire, 0);
	/* Backends set the latch from now on.  The state is read later. */
	shared_ticker->latch = MyLatch;
	pg_memory_barrier();
	for (;;)
	{
		ResetLatch(MyLatch);
		handle_signals();
		tick_or_sleep();
	}
}
