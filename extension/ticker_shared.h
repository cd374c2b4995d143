/*-------------------------------------------------------------------------
 *
 * ticker_shared.h
 *	  a ticking clock in shared memory, for all backends
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_TICKER_SHARED_H
#define FAST_TICKER_SHARED_H

#include "postgres.h"

#include "port/atomics.h"
#include "storage/latch.h"

#include "tick.h"

/* Who may write the clock. */
typedef enum SharedState
{
	SHARED_PARKED = 0,			/* no process; the worker sleeps */
	SHARED_STARTING,			/* a backend, which writes the first tick */
	SHARED_TICKING				/* the worker */
} SharedState;

typedef struct SharedTicker
{
	/* Backends read this cache line for each call of a node. */
	union
	{
		Ticker		ticker;
		char		padding[PG_CACHE_LINE_SIZE];
	};
	pg_atomic_uint32 state;		/* SharedState */
	pg_atomic_uint32 users;		/* backends that need ticks */
	Latch	   *volatile latch; /* wakes the worker; NULL: there is none */
} SharedTicker;

#pragma GCC visibility push(hidden)

/* NULL if the library is not in shared_preload_libraries. */
extern SharedTicker *shared_ticker;

/* The worker was registered when the server started. */
extern bool ticker_worker_registered;

/* Returns the size of the shared memory. */
extern Size ticker_shared_size(void);

/* Finds or creates the shared memory.  Called while no backend runs, also after a crash. */
extern void ticker_shared_attach(void);

/* Returns why a session cannot use the clock with this period, or NULL. */
extern const char *ticker_shared_refusal(uint64 period_ns, bool needs_tsc);

/* Starts to use the clock, and wakes the worker if it sleeps.  Returns NULL, or why that is not possible. */
extern const char *ticker_shared_start(uint64 period_ns, bool needs_tsc);

/* Ends the use of the clock. */
extern void ticker_shared_stop(void);

#pragma GCC visibility pop

#endif							/* FAST_TICKER_SHARED_H */
