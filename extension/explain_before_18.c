/*-------------------------------------------------------------------------
 *
 * explain_before_18.c
 *	  a line in EXPLAIN about estimated times
 *
 * Before 18 no hook can add lines to EXPLAIN.  But EXPLAIN ends the execution while
 * its output is still open: after the plan, and before the execution time.
 *
 * EXPLAIN EXECUTE calls no hook that has its output, and other extensions cannot add
 * to the output of auto_explain.  So these two do not get the line.  See log.c.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "estimate.h"
#include "explain.h"
#include "tree.h"

#if PG_VERSION_NUM < 180000

#include "commands/explain.h"
#include "tcop/tcopprot.h"

/* The EXPLAIN that is running, and the text of its query. */
typedef struct Explaining
{
	ExplainState *es;
	const char *query_text;
} Explaining;

static Explaining explaining = {NULL, NULL};

static ExplainOneQuery_hook_type prev_ExplainOneQuery = NULL;
static ExecutorEnd_hook_type prev_ExecutorEnd = NULL;

#if PG_VERSION_NUM < 170000
/* Plans and explains a query, as the server does without a hook. */
static void
standard_ExplainOneQuery(Query *query, int cursorOptions, IntoClause *into, ExplainState *es,
						 const char *queryString, ParamListInfo params, QueryEnvironment *queryEnv)
{
	BufferUsage before = pgBufferUsage;
	BufferUsage used = {0};
	instr_time	start;
	instr_time	duration;
	PlannedStmt *plan;

	INSTR_TIME_SET_CURRENT(start);
	plan = pg_plan_query(query, queryString, cursorOptions, params);
	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, start);
	BufferUsageAccumDiff(&used, &pgBufferUsage, &before);
	ExplainOnePlan(plan, into, es, queryString, params, queryEnv, &duration, es->buffers ? &used : NULL);
}
#endif

static void
explain_query(Query *query, int cursorOptions, IntoClause *into, ExplainState *es,
			  const char *queryString, ParamListInfo params, QueryEnvironment *queryEnv)
{
	Explaining	outer = explaining;

	explaining = (Explaining) {es, queryString};
	PG_TRY();
	{
		if (prev_ExplainOneQuery)
			prev_ExplainOneQuery(query, cursorOptions, into, es, queryString, params, queryEnv);
		else
			standard_ExplainOneQuery(query, cursorOptions, into, es, queryString, params, queryEnv);
	}
	PG_FINALLY();
	{
		explaining = outer;
	}
	PG_END_TRY();
}

/* Adds a line to EXPLAIN if the query that ends now is the explained one, and has estimated times. */
static void
mark_estimates(const QueryDesc *queryDesc)
{
	const LastStatement *last = &fast_last_statement;
	ExplainState *es = explaining.es;

	if (es == NULL || !es->analyze || !es->timing || queryDesc->sourceText != explaining.query_text ||
		fast_query_of(queryDesc->estate) == NULL || last->estimated == 0)
		return;
	ExplainPropertyText("Fast Timing", fast_describe_estimates(), es);
}

static void
explain_ExecutorEnd(QueryDesc *queryDesc)
{
	mark_estimates(queryDesc);
	if (prev_ExecutorEnd)
		prev_ExecutorEnd(queryDesc);
	else
		standard_ExecutorEnd(queryDesc);
}

void
fast_explain_init(void)
{
	prev_ExplainOneQuery = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_query;
	prev_ExecutorEnd = ExecutorEnd_hook;
	ExecutorEnd_hook = explain_ExecutorEnd;
}

#endif
