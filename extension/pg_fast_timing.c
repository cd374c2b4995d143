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

/* depth of ExecutorRun and ExecutorFinish calls */
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
	const FastQuery *query;		/* NULL: it is not ours */
	Bracket		start;
} Run;

static Run
begin_run(QueryDesc *queryDesc)
{
	FastInstr  *any = fast_first_instr(queryDesc);
	const FastQuery *query = any != NULL ? any->query : NULL;
	Run			run = {query, {0, 0, 0}};

	if (query != NULL)
	{
		if (IsParallelWorker())
			fast_reinstall(queryDesc);
		if (query->method == METHOD_SAMPLING || query->sampled > 0)
			ticker_start();
		if (query->clock == KIND_TSC)
			run.start = fast_tsc_look();
	}
	nesting++;
	return run;
}

/* Also after an error. */
static void
end_run(void)
{
	if (--nesting == 0)
		ticker_stop();
}

static void
check_run(const Run *run)
{
	if (run->query != NULL && run->start.ns != 0)
		fast_tsc_compare(run->start);
}

static void
#if PG_VERSION_NUM >= 180000
fast_ExecutorRun(QueryDesc *queryDesc, ScanDirection direction, uint64 count)
#else
fast_ExecutorRun(QueryDesc *queryDesc, ScanDirection direction, uint64 count, bool execute_once)
#endif
{
	Run			run = begin_run(queryDesc);

	PG_TRY();
	{
#if PG_VERSION_NUM >= 180000
		if (prev_ExecutorRun)
			prev_ExecutorRun(queryDesc, direction, count);
		else
			standard_ExecutorRun(queryDesc, direction, count);
#else
		if (prev_ExecutorRun)
			prev_ExecutorRun(queryDesc, direction, count, execute_once);
		else
			standard_ExecutorRun(queryDesc, direction, count, execute_once);
#endif
	}
	PG_FINALLY();
	{
		end_run();
	}
	PG_END_TRY();
	check_run(&run);
}

/* Data-modifying CTEs that were not read to their end run here. */
static void
fast_ExecutorFinish(QueryDesc *queryDesc)
{
	Run			run = begin_run(queryDesc);

	PG_TRY();
	{
		if (prev_ExecutorFinish)
			prev_ExecutorFinish(queryDesc);
		else
			standard_ExecutorFinish(queryDesc);
	}
	PG_FINALLY();
	{
		end_run();
	}
	PG_END_TRY();
	check_run(&run);
	fast_finish(queryDesc);
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
