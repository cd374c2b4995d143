/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  marks estimated times in EXPLAIN (since 18)
 *
 * A plan whose calls were all timed is printed as usual, unless the option
 * FAST_TIMING requests details.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "estimate.h"
#include "explain.h"
#include "settings.h"
#include "tree.h"
#include "tsc.h"

#if PG_VERSION_NUM >= 180000

#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"

static explain_per_node_hook_type prev_explain_per_node = NULL;
static explain_per_plan_hook_type prev_explain_per_plan = NULL;

static void
explain_node(PlanState *planstate, List *ancestors, const char *relationship,
			 const char *plan_name, ExplainState *es)
{
	FastInstr  *fi = es->analyze && es->timing ? fast_instr_of(planstate) : NULL;

	if (prev_explain_per_node)
		prev_explain_per_node(planstate, ancestors, relationship, plan_name, es);

	if (fi != NULL && fi->core.nloops > 0)
	{
		Estimate	estimate = fast_estimate(fi);

		/* rounded up to the last printed digit, so that it remains a bound */
		double		error_ms = ceil(estimate.error_ns / 1e3 / fi->core.nloops) / 1e3;

		if (estimate.exact && !fast_details_requested(es))
			return;
		if (es->format != EXPLAIN_FORMAT_TEXT)
		{
			ExplainPropertyText("Timing", estimate.exact ? "exact" : "estimated", es);
			ExplainPropertyUInteger("Timing Samples", NULL, estimate.samples, es);
			ExplainPropertyFloat("Timing Error", "ms", error_ms, 3, es);
		}
		else if (estimate.exact)
			ExplainPropertyText("Timing", "exact", es);
		else
			ExplainPropertyText("Timing",
								psprintf("estimated from " UINT64_FORMAT " samples, +-%.3f ms",
										 estimate.samples, error_ms),
								es);
	}
}

static void
explain_plan(PlannedStmt *plannedstmt, IntoClause *into, ExplainState *es,
			 const char *queryString, ParamListInfo params, QueryEnvironment *queryEnv)
{
	if (prev_explain_per_plan)
		prev_explain_per_plan(plannedstmt, into, es, queryString, params, queryEnv);

	if (es->analyze && fast_details_requested(es))
	{
		const LastStatement *last = &fast_last_statement;
		char	   *clock = fast_tsc_usable() ?
			psprintf("TSC at %.3f MHz +- %.2f ppm", fast_tsc_khz() / 1e3, fast_tsc_uncertainty_ppm()) :
			psprintf("system clock (TSC: %s)", fast_tsc_reason());

		ExplainPropertyText("Fast Timing",
							psprintf("method %s, %s, %.0f ticks per second",
									 fast_method_name(last->method), clock, last->period_ns > 0 ? 1e9 / last->period_ns : 0),
							es);
	}
}

void
fast_explain_init(void)
{
	fast_explain_option_init();
	prev_explain_per_node = explain_per_node_hook;
	explain_per_node_hook = explain_node;
	prev_explain_per_plan = explain_per_plan_hook;
	explain_per_plan_hook = explain_plan;
}

#endif
