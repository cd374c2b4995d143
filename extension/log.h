/*-------------------------------------------------------------------------
 *
 * log.h
 *	  marks estimated times in the log of auto_explain
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_LOG_H
#define FAST_LOG_H

#pragma GCC visibility push(hidden)

extern void fast_log_init(void);

#pragma GCC visibility pop

#endif							/* FAST_LOG_H */
