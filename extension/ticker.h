/*-------------------------------------------------------------------------
 *
 * ticker.h
 *	  a clock in memory that moves some hundred times a second
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_TICKER_H
#define FAST_TICKER_H

#include "port/atomics.h"

#include "clock.h"

/* Written by the ticker's thread, read by everybody. */
typedef struct Ticker
{
	volatile uint64 last_ns;	/* of the last tick */
	volatile uint64 prev_ns;	/* of the one before */
	volatile uint64 last_tsc;	/* the last tick by the TSC, where that is usable */
	volatile uint32 version;	/* odd while these are being changed */
} Ticker;

#pragma GCC visibility push(hidden)
extern Ticker ticker;

/* Mean time between ticks. */
extern uint64 ticker_period_ns(void);

/* Has its thread, or makes it.  False if that is not to be had. */
extern bool ticker_ready(void);

/* Starts to tick, if it does not yet.  False if it cannot. */
extern bool ticker_start(void);

/* Stops; returns the ns that a late tick would have told of. */
extern uint64 ticker_stop(void);

/* How far the time is off that ticks give to a call, in ns^2. */
extern double tick_variance(uint64 ns);
#pragma GCC visibility pop

#endif							/* FAST_TICKER_H */
