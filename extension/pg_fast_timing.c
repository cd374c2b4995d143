/*-------------------------------------------------------------------------
 *
 * pg_fast_timing.c
 *	  the executor hooks: the way of a query from its start to its end
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "tcop/pquery.h"

MODULE_MAGIC;

/*
 * Our own instrumentation options.  The first one makes core create the
 * instrumentation of a query's nodes, which count rows even if no option of core
 * is set.  Only we know it: auto_explain would take INSTRUMENT_ROWS for its own,
 * and print times of zero.  The others tell parallel workers that a person has typed
 * EXPLAIN, or that the statement is profiled.
 */
#define INSTRUMENT_CALLS	(1 << 20)
#define INSTRUMENT_TYPED	(1 << 21)
#define INSTRUMENT_PROFILED	(1 << 22)

/*
 * Ticks cost some percent of a core, so a statement that stands for several in the
 * profile finds its waits only in a tenth of the time, at the beginning of each period.
 */
#define WAITS_PERIOD_NS	UINT64CONST(200000000)
#define WAITS_PART_NS	UINT64CONST(20000000)

/* If ticks are missing for a larger part of a statement, its waits are unknown. */
#define LOST_PART			0.05

/* nesting depth of ExecutorRun and ExecutorFinish calls: of all queries, and of those that we time or count */
static int	nesting = 0;
static int	own_nesting = 0;

static shmem_request_hook_type prev_shmem_request = NULL;
static shmem_startup_hook_type prev_shmem_startup = NULL;
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
	return pft_count_calls == COUNT_ALL || (pft_count_calls == COUNT_TOP && nesting == 0);
}

/*
 * Returns whether the query that starts now is that of an EXPLAIN which a client
 * has sent.  EXPLAIN sets its options before the hooks.
 */
static bool
is_typed(const QueryDesc *queryDesc)
{
	PlannedStmt *statement;

	if (IsParallelWorker())
		return queryDesc->instrument_options & INSTRUMENT_TYPED;
	if (queryDesc->instrument_options == 0 || nesting > 0 || ActivePortal == NULL || ActivePortal->stmts == NIL)
		return false;
	statement = linitial_node(PlannedStmt, ActivePortal->stmts);
	return statement->utilityStmt != NULL && IsA(statement->utilityStmt, ExplainStmt);
}

/*
 * Initializes the query, and installs our timing or counting if the query has
 * instrumentation.  The method off leaves it to the server, but a statement that
 * only the profile wants to time has the method auto then.
 */
static void
pft_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	bool		executed = !(eflags & EXEC_FLAG_EXPLAIN_ONLY);
	int			profiled = !executed ? 0 : IsParallelWorker() ? (queryDesc->instrument_options & INSTRUMENT_PROFILED) != 0 : pft_profile_weight(queryDesc);
	bool		typed = executed && pft_method != METHOD_OFF && is_typed(queryDesc);
	bool		counted = executed && pft_method != METHOD_OFF && calls_wanted();
	bool		requested;
	Method		method = pft_method;

	queryDesc->instrument_options |= (profiled || counted ? INSTRUMENT_CALLS : 0) | (typed ? INSTRUMENT_TYPED : 0) |
		(profiled ? INSTRUMENT_PROFILED : 0);
	if (prev_ExecutorStart)
		prev_ExecutorStart(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
	queryDesc->instrument_options &= ~(INSTRUMENT_CALLS | INSTRUMENT_TYPED | INSTRUMENT_PROFILED);

	/* Another extension can have requested times in between.  Parallel workers do what their leader does. */
	requested = queryDesc->instrument_options != 0 && !IsParallelWorker();
	if (method == METHOD_OFF && profiled && !requested)
		method = METHOD_AUTO;
	if (!executed || queryDesc->planstate == NULL || queryDesc->estate->es_instrument == 0)
		return;
	if (method == METHOD_OFF)
		queryDesc->estate->es_instrument &= ~INSTRUMENT_PROFILED;
	else
	{
		FastQuery  *query = MemoryContextAllocZero(queryDesc->estate->es_query_cxt, sizeof(FastQuery));

		query->method = method;
		query->typed = typed;
		query->profiled = profiled;
		query->uncounted = profiled && !requested && !counted;
		pft_install(queryDesc, query);
	}
}

