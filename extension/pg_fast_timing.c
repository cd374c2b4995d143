/*-------------------------------------------------------------------------
 *
 * pg_fast_timing.c
 *	  plan-node timing that costs next to nothing
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "fmgr.h"
#include "utils/guc.h"

#include "clock.h"
#include "ticker.h"

PG_MODULE_MAGIC;

static const struct config_enum_entry method_options[] = {
	{"auto", METHOD_AUTO, false},
	{"off", METHOD_OFF, false},
	{"tsc", METHOD_TSC, false},
	{"sampling", METHOD_SAMPLING, false},
	{NULL, 0, false}
};

int			fast_method = METHOD_AUTO;
int			fast_sample_rate = 0;

/* depth of ExecutorRun and ExecutorFinish calls that are ours */
static int	nesting = 0;

static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ExecutorFinish_hook_type prev_ExecutorFinish = NULL;

/* Sets the query up, and then our timing, if the query is to be timed. */
static void
fast_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	if (prev_ExecutorStart)
		prev_ExecutorStart(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);

	if (fast_method != METHOD_OFF && (queryDesc->instrument_options & INSTRUMENT_TIMER) &&
		!(eflags & EXEC_FLAG_EXPLAIN_ONLY) && queryDesc->planstate != NULL)
		fast_install(queryDesc, fast_method);
}

/* What a query runs beside. */
typedef struct Run
{
	FastQuery  *query;			/* NULL: it is not ours */
	Bracket		start;
} Run;

static Run
begin_run(QueryDesc *queryDesc)
{
	FastInstr  *any = fast_first_instr(queryDesc);
	FastQuery  *query = any != NULL ? any->query : NULL;
	Run			run = {query, {0}};

	if (query != NULL)
	{
		if (IsParallelWorker())
			fast_reinstall(queryDesc);
		if (query->method == METHOD_SAMPLING || query->sampled > 0)
			ticker_start();
		if (query->clock == KIND_TSC)
			run.start = fast_tsc_look();
		nesting++;
	}
	return run;
}

/* Also after an error, when the query may be gone. */
static uint64
end_run(void)
{
	return --nesting == 0 ? ticker_stop() : 0;
}

static void
check_run(const Run *run, uint64 lost_ns)
{
	run->query->lost_ns += lost_ns;
	if (run->start.ns != 0)
		fast_tsc_compare(run->start);
}

/* The arguments of ExecutorRun have changed in 18. */
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
	Run			run = begin_run(queryDesc);
	volatile uint64 lost_ns = 0;

	if (run.query == NULL)
	{
		next_ExecutorRun(RUN_ARGUMENTS);
		return;
	}
	PG_TRY();
	{
		next_ExecutorRun(RUN_ARGUMENTS);
	}
	PG_FINALLY();
	{
		lost_ns = end_run();
	}
	PG_END_TRY();
	check_run(&run, lost_ns);
}

static void
next_ExecutorFinish(QueryDesc *queryDesc)
{
	if (prev_ExecutorFinish)
		prev_ExecutorFinish(queryDesc);
	else
		standard_ExecutorFinish(queryDesc);
}

/* Data-modifying CTEs that were not read to their end run here. */
static void
fast_ExecutorFinish(QueryDesc *queryDesc)
{
	Run			run = begin_run(queryDesc);
	volatile uint64 lost_ns = 0;

	if (run.query == NULL)
	{
		next_ExecutorFinish(queryDesc);
		fast_finish(queryDesc, NULL);
		return;
	}
	PG_TRY();
	{
		next_ExecutorFinish(queryDesc);
	}
	PG_FINALLY();
	{
		lost_ns = end_run();
	}
	PG_END_TRY();
	check_run(&run, lost_ns);
	fast_finish(queryDesc, run.query);
}

void		_PG_init(void);

void
_PG_init(void)
{
	DefineCustomEnumVariable("pg_fast_timing.method",
							 "How the times of plan nodes are measured.",
							 "auto: exactly while that is cheap, then by sampling; off: by the server; "
							 "tsc: each call, with the CPU's counter; sampling: by a ticking clock.",
							 &fast_method, METHOD_AUTO, method_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_fast_timing.sample_rate",
							"Ticks per second of the sampling clock.",
							"0 chooses the rate.",
							&fast_sample_rate, 0, 0, 10000,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("pg_fast_timing.tsc_rate",
							   "The measured rate of the CPU's counter, for parallel workers.",
							   NULL,
							   &fast_tsc_shared, "",
							   PGC_SUSET,
							   GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   NULL, NULL, NULL);
	MarkGUCPrefixReserved("pg_fast_timing");
	fast_explain_init();
	fast_tsc_anchor();

	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = fast_ExecutorStart;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = fast_ExecutorRun;
	prev_ExecutorFinish = ExecutorFinish_hook;
	ExecutorFinish_hook = fast_ExecutorFinish;
}
