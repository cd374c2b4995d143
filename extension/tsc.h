/*-------------------------------------------------------------------------
 *
 * tsc.h
 *	  whether the CPU's counter can be trusted
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_TSC_H
#define FAST_TSC_H

#include "tsc_rate.h"

#pragma GCC visibility push(hidden)

extern void fast_tsc_init(void);
extern bool fast_tsc_usable(void);
extern const char *fast_tsc_reason(void);	/* why it is not usable */

/* Compare the counter with the kernel's clock over a query. */
extern ClockPair fast_tsc_read(void);
extern void fast_tsc_compare(ClockPair start);

#pragma GCC visibility pop

#endif							/* FAST_TSC_H */
