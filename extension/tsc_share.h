/*-------------------------------------------------------------------------
 *
 * tsc_share.h
 *	  shares the rate of the CPU's counter with parallel workers
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_TSC_SHARE_H
#define FAST_TSC_SHARE_H

#pragma GCC visibility push(hidden)

/* the setting that carries the rate */
extern char *fast_tsc_shared;

/* Stores the rate that workers shall use. */
extern void fast_share_rate(double khz, double ppm);

/* Stores that workers must not use the counter. */
extern void fast_share_refusal(void);

/* Writes what is stored into the setting, before a statement starts workers. */
extern void fast_tsc_share(void);

/* In a worker: returns the leader's rate.  Returns false if there is none. */
extern bool fast_leaders_rate(double *khz, double *ppm);

/* In a worker: returns whether the leader refuses the counter. */
extern bool fast_leader_refuses(void);

#pragma GCC visibility pop

#endif							/* FAST_TSC_SHARE_H */
