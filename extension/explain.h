/*-------------------------------------------------------------------------
 *
 * explain.h
 *	  marks estimated times in EXPLAIN
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_EXPLAIN_H
#define FAST_EXPLAIN_H

#pragma GCC visibility push(hidden)

extern void fast_explain_init(void);

/* Returns whether EXPLAIN (FAST_TIMING off) is being executed (since 18). */
extern bool fast_explain_is_off(void);

#pragma GCC visibility pop

#endif							/* FAST_EXPLAIN_H */
