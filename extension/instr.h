/*-------------------------------------------------------------------------
 *
 * instr.h
 *	  the instrumentation of a plan node
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_INSTR_H
#define FAST_INSTR_H

#include "version.h"

/* Hidden symbols make calls and loads cheaper. */
#pragma GCC visibility push(hidden)

/* How the calls of plan nodes are timed. */
typedef enum Method
{
	METHOD_OFF = 0,				/* by the server */
	METHOD_AUTO,				/* exact while cheap, then sampled */
	METHOD_TSC,					/* exact, with the CPU's counter */
	METHOD_SAMPLING,			/* with a clock that ticks sample_rate times a second */
	METHOD_COUNT				/* not at all: the statement wants rows or buffers
								 * without times; not a value of the setting */
} Method;

/* The clock that times calls. */
typedef enum ClockKind
{
	KIND_SYSTEM,				/* the server's clock, in ns */
	KIND_TSC					/* the CPU's counter, in ticks */
} ClockKind;

typedef struct TreeNode TreeNode;
typedef struct FastInstr FastInstr;

/* Common to all nodes of a query. */
typedef struct FastQuery
{
	/* tree.c */
	struct FastQuery *next;		/* another query that we time */
	const EState *estate;
	MemoryContext context;
	MemoryContextCallback forget;
	TreeNode   *nodes;			/* each node once, a parent before its children */
	int			node_count;
	FastInstr **instrs;			/* the nodes that we time, by plan_node_id */
	int			ids;			/* length of instrs */

	MemoryContextCallback count;	/* calls.c */
	Method		method;			/* when the query started */
	ClockKind	clock;
	bool		server_tsc;		/* instr_time counts the CPU's ticks (19) */
	double		period_ns;		/* mean time between ticks in this run */
	double		max_period_ns;	/* the same in the run with the rarest ticks */
	double		elapsed_ns;		/* time of all runs so far; negative: unknown */
	double		lost_ns;		/* time not attributed because the last tick was
								 * overdue when the run ended */
	double		tickless_ns;	/* time of runs without a ticker, or while it was
								 * stopped */
	bool		tickless;		/* there were times without a ticker */
	bool		parallel;		/* workers were started whose times can be estimates */
	int			sampled;		/* number of nodes that are not timed exactly */
} FastQuery;

/*
 * Calls of a node with similar durations.  Bursts of timed calls represent the
 * calls in the gaps between them.
 */
typedef struct Stratum
{
	/* the current burst, in ticks of the clock */
	int			timed;
	double		sum;
	/* means of all bursts */
	int			bursts;
	double		means;
	double		squares;
	/* calls in gaps */
	double		calls;
	double		ns;
	double		pending_calls;	/* calls in gaps before the first burst */
	double		prior_ns;		/* mean duration of a call in the exact phase */
} Stratum;

/* The method auto: what the wrapper of a node does. */
typedef enum AutoPhase
{
	PHASE_EXACT = 0,			/* times every call */
	PHASE_GAP,					/* times no call */
	PHASE_BURST					/* times every call of a burst */
} AutoPhase;

/* The method auto: the state of a node. */
typedef struct AutoTiming
{
	AutoPhase	phase;
	uint64		since;			/* last review or gap start, by the query's
								 * clock */

	/* exact phase */
	int32		review_interval;	/* calls between two reviews of the cost */
	int32		review_left;	/* calls until the next review */

	/* gaps and bursts */
	int32		one_in;			/* one of this many calls is timed */
	uint64		cap;			/* ticks account for the time of a call beyond
								 * this */

	/* the current gap */
	double		gap_length;		/* planned number of calls */
	double		gap_end_row;	/* tuplecount of the current loop at which the gap
								 * ends */
	double		calls_before;	/* calls before the gap */
	double		loops_before;	/* loops started before the gap */

	/* the current burst */
	int32		burst_left;		/* calls until its end */
	double		last_gap_calls; /* calls in the gap before it */
	double		last_gap_loops; /* loops that started in that gap */

	Stratum		first;			/* the first calls of loops */
	Stratum		next;			/* all other calls */
	uint64		timed;			/* calls in bursts that count */
	double		beyond_ns;		/* time of calls in gaps beyond the cap */
	double		beyond_variance;
} AutoTiming;

/* auto times at least this many calls of a node exactly */
#define AUTO_EXACT_CALLS	256

/* Ticks that fell into calls: into all calls, or with auto into calls in gaps. */
typedef struct TickSamples
{
	uint64		ticks;
	double		ns;				/* time that the ticks account for */
} TickSamples;

/*
 * The instrumentation of a plan node: core's struct, followed by ours.
 *
 * planstate->instrument points to it, so that other code sees core's struct.
 */
struct FastInstr
{
	CoreInstr	core;			/* must be first */

	/* common to all methods */
	ExecProcNodeMtd wrapper;	/* times the calls; in use from the first call of a
								 * run on; NULL: the server times the node */
	ExecProcNodeMtd entry;		/* NULL, or a function that calls the wrapper */
	PlanState  *node;
	TreeNode   *tree;			/* the same node in the query's list */
	FastQuery  *query;
	uint64		usage_sum;		/* sum of the counters in usage_start */
	BufferUsage buffers_start;
	WalUsage	wal_start;
	uint32		fraction;		/* part of a ns not yet added, in units of 2^-32 */
	double		loops;			/* loops that have started */
	double		ends;			/* calls that returned no row */
	bool		estimated;		/* not every call was timed */
	double		variance;		/* of the estimated time, in ns^2 */

	AutoTiming	auto_timing;
	TickSamples samples;
};

#define FAST_INSTR(planstate)	((FastInstr *) (planstate)->instrument)

#pragma GCC visibility pop

#endif							/* FAST_INSTR_H */