/* One call of ExecutorRun or ExecutorFinish. */
typedef struct Run
{
	FastQuery  *query;			/* NULL: we do not time it */
	uint64		mark;			/* for pft_ticker_note_loss() */
	ClockPair	start;			/* if the query uses the counter */
	WaitMark	outer;			/* of the query that has called this one, if there is one */
} Run;

/* Since 19 the unit of times can change during a statement.  The server, too, adds times with different units then. */
static void
note_unit(FastQuery *query)
{
	if (query->server_tsc != SERVER_TIMES_BY_TSC)
		query->jumped = true;
	query->server_tsc = SERVER_TIMES_BY_TSC;
}

/* `query` is NULL if none of its nodes has our timing, or none can run. */
static void
begin_run(Run *run, FastQuery *query)
{
	run->query = query;
	nesting++;
	if (query == NULL)
		return;
	if (++own_nesting > 1)
		run->outer = pft_charged;
	if (IsParallelWorker() && !query->has_run)
		pft_reinstall(query);
	if (query->method != METHOD_COUNT)
		query->with_waits = query->wants_waits && query->method == METHOD_AUTO && (query->with_waits || !query->has_run) &&
			(query->profiled <= 1 || query->typed || query->has_run || coarse_now() % WAITS_PERIOD_NS < WAITS_PART_NS) && pft_ticker_start_worker();
	query->has_run = true;
	if (query->method == METHOD_COUNT)
		return;
	pft_waits_skip();
	query->tickless = query->sampled > 0 && !pft_ticker_start();
	run->mark = pft_ticker_mark();
	pft_ticker_note_period(query);
	note_unit(query);
	if (query->clock == KIND_TSC)
		run->start = pft_recent_pair(clock_now(KIND_TSC));
	query->run_start = clock_now(query->clock);
}

/* Also called after an error, when the query may no longer exist. */
static void
end_run(const Run *run)
{
	nesting--;
	if (run->query == NULL)
		return;
	if (--own_nesting == 0)
		pft_ticker_stop();
	else
		pft_charged = run->outer;	/* the waits of this query are also waits of the node that has called it */
}

/* Called after a run without an error, before end_run(). */
static void
note_run(const Run *run)
{
	FastQuery  *query = run->query;
	uint64		end;
	double		ns;

	if (query->method == METHOD_COUNT)
		return;
	pft_waits_charge_outside(query);
	end = clock_now(query->clock);
	note_unit(query);
	/* In the unit of the nodes' times: the server measures the counter's rate, too, and its result is a little different. */
	ns = query->server_tsc && query->clock == KIND_TSC ? CORE_NS_OF_TIME(end - query->run_start) : ns_between(query->clock, query->run_start, end);
	if (query->clock == KIND_TSC && (!pft_clocks_agree(run->start, end) || (int64) (end - query->run_start) < 0))
		query->jumped = true;
	/* After a jump the duration is unknown, and so is the sum. */
	query->elapsed_ns += query->jumped ? -INFINITY : ns;
	/* Most runs need no ticks. */
	if (query->sampled > 0 || query->parallel || query->with_waits)
		pft_ticker_note_loss(query, run->mark, ns);
}

static void
pft_ExecutorRun(RUN_PARAMETERS)
{
	Run			run;

	begin_run(&run, pft_query_of(queryDesc));
	PG_TRY();
	{
		if (prev_ExecutorRun)
			prev_ExecutorRun(RUN_ARGUMENTS);
		else
			standard_ExecutorRun(RUN_ARGUMENTS);
		if (run.query != NULL)
			note_run(&run);
	}
	PG_FINALLY();
	{
		end_run(&run);
	}
	PG_END_TRY();
}

