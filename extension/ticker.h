/*-------------------------------------------------------------------------
 *
 * ticker.h
 *	  the ticking clock of this session: the worker's, a thread's, or none
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_TICKER_H
#define FAST_TICKER_H

#include "postgres.h"

#include "instr.h"
#include "settings.h"
#include "tick.h"

/* The time of a run for which ticks are missing. */
typedef struct TickerLoss
{
	uint64		lost_ns;		/* an overdue tick would have accounted for it */
	uint64		stopped_ns;		/* the ticker did not tick */
} TickerLoss;

#pragma GCC visibility push(hidden)

/* The clock that wrappers read.  It changes only while no query needs ticks. */
extern const Ticker *ticker;

/* Called after the settings are defined.  Registers the background worker, if the postmaster loads the library. */
extern void ticker_init(void);

/* Returns the mean time between ticks. */
extern uint64 ticker_period_ns(void);

/* Stores the mean time between ticks in a query, at the start and at the end of a run. */
extern void ticker_note_period(FastQuery *query);

/* Returns whether there is a clock.  Creates the thread, if it is needed.  Sets errno if that fails. */
extern bool ticker_ready(void);

/* Starts the ticks, if they are stopped.  Returns false if that fails. */
extern bool ticker_start(void);

/* Returns a mark for ticker_loss(), at the start of a run. */
extern uint64 ticker_mark(void);

/* Returns the time for which ticks are missing since the mark, before the ticks are stopped. */
extern TickerLoss ticker_loss(uint64 mark);

/* Stops the ticks. */
extern void ticker_stop(void);

/*
 * Returns what this session uses now.  `reason` is NULL, or why it is not what the
 * setting requests.
 */
extern TickerKind ticker_now(const char **reason);

#pragma GCC visibility pop

#endif							/* FAST_TICKER_H */
