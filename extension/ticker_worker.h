/*-------------------------------------------------------------------------
 *
 * ticker_worker.h
 *	  the background worker that writes the ticking clock in shared memory
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_TICKER_WORKER_H
#define FAST_TICKER_WORKER_H

#pragma GCC visibility push(hidden)

/* Registers the worker, while the postmaster loads the library. */
extern void ticker_worker_register(void);

#pragma GCC visibility pop

#endif							/* FAST_TICKER_WORKER_H */
