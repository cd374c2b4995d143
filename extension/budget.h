/*-------------------------------------------------------------------------
 *
 * budget.h
 *	  method auto: the time that timing may take
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_BUDGET_H
#define FAST_BUDGET_H

#include "instr.h"

#pragma GCC visibility push(hidden)

/* Chooses the part of the calls to time, by the cost of timing `calls` calls since the gap's start. */
extern void budget_choose_part(FastInstr *fi, double calls, uint64 now);

/* Returns whether timing every call takes too much.  Then it has chosen the part of the calls to time. */
extern bool budget_exceeded(FastInstr *fi, uint64 now);

/* Schedules the next review of the cost.  `start` is the time before the call. */
extern void budget_schedule_review(FastInstr *fi, uint64 start);

#pragma GCC visibility pop

#endif							/* FAST_BUDGET_H */
