/*-------------------------------------------------------------------------
 *
 * pg_fast_timing.h
 *	  what the files of pg_fast_timing share
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PG_FAST_TIMING_H
#define PG_FAST_TIMING_H

#include "version.h"

/* Nothing here is for others, and a call or a load that knows so is cheaper. */
#pragma GCC visibility push(hidden)

typedef enum Method
{
	METHOD_OFF = 0,				/* the server's own timing */
	METHOD_AUTO,				/* exact until that is dear, then sampled */
	METHOD_TSC,					/* exact, by the CPU's counter */
	METHOD_SAMPLING				/* by a clock that ticks sample_rate times a second */
} Method;

/* What a call is timed with. */
typedef enum ClockKind
{
	KIND_SYSTEM,				/* the server's clock, in ns */
	KIND_TSC					/* the CPU's counter, in ticks */
} ClockKind;

/* What the nodes of a query share. */
typedef struct FastQuery
{
	Method		method;			/* as it was when the query started */
	ClockKind	clock;
	bool		server_tsc;		/* instr_time counts the CPU's ticks (19) */
	double		period_ns;		/* mean time between ticks */
	double		lost_ns;		/* that late ticks would have told of */
	int			sampled;		/* nodes of which only some calls are timed */
} FastQuery;

/*
 * Calls of one node that are alike.  Bursts of them are timed, and stand for
 * those in the gaps between.
 */
typedef struct Stratum
{
	/* in this burst, in ticks of the clock */
	int			timed;
	double		sum;
	/* the means of the bursts */
	int			bursts;
	double		means;
	double		squares;
	/* in gaps */
	double		calls;
	double		ns;
	double		waiting;		/* of these, as long as there is no burst */
	double		prior_ns;		/* of a call before the first gap */
} Stratum;

/*
 * A plan node's instrumentation: what core keeps, and what we keep.
 *
 * planstate->instrument points here.  Whoever else looks at it sees core's
 * struct and needs to know no more.
 */
typedef struct FastInstr
{
	CoreInstr	core;			/* must be first */
	ExecProcNodeMtd wrapper;	/* what calls go through, now or after the first one */
	PlanState  *node;
	FastQuery  *query;
	uint64		usage_sum;		/* of the counters in usage_start */
	BufferUsage buffers_start;
	WalUsage	wal_start;
	uint32		fraction;		/* 2^-32 ns that the counter has not got yet */

	bool		estimated;		/* not every call was timed */

	/* method auto */
	int32		every;			/* one call in so many is timed; 0: each is */
	bool		in_burst;
	int32		left;			/* calls to go in the burst, or to the review */
	double		gap;			/* calls in the gap, or before the review */
	double		last_row;		/* of the loop that is running: the gap ends with it */
	double		loops;			/* that have begun */
	double		ends;			/* calls in gaps that returned no row */
	double		calls_before;	/* the gap, */
	double		loops_before;	/* and loops that had begun */
	double		gap_loops;		/* that began in it */
	const CoreWorkers *workers;	/* parallel workers whose rows are among core's, */
	double		workers_rows;	/* and these */
	uint64		since;			/* when it began, by the query's clock */
	uint64		cap;			/* longer calls are left to the ticks beyond this */
	Stratum		first;			/* the first calls of loops */
	Stratum		next;			/* all others */
	uint64		timed;			/* calls that stand for others */
	double		beyond_ns;		/* what calls in gaps took beyond the cap */
	double		beyond_variance;

	/* by ticks alone: of all calls, or of those in gaps */
	uint64		ticks;
	double		ticks_ns;

	double		variance;		/* of what is stated in the end, in ns^2 */
} FastInstr;

#define FAST_INSTR(planstate)	((FastInstr *) (planstate)->instrument)

/* pg_fast_timing.c */
extern int	fast_method;
extern int	fast_sample_rate;

/* install.c */
extern void fast_install(QueryDesc *queryDesc, Method method);
extern void fast_reinstall(QueryDesc *queryDesc);
extern void fast_finish(QueryDesc *queryDesc, const FastQuery *query);
extern FastInstr *fast_instr_of(PlanState *planstate);
extern FastInstr *fast_first_instr(QueryDesc *queryDesc);
extern bool fast_replace_wrapper(FastInstr *fi, ExecProcNodeMtd wrapper);

/* the methods: what a node's calls go through */
extern ExecProcNodeMtd fast_tsc_wrapper(const FastInstr *fi);
extern ExecProcNodeMtd fast_sampling_wrapper(const FastInstr *fi);
extern ExecProcNodeMtd fast_auto_wrapper(const FastInstr *fi);
extern void fast_auto_settle(FastInstr *fi);

/* auto times at least so many calls of a node, each of them */
#define AUTO_EXACT_CALLS	256

/* estimate.c */
typedef struct Estimate
{
	bool		exact;			/* each call was timed */
	uint64		samples;		/* calls and ticks that it rests on */
	double		error_ns;		/* all loops together are off by at most this */
} Estimate;

extern void fast_weigh(FastInstr *fi);
extern Estimate fast_estimate(PlanState *planstate);
extern void fast_note_statement(QueryDesc *queryDesc, const FastQuery *query);

/* explain.c */
extern void fast_explain_init(void);

/* info.c */
extern const char *fast_method_name(Method method);

/* Of the last statement that was timed. */
typedef struct LastStatement
{
	int			nodes;			/* that we timed */
	int			estimated;		/* of these, by samples */
	uint64		samples;
	double		error_ns;		/* the largest */
	Method		method;
	double		period_ns;		/* between ticks */
} LastStatement;

extern LastStatement fast_last_statement;

#pragma GCC visibility pop

#endif							/* PG_FAST_TIMING_H */
