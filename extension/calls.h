/*-------------------------------------------------------------------------
 *
 * calls.h
 *	  counts the calls of plan nodes
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_CALLS_H
#define FAST_CALLS_H

#include "instr.h"

#pragma GCC visibility push(hidden)

/* Returns the calls of a node in this process so far: its rows and the ends of its loops. */
extern double fast_calls_of(FastInstr *fi);

/* Records what core has added to the leader's nodes for parallel workers.  Must be called before a Gather node starts new workers. */
extern void fast_calls_record_worker_rows(FastQuery *query);

/* Adds the calls since the last time to the statistics, at the end of a run. */
extern void fast_calls_add(FastQuery *query);

/* Counts the calls of a query when its memory is released, also after an error. */
extern void fast_calls_add_at_release(FastQuery *query);

#pragma GCC visibility pop

#endif							/* FAST_CALLS_H */
