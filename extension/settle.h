/*-------------------------------------------------------------------------
 *
 * settle.h
 *	  makes the times of a finished query consistent
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_SETTLE_H
#define FAST_SETTLE_H

#include "instr.h"

#pragma GCC visibility push(hidden)

/* Corrects impossible times, after the last call of a query. */
extern void fast_settle(FastQuery *query);

/* Returns the index of the node whose calls contain all calls of a node, or -1. */
extern int	fast_outer_node(const FastQuery *query, int i);

/* Writes a line to the server's log for each time that is still impossible.  Only in tests: see check.c. */
extern void fast_check_times(const FastQuery *query);

#pragma GCC visibility pop

#endif							/* FAST_SETTLE_H */
