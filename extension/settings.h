/*-------------------------------------------------------------------------
 *
 * settings.h
 *	  the settings of pg_fast_timing
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_SETTINGS_H
#define FAST_SETTINGS_H

#include "instr.h"

#pragma GCC visibility push(hidden)

/* Whose calls of plan nodes are counted, besides those of statements with instrumentation. */
typedef enum CountCalls
{
	COUNT_NONE,
	COUNT_TOP,					/* statements of clients */
	COUNT_ALL					/* also statements within functions */
} CountCalls;

/* Who writes the ticking clock. */
typedef enum TickerKind
{
	TICKER_WORKER,				/* the background worker, for all backends */
	TICKER_THREAD,				/* a thread of this backend */
	TICKER_NONE
} TickerKind;

/* The setting's full name. */
#define METHOD_SETTING	"pg_fast_timing.method"

extern int	fast_method;
extern int	fast_count_calls;
extern int	fast_ticker;		/* TickerKind */
extern int	fast_sample_rate;
extern bool fast_log_estimates;

/* Returns the mean time between ticks that pg_fast_timing.sample_rate requests. */
extern uint64 fast_tick_period_ns(void);

extern void fast_define_settings(void);
extern const char *fast_method_name(Method method);
extern const char *fast_ticker_name(int kind);

#pragma GCC visibility pop

#endif							/* FAST_SETTINGS_H */
