/*-------------------------------------------------------------------------
 *
 * pg_fast_timing.c
 *	  the executor hooks
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"
#include "fmgr.h"

#include "calls.h"
#include "clock.h"
#include "explain.h"
#include "install.h"
#include "log.h"
#include "settings.h"
#include "shared_memory.h"
#include "statistics.h"
#include "ticker.h"
#include "tree.h"
#include "tsc.h"

PG_MODULE_MAGIC;

/* nesting depth of ExecutorRun and ExecutorFinish calls: of all queries, and of those that we time or count */
static int	nesting = 0;
static int	own_nesting = 0;

static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ExecutorFinish_hook_type prev_ExecutorFinish = NULL;

/* Returns whether the setting count_calls applies to a query that starts now. */
static bool
calls_wanted(void)
{
	/* A worker gets the options of its leader.  Functions that it executes are not counted. */
	if (IsParallelWorker())
		return false;
	return fast_count_calls == COUNT_ALL || (fast_count_calls == COUNT_TOP && nesting == 0);
}

/*
 * Makes core create the instrumentation of a query's nodes, which count rows even if no
 * option of core is set.  Only we know this bit: auto_explain would take INSTRUMENT_ROWS
 * for its own, and print times of zero.
 */
#define INSTRUMENT_CALLS	(1 << 20)

/* Initializes the query, and installs our timing or counting if the query has instrumentation. */
static void
fast_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	bool		executed = fast_method != METHOD_OFF && !(eflags & EXEC_FLAG_EXPLAIN_ONLY);

	if (executed && calls_wanted())
		queryDesc->instrument_options |= INSTRUMENT_CALLS;
	if (prev_ExecutorStart)
		prev_ExecutorStart(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
	queryDesc->instrument_options &= ~INSTRUMENT_CALLS;

	if (executed && queryDesc->planstate != NULL && queryDesc->estate->es_instrument != 0)
		fast_install(queryDesc, fast_method);
}

/* One call of ExecutorRun or ExecutorFinish. */
typedef struct Run
{
	FastQuery  *query;			/* NULL: we do not time it */
	bool		tickless;		/* ticks are needed, but cannot be started */
	uint64		mark;			/* for ticker_loss() */
	uint64		start;			/* by the query's clock */
	ClockPair	start_pair;
} Run;

/* `query` is NULL if none of its nodes has our timing, or none can run. */
static Run
begin_run(FastQuery *query)
{
	Run			run = {query, false, 0, 0, {0}};

	if (query != NULL)
	{
		if (IsParallelWorker())
			fast_reinstall(query);
		fast_recheck(query);
		own_nesting++;
	}
	nesting++;
	if (query != NULL && query->method != METHOD_COUNT)
	{
		run.tickless = (query->method == METHOD_SAMPLING || query->sampled > 0) && !ticker_start();
		run.mark = ticker_mark();
		ticker_note_period(query);
		if (query->clock == KIND_TSC)
			run.start_pair = fast_tsc_read();
		run.start = clock_ordered(query->clock);
	}
	return run;
}

/* Also called after an error, when the query may no longer exist. */
static void
end_run(bool own)
{
	nesting--;
	if (own && --own_nesting == 0)
		ticker_stop();
}

/* Adds the time for which ticks were missing in a run of `ns`. */
static void
note_loss(const Run *run, double ns)
{
	FastQuery  *query = run->query;
	TickerLoss	loss;

	if (query->method != METHOD_SAMPLING && query->sampled == 0 && !query->parallel)
		return;
	loss = ticker_loss(run->mark);
	query->lost_ns += loss.lost_ns;
	if (run->tickless)
	{
		query->tickless = true;
		query->tickless_ns += ns;
	}
	else
		query->tickless_ns += Min((double) loss.stopped_ns, ns);
	/* The worker can have read another rate from the configuration. */
	ticker_note_period(query);
}

/* Adds the duration of the run to its query, and checks the counter against the kernel's clock over the run. */
static void
note_duration(const Run *run)
{
	FastQuery  *query = run->query;
	int64		ticks = (int64) (clock_ordered(query->clock) - run->start);
	double		ns = Max(ticks, 0) * fast_clocks[query->clock].ns_per_tick;

	/* The counter went back: a virtual machine was migrated.  The sum then stays unknown. */
	query->elapsed_ns += ticks < 0 ? -INFINITY : ns;
	note_loss(run, ns);
	if (run->start_pair.ns != 0)
		fast_tsc_compare(run->start_pair);
}

/* Called after a run without an error, before end_run(). */
static void
note_run(const Run *run)
{
	if (run->query->method != METHOD_COUNT)
		note_duration(run);
	fast_calls_add(run->query);
}

/* ExecutorRun has other arguments since 18. */
#if PG_VERSION_NUM >= 180000
#define RUN_PARAMETERS	QueryDesc *queryDesc, ScanDirection direction, uint64 count
#define RUN_ARGUMENTS	queryDesc, direction, count
#else
#define RUN_PARAMETERS	QueryDesc *queryDesc, ScanDirection direction, uint64 count, bool execute_once
#define RUN_ARGUMENTS	queryDesc, direction, count, execute_once
#endif

static void
next_ExecutorRun(RUN_PARAMETERS)
{
	if (prev_ExecutorRun)
		prev_ExecutorRun(RUN_ARGUMENTS);
	else
		standard_ExecutorRun(RUN_ARGUMENTS);
}

static void
fast_ExecutorRun(RUN_PARAMETERS)
{
	Run			run = begin_run(fast_query_of(queryDesc->estate));

	PG_TRY();
	{
		next_ExecutorRun(RUN_ARGUMENTS);
		if (run.query != NULL)
			note_run(&run);
	}
	PG_FINALLY();
	{
		end_run(run.query != NULL);
	}
	PG_END_TRY();
}

static void
next_ExecutorFinish(QueryDesc *queryDesc)
{
	if (prev_ExecutorFinish)
		prev_ExecutorFinish(queryDesc);
	else
		standard_ExecutorFinish(queryDesc);
}

/* Data-modifying CTEs that were not read completely run here.  Without them no node runs, and nothing must be timed. */
static void
fast_ExecutorFinish(QueryDesc *queryDesc)
{
	FastQuery  *query = fast_query_of(queryDesc->estate);
	Run			run = begin_run(queryDesc->estate->es_auxmodifytables != NIL ? query : NULL);

	PG_TRY();
	{
		next_ExecutorFinish(queryDesc);
		if (run.query != NULL)
			note_run(&run);
	}
	PG_FINALLY();
	{
		end_run(run.query != NULL);
	}
	PG_END_TRY();
	fast_finish(queryDesc, query);
}

void		_PG_init(void);

void
_PG_init(void)
{
	fast_define_settings();
	fast_statistics_init();
	fast_shared_memory_init();
	ticker_init();
	fast_explain_init();
	fast_log_init();
	fast_tsc_init();

	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = fast_ExecutorStart;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = fast_ExecutorRun;
	prev_ExecutorFinish = ExecutorFinish_hook;
	ExecutorFinish_hook = fast_ExecutorFinish;
}
