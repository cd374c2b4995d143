/*-------------------------------------------------------------------------
 *
 * gaps.h
 *	  the time of calls that are not timed
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_GAPS_H
#define FAST_GAPS_H

#include "pg_fast_timing.h"

#pragma GCC visibility push(hidden)

/* A gap begins; and the calls since then. */
extern void gap_note_calls(FastInstr *fi);
extern double gap_calls(FastInstr *fi);

/* Each call was timed so far: what one takes. */
extern void gap_note_priors(FastInstr *fi);

/* A tick came in a call that began at start_ns. */
extern pg_noinline void gap_met_by_tick(FastInstr *fi, uint64 start_ns);

/* Gives a gap's calls their time, by the burst that came after it; so many began loops. */
extern void gap_give(FastInstr *fi, double calls, double loops);

/* No call will come any more. */
extern void gap_settle(FastInstr *fi);

#pragma GCC visibility pop

#endif							/* FAST_GAPS_H */
