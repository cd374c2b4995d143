/*-------------------------------------------------------------------------
 *
 * ticker.h
 *	  a clock in memory that moves about a thousand times a second
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_TICKER_H
#define FAST_TICKER_H

#include "postgres.h"

#include "instr.h"
#include "port/atomics.h"

/* The ticker's thread writes this, and backends read it without a lock. */
typedef struct Ticker
{
	volatile uint64 last_ns;	/* time of the last tick */
	volatile uint64 prev_ns;	/* time of the tick before it */
	volatile uint64 last_tsc;	/* the last tick by the TSC, if that is usable */
	volatile uint32 version;	/* odd while these are being changed */
} Ticker;

#pragma GCC visibility push(hidden)
extern Ticker ticker;

/* Returns the mean time between ticks. */
extern uint64 ticker_period_ns(void);

/* Stores the mean time between ticks in a query, at the start of a run. */
extern void ticker_note_period(FastQuery *query);

/* Creates the thread, if it does not exist.  Returns false, and sets errno, if that fails. */
extern bool ticker_ready(void);

/* Starts the ticks, if they are stopped.  Returns false if that fails. */
extern bool ticker_start(void);

/* Stops the ticks.  Returns the ns that an overdue tick would have accounted for. */
extern uint64 ticker_stop(void);
#pragma GCC visibility pop

#endif							/* FAST_TICKER_H */