/* Called after the last call of a query.  `query` is NULL if the server timed the statement. */
static void
finish_query(QueryDesc *queryDesc, FastQuery *query)
{
	/* EXPLAIN, auto_explain, or the leader of a parallel worker reads the times. */
	bool		shown = queryDesc->instrument_options & INSTRUMENT_TIMER;
	LastStatement statement;
	double		calls = 0;

	pft_last.just_finished = false;
	for (int i = 0; query != NULL && i < query->node_count; i++)
	{
		if (query->nodes[i].fi == NULL)
			calls += pft_calls_without_wrapper(query->nodes[i].node);
	}
	pft_count(NODE_CALLS, (uint64) calls);
	/* An untimed statement does not replace the last timed one. */
	if (shown && (query == NULL || query->method != METHOD_COUNT))
		memset(&pft_last, 0, sizeof(pft_last));
	if (query == NULL || query->method == METHOD_COUNT)
		return;
	pft_read_workers(query);
	query->with_waits &= !query->jumped && query->tickless_ns <= LOST_PART * query->elapsed_ns;
	if (query->wants_waits && IsParallelWorker())
		pft_waits_report(query);
	if (query->with_waits && query->parallel)
		pft_waits_collect(query);
	/* The profile adds up times before they are made consistent, because corrections do not cancel each other in a sum. */
	if (query->profiled && !IsParallelWorker())
	{
		pft_find_self_times(query);
		pft_profile_add(queryDesc, query, pft_all_timed(query));
	}
	if (shown)
		pft_make_consistent(query);
	if (shown && query->wants_waits)
		pft_find_self_times(query);
	statement = pft_note_statement(query);
	if (shown)
		pft_last = statement;
}

/* Data-modifying CTEs that were not read completely run here.  Without them no node runs, and nothing must be timed. */
static void
pft_ExecutorFinish(QueryDesc *queryDesc)
{
	FastQuery  *query = pft_query_of(queryDesc);
	Run			run;

	begin_run(&run, queryDesc->estate->es_auxmodifytables != NIL ? query : NULL);
	PG_TRY();
	{
		if (prev_ExecutorFinish)
			prev_ExecutorFinish(queryDesc);
		else
			standard_ExecutorFinish(queryDesc);
		if (run.query != NULL)
			note_run(&run);
	}
	PG_FINALLY();
	{
		end_run(&run);
	}
	PG_END_TRY();
	/* The unit can change after the last run, before a cursor is closed. */
	if (query != NULL && query->method != METHOD_COUNT)
		note_unit(query);
	finish_query(queryDesc, query);
}

static void
request_memory(void)
{
	if (prev_shmem_request)
		prev_shmem_request();
	RequestAddinShmemSpace(MAXALIGN(pft_counters_size()) + MAXALIGN(pft_ticker_size()) + MAXALIGN(pft_clock_size()) +
						   MAXALIGN(pft_waits_size()) + pft_profile_size());
	RequestNamedLWLockTranche(PFT_TRANCHE, LOCKS);
}

/* Finds or creates the shared memory of one file. */
static void
find_part(const char *name, Size size, void (*attach) (void *memory, bool found))
{
	bool		found;
	void	   *memory = ShmemInitStruct(name, size, &found);

	attach(memory, found);
}

static void
find_memory(void)
{
	if (prev_shmem_startup)
		prev_shmem_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	find_part("pg_fast_timing", pft_counters_size(), pft_counters_attach);
	find_part("pg_fast_timing ticker", pft_ticker_size(), pft_ticker_attach);
	find_part("pg_fast_timing clock", pft_clock_size(), pft_clock_attach);
	find_part("pg_fast_timing waits", pft_waits_size(), pft_waits_attach);
	pft_profile_attach();
	LWLockRelease(AddinShmemInitLock);
}

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	pft_define_settings();
	pft_clock_init();
	pft_counters_reset();
	pft_ticker_init();
	pft_explain_init();

	if (process_shared_preload_libraries_in_progress)
	{
		prev_shmem_request = shmem_request_hook;
		shmem_request_hook = request_memory;
		prev_shmem_startup = shmem_startup_hook;
		shmem_startup_hook = find_memory;
	}
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = pft_ExecutorStart;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = pft_ExecutorRun;
	prev_ExecutorFinish = ExecutorFinish_hook;
	ExecutorFinish_hook = pft_ExecutorFinish;
}
