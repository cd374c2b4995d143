/*-------------------------------------------------------------------------
 *
 * tsc_rate.h
 *	  the rate of the CPU's counter
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_TSC_RATE_H
#define FAST_TSC_RATE_H

#include "postgres.h"

/* The CPU's counter and the kernel's raw clock at the same moment. */
typedef struct ClockPair
{
	uint64		tsc;
	uint64		ns;				/* 0: the counter is not usable */
	uint64		width;			/* ticks; the error of tsc is half of this */
	double		ppm;			/* uncertainty of the rate at that moment */
} ClockPair;

#pragma GCC visibility push(hidden)

/* ns per tick, in units of 2^-32 */
extern uint64 fast_tsc_scale;

extern double fast_tsc_khz(void);
extern double fast_tsc_uncertainty_ppm(void);
extern bool fast_tsc_readable(void);	/* was usable at some time, so a read is harmless */

extern ClockPair fast_read_pair(void);
extern void fast_rate_init(void);
extern bool fast_rate_measure(void);
extern bool fast_rate_certain(void);
extern void fast_rate_refine(ClockPair now);

#pragma GCC visibility pop

#endif							/* FAST_TSC_RATE_H */
