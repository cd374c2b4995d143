/*-------------------------------------------------------------------------
 *
 * statistics.h
 *	  what pg_fast_timing has done, for pg_fast_timing_info()
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_STATISTICS_H
#define FAST_STATISTICS_H

#include "postgres.h"

#include "datatype/timestamp.h"

#pragma GCC visibility push(hidden)

typedef enum Counter
{
	TIMED_STATEMENTS,
	EXACT_NODES,				/* plan nodes whose calls were all timed */
	ESTIMATED_NODES,			/* plan nodes with estimated times */
	NODE_CALLS,					/* calls of plan nodes, timed or counted */
	WITHOUT_TSC,				/* statements that the server timed, because the method tsc had
								 * no counter */
	WITHOUT_TICKS,				/* statements without a ticking clock */
	COUNTERS
} Counter;

/* Starts the counters of this session, unless shared memory follows. */
extern void fast_statistics_init(void);

/* Returns the size of the counters in shared memory. */
extern Size fast_statistics_size(void);

/* Finds or creates the counters in shared memory.  Called while no backend runs, so no lock is needed. */
extern void fast_statistics_attach(void);

/* Returns whether all sessions have common counters.  Otherwise they are those of this session. */
extern bool fast_statistics_are_shared(void);

/* Adds to a counter.  Takes no lock, and raises no error. */
extern void fast_statistics_add(Counter counter, uint64 n);

extern uint64 fast_statistics_get(Counter counter);

/* Returns the time of the last reset, or of the server's or the session's start. */
extern TimestampTz fast_statistics_since(void);

#pragma GCC visibility pop

#endif							/* FAST_STATISTICS_H */
