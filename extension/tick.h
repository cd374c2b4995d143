/*-------------------------------------------------------------------------
 *
 * tick.h
 *	  writes the ticks of a ticking clock
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_TICK_H
#define FAST_TICK_H

#include "postgres.h"

#include "common/pg_prng.h"
#include "port/atomics.h"

/*
 * Waking the worker or the thread takes 0.1 ms or more.  So it continues to tick for a
 * while, for the next statement or FETCH.
 */
#define TICKER_LINGER_NS	20000000

/*
 * A clock in memory.  Only its owner writes it: the background worker, or a thread
 * of this backend.  Backends read it without a lock.
 */
typedef struct Ticker
{
	volatile uint64 last_ns;	/* time of the last tick */
	volatile uint64 prev_ns;	/* time of the tick before it */
	volatile uint64 last_tsc;	/* the last tick by the TSC, if with_tsc is set */
	volatile uint32 version;	/* odd while these are being changed */
	volatile bool with_tsc;
	volatile uint64 next_ns;	/* time of the next tick */
	volatile uint64 stopped_ns; /* sum of the intervals whose tick came too late */
	volatile uint64 period_ns;	/* mean time between ticks */
} Ticker;

#pragma GCC visibility push(hidden)

/* Starts in the middle of an interval, as if the ticks had always been running. */
extern void tick_start(Ticker *self, pg_prng_state *random);

/* Writes a tick that is due, and chooses the time of the next one. */
extern void tick_now(Ticker *self, uint64 now, pg_prng_state *random);

/* Returns the ns by which a tick is overdue, or 0. */
extern uint64 tick_overdue_ns(const Ticker *self, uint64 now);

/* Returns whether a tick is so late that the ticker was stopped. */
extern bool tick_was_stopped(const Ticker *self, uint64 overdue_ns);

#pragma GCC visibility pop

#endif							/* FAST_TICK_H */
