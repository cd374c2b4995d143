/*-------------------------------------------------------------------------
 *
 * estimate.h
 *	  combines estimates of node times, and computes their errors
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_ESTIMATE_H
#define FAST_ESTIMATE_H

#include "instr.h"

#pragma GCC visibility push(hidden)

typedef struct Estimate
{
	bool		exact;			/* every call was timed */
	uint64		samples;		/* timed calls and ticks behind the estimate */
	double		error_ns;		/* 95% half-width for all loops together */
} Estimate;

/* The last timed statement. */
typedef struct LastStatement
{
	int			nodes;			/* nodes that we timed */
	int			estimated;		/* of these, nodes with estimated times */
	uint64		samples;
	double		error_ns;		/* largest error of a node */
	Method		method;
	double		period_ns;		/* mean time between ticks */
	bool		just_finished;	/* no other statement has finished since then */
} LastStatement;

extern LastStatement fast_last_statement;

/* Returns the variance of the time that ticks attribute to a call, in ns^2. */
extern double tick_variance(uint64 ns);

extern void fast_combine_estimates(FastInstr *fi);
extern Estimate fast_estimate(const FastInstr *fi);

/* Returns a text about the estimates of the last timed statement, in the current memory context. */
extern char *fast_describe_estimates(void);
extern void fast_note_statement(QueryDesc *queryDesc, const FastQuery *query);

#pragma GCC visibility pop

#endif							/* FAST_ESTIMATE_H */
