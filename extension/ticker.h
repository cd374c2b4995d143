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

/* Starts to tick, if it does not yet.  False if it cannot. */
extern bool ticker_start(void);
extern void ticker_stop(void);
#pragma GCC visibility pop

/*
 * Gives a call the time of the ticks that fell into it.
 *
 * How far that may be off: a call that one tick met may have been nearly as
 * short as nothing or nearly as long as two periods; of one that spans several
 * only the ends are uncertain.
 */
static inline void
add_tick_span(FastInstr *fi, uint64 ns)
{
	double		period = (double) ticker_period_ns();

	core_add_ns(&fi->core, ns);
	fi->estimated = true;
	fi->ticks++;
	fi->variance += ns < 2 * period ? (double) ns * ns : period * period / 6;
}

#endif							/* FAST_TICKER_H */
