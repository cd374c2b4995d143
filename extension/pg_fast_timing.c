/*-------------------------------------------------------------------------
 *
 * pg_fast_timing.c
 *	  the settings, and the executor hooks
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

#include "miscadmin.h"
#include "nodes/parsenodes.h"
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

const struct config_enum_entry pft_method_options[] = {
	{"off", METHOD_OFF, false},
	{"auto", METHOD_AUTO, false},
	{"tsc", METHOD_TSC, false},
	{NULL, 0, false}
};

static const struct config_enum_entry count_calls_options[] = {
	{"off", COUNT_NONE, false},
	{"top", COUNT_TOP, false},
	{"all", COUNT_ALL, false},
	{NULL, 0, false}
};

const struct config_enum_entry pft_ticker_options[] = {
	{"worker", TICKER_WORKER, false},
	{"thread", TICKER_THREAD, false},
	{"none", TICKER_NONE, false},
	{NULL, 0, false}
};

int			pft_method = METHOD_AUTO;
static int	count_calls = COUNT_NONE;
int			pft_ticker = TICKER_WORKER;
int			pft_sample_rate = 1000;	/* a tick takes 25 us on a virtual machine */
bool		pft_log_estimates = false;
bool		pft_profile = false;
double		pft_profile_sample_rate = 1;

/* nesting depth of ExecutorRun and ExecutorFinish calls: of all queries, and of those that we time or count */
static int	nesting = 0;
static int	own_nesting = 0;

static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ExecutorFinish_hook_type prev_ExecutorFinish = NULL;

/* With compute_query_id = auto, the server computes identifiers if an extension needs them. */
static void
enable_queryid(bool profile, void *unused)
{
	if (profile)
		EnableQueryId();
}

static void
define_settings(void)
{
	DefineCustomEnumVariable("pg_fast_timing.method",
							 "Method that times plan nodes.",
							 "\"auto\" is exact while that is cheap, and then estimates.  \"off\" leaves it to the server.  \"tsc\" times every call with the CPU's counter.",
							 &pft_method, METHOD_AUTO, pft_method_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_fast_timing.count_calls",
							 "Selects the statements whose calls of plan nodes are counted.",
							 "\"off\" selects only those with EXPLAIN ANALYZE or auto_explain.log_analyze.  \"top\" adds those that clients send, "
							 "and \"all\" also those within functions.",
							 &count_calls, COUNT_NONE, count_calls_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_fast_timing.ticker",
							 "Selects who writes the ticking clock.",
							 "\"worker\" is one background worker for all sessions, if the library is in shared_preload_libraries.  "
							 "\"thread\" is a thread in each backend that needs it.",
							 &pft_ticker, TICKER_WORKER, pft_ticker_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_fast_timing.sample_rate",
							"Ticks per second of the ticking clock.",
							NULL,
							&pft_sample_rate, 1000, 1, 10000,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_fast_timing.log_estimates",
							 "Logs one line before each plan of auto_explain whose times are estimates.",
							 NULL,
							 &pft_log_estimates, false,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_fast_timing.profile",
							 "Adds the plan nodes of each statement to pg_stat_plan_nodes.",
							 "The library must be in shared_preload_libraries.",
							 &pft_profile, false,
							 PGC_SUSET, 0, NULL, enable_queryid, NULL);
	DefineCustomRealVariable("pg_fast_timing.profile_sample_rate",
							 "Share of the statements that are profiled.",
							 NULL,
							 &pft_profile_sample_rate, 1, 0, 1,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	/* Without shared memory, it has no effect, and cannot have the first context. */
	DefineCustomIntVariable("pg_fast_timing.profile_max_nodes",
							"Number of plan nodes for which the profile has memory.",
							NULL,
							&pft_profile_max_nodes, 20000, 100, MOST_NODES,
							process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_SIGHUP,
							0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("pg_fast_timing");
}

/* Returns whether the setting count_calls applies to a query that starts now. */
static bool
calls_wanted(void)
{
	/* A worker gets the options of its leader.  Functions that it executes are not counted. */
	if (IsParallelWorker())
		return false;
	return count_calls == COUNT_ALL || (count_calls == COUNT_TOP && nesting == 0);
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
	bool		profiled = executed && (IsParallelWorker() ? queryDesc->instrument_options & INSTRUMENT_PROFILED : pft_profile_wanted(queryDesc));
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
		pft_install(queryDesc, method, typed, profiled, profiled && !requested && !counted);
}

/* One call of ExecutorRun or ExecutorFinish. */
typedef struct Run
{
	FastQuery  *query;			/* NULL: we do not time it */
	uint64		mark;			/* for pft_ticker_note_loss() */
	ClockPair	start;			/* if the query uses the counter */
	WaitMark	outer;			/* of the query that has called this one */
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
static Run
begin_run(FastQuery *query)
{
	Run			run = {.query = query};

	nesting++;
	if (query == NULL)
		return run;
	own_nesting++;
	run.outer = pft_charged;
	if (IsParallelWorker() && !query->has_run)
		pft_reinstall(query);
	if (query->method != METHOD_COUNT)
		query->with_waits = query->wants_waits && query->method == METHOD_AUTO && (query->with_waits || !query->has_run) && pft_ticker_start_worker();
	query->has_run = true;
	if (query->method == METHOD_COUNT)
		return run;
	pft_waits_skip();
	query->tickless = query->sampled > 0 && !pft_ticker_start();
	run.mark = pft_ticker_mark();
	pft_ticker_note_period(query);
	note_unit(query);
	query->run_start = clock_now(query->clock);
	if (query->clock == KIND_TSC)
		run.start = pft_recent_pair(query->run_start);
	return run;
}

/* Also called after an error, when the query may no longer exist. */
static void
end_run(const Run *run)
{
	nesting--;
	if (run->query == NULL)
		return;
	/* The waits of this query are also waits of the node that has called it. */
	pft_charged = run->outer;
	if (--own_nesting == 0)
		pft_ticker_stop();
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
	ns = ns_between(query->clock, query->run_start, end);
	note_unit(query);
	if (query->clock == KIND_TSC && !pft_clocks_agree(run->start, end))
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
	Run			run = begin_run(pft_query_of(queryDesc));

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

/* Data-modifying CTEs that were not read completely run here.  Without them no node runs, and nothing must be timed. */
static void
pft_ExecutorFinish(QueryDesc *queryDesc)
{
	FastQuery  *query = pft_query_of(queryDesc);
	Run			run = begin_run(queryDesc->estate->es_auxmodifytables != NIL ? query : NULL);

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
	pft_finish(queryDesc, query);
}

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	define_settings();
	pft_clock_init();
	pft_stats_init();
	pft_ticker_init();
	pft_explain_init();

	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = pft_ExecutorStart;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = pft_ExecutorRun;
	prev_ExecutorFinish = ExecutorFinish_hook;
	ExecutorFinish_hook = pft_ExecutorFinish;
}
