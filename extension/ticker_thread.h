/*-------------------------------------------------------------------------
 *
 * ticker_thread.h
 *	  a ticking clock that a thread of this backend writes
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_TICKER_THREAD_H
#define FAST_TICKER_THREAD_H

#include "tick.h"

#pragma GCC visibility push(hidden)

extern Ticker thread_ticker;

/* Creates the thread, if it does not exist.  Returns false, and sets errno, if that fails. */
extern bool ticker_thread_ready(void);

/* Returns the errno for which there is no thread and no attempt to create one now, or 0. */
extern int	ticker_thread_error(void);

/*
 * Starts the ticks, or continues them.  `with_tsc`: the TSC may be read.  Returns false
 * if that fails.
 */
extern bool ticker_thread_start(uint64 period_ns, bool with_tsc);

/* Stops the ticks. */
extern void ticker_thread_stop(void);

#pragma GCC visibility pop

#endif							/* FAST_TICKER_THREAD_H */
