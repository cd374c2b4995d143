/*-------------------------------------------------------------------------
 *
 * gaps.h
 *	  method auto: the time of calls that are not timed
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_GAPS_H
#define FAST_GAPS_H

#include "instr.h"

#pragma GCC visibility push(hidden)

/* Starts a gap of random length, with this mean, so that bursts do not coincide with a rhythm of the query. */
extern void gap_start(FastInstr *fi, int32 mean, uint64 now);

/* Returns the calls and the started loops since then. */
extern double gap_calls(FastInstr *fi);
extern double gap_loops(const FastInstr *fi);

/* Stores the mean duration of the calls so far, which were all timed. */
extern void gap_store_prior(FastInstr *fi);

/* Attributes time to a call with a tick.  `tick_before_ns` is the last tick before the call. */
extern pg_noinline void gap_attribute_tick(FastInstr *fi, uint64 tick_before_ns);

/* Attributes time to the calls of a gap.  `loops` of them started loops. */
extern void gap_attribute(FastInstr *fi, double calls, double loops);

/* Attributes time to pending calls, after the last call of the query. */
extern void gap_finish(FastInstr *fi);

#pragma GCC visibility pop

#endif							/* FAST_GAPS_H */
