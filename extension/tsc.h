/*-------------------------------------------------------------------------
 *
 * tsc.h
 *	  whether to trust the CPU's counter, and how fast it counts
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_TSC_H
#define FAST_TSC_H

#include "postgres.h"

/* The CPU's counter, at the moment that a clock of the kernel's was read. */
typedef struct Bracket
{
	uint64		tsc;
	uint64		ns;				/* 0: the counter is not usable */
	uint64		width;			/* ticks; the counter was that, +- half of them */
	double		ppm;			/* fast_tsc_look: how well the rate was known then */
} Bracket;

#pragma GCC visibility push(hidden)
/* ns per tick, in units of 2^-32 */
extern uint64 fast_tsc_scale;

/* the setting that carries the rate to parallel workers */
extern char *fast_tsc_shared;

extern void fast_tsc_anchor(void);
extern bool fast_tsc_usable(void);
extern bool fast_tsc_readable(void);	/* was usable, at some time: reading it does no harm */
extern const char *fast_tsc_reason(void);	/* why it is not usable */
extern double fast_tsc_khz(void);
extern double fast_tsc_uncertainty_ppm(void);
extern void fast_tsc_share(void);

/* tsc_rate.c: what tsc.c knows of the rate */
extern Bracket fast_bracket(void);
extern void fast_rate_anchor(void);
extern bool fast_rate_measure(void);
extern bool fast_rate_sure(void);
extern void fast_rate_refine(Bracket now);
extern void fast_rate_refuse(void);
extern bool fast_rate_refused(void);

/* Watch over it while a query runs. */
extern Bracket fast_tsc_look(void);
extern void fast_tsc_compare(Bracket start);
#pragma GCC visibility pop

#endif							/* FAST_TSC_H */
