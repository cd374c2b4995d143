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

/* Since 18: the option FAST_TIMING. */
struct ExplainState;
extern void fast_explain_option_init(void);

/* Returns whether the option is on. */
extern bool fast_details_requested(struct ExplainState *es);

#pragma GCC visibility pop

#endif							/* FAST_EXPLAIN_H */
