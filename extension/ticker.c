/*-------------------------------------------------------------------------
 *
 * ticker.c
 *	  the ticking clock of this session: the worker's, a thread's, or none
 *
 * The background worker serves all sessions.  A session uses its own thread if there
 * is no worker, if the worker does not tick, or if it ticks at another rate.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "clock.h"
#include "ticker.h"
#include "ticker_shared.h"
#include "ticker_thread.h"
#include "ticker_worker.h"
#include "tsc_rate.h"

const Ticker *ticker = &thread_ticker;

/* The mark of a run that started before the ticks. */
#define MARK_BEFORE_TICKS	PG_UINT64_MAX

static bool running = false;	/* a query needs the ticks */
static uint64 stopped_before_ns;	/* ticker->stopped_ns when the ticks started */
static const char *fallback = NULL; /* why they are not those of the worker */

void
ticker_init(void)
{
	if (process_shared_preload_libraries_in_progress && fast_ticker == TICKER_WORKER)
		ticker_worker_register();
}

uint64
ticker_period_ns(void)
{
	return running ? ticker->period_ns : fast_tick_period_ns();
}

void
ticker_note_period(FastQuery *query)
{
	query->period_ns = (double) ticker_period_ns();
	query->max_period_ns = Max(query->max_period_ns, query->period_ns);
}

static bool
uses_worker(void)
{
	return ticker != &thread_ticker;
}

/* Returns why the session cannot use the worker's clock, or NULL. */
static const char *
refusal(void)
{
	return ticker_shared_refusal(fast_tick_period_ns(), fast_tsc_readable());
}

bool
ticker_ready(void)
{
	if (fast_ticker == TICKER_WORKER && refusal() == NULL)
		return true;
	errno = 0;
	return fast_ticker != TICKER_NONE && ticker_thread_ready();
}

/* Starts the ticks of the worker, or else of the thread.  Returns false if that fails. */
static bool
start(void)
{
	uint64		period_ns = fast_tick_period_ns();
	bool		with_tsc = fast_tsc_readable();

	if (fast_ticker == TICKER_NONE)
		return false;
	fallback = NULL;
	if (fast_ticker == TICKER_WORKER)
	{
		fallback = ticker_shared_start(period_ns, with_tsc);
		if (fallback == NULL)
		{
			ticker = &shared_ticker->ticker;
			return true;
		}
	}
	ticker = &thread_ticker;
	return ticker_thread_start(period_ns, with_tsc);
}

bool
ticker_start(void)
{
	if (!running)
	{
		running = start();
		stopped_before_ns = ticker->stopped_ns;
		return running;
	}
	/* The counter can have become usable since the outer statement started. */
	if (ticker->with_tsc || !fast_tsc_readable())
		return true;
	/* The rate does not change during a run, because the outer query relies on it. */
	return !uses_worker() && ticker_thread_start(ticker->period_ns, true);
}

uint64
ticker_mark(void)
{
	return running ? ticker->stopped_ns : MARK_BEFORE_TICKS;
}

/*
 * On a busy machine the worker or the thread may not run until the backend sleeps.  A
 * late tick in a long run does no harm.  But a tick that is overdue at the end of the
 * run is lost, and so is the time that it would have accounted for.
 */
TickerLoss
ticker_loss(uint64 mark)
{
	TickerLoss	loss = {0, 0};
	uint64		now;
	uint64		overdue_ns;
	uint64		last_ns;

	/* Most runs need no ticks, and reading a slow clock takes a microsecond. */
	if (!running)
		return loss;
	loss.stopped_ns = ticker->stopped_ns - (mark == MARK_BEFORE_TICKS ? stopped_before_ns : mark);
	now = system_now();
	overdue_ns = tick_overdue_ns(ticker, now);
	/* A tick can come between these reads. */
	last_ns = Min(ticker->last_ns, now);
	if (tick_was_stopped(ticker, overdue_ns))
		loss.stopped_ns += now - last_ns;
	else if (overdue_ns > 0)
		loss.lost_ns = now - last_ns;
	return loss;
}

void
ticker_stop(void)
{
	if (!running)
		return;
	if (uses_worker())
		ticker_shared_stop();
	else
		ticker_thread_stop();
	running = false;
}

/* Returns what a statement would use that started now. */
static TickerKind
next_ticker(const char **reason)
{
	int			error;

	*reason = NULL;
	if (fast_ticker == TICKER_NONE)
		return TICKER_NONE;
	if (fast_ticker == TICKER_WORKER)
	{
		*reason = refusal();
		if (*reason == NULL)
			return TICKER_WORKER;
	}
	error = ticker_thread_error();
	if (error == 0)
		return TICKER_THREAD;
	*reason = psprintf("could not create a thread: %s", strerror(error));
	return TICKER_NONE;
}

TickerKind
ticker_now(const char **reason)
{
	TickerKind	next = next_ticker(reason);

	if (!running)
		return next;
	*reason = fallback;
	return uses_worker() ? TICKER_WORKER : TICKER_THREAD;
}
