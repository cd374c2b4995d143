/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  says in EXPLAIN, and in the log of auto_explain, which times are estimates, and
 *	  in EXPLAIN what nodes waited for
 *
 * Since 18, each node with an estimate has a line, and the option FAST_TIMING
 * prints it for all nodes, with the clock.  Before 18, no hook can add lines to
 * a node.  But EXPLAIN ends the execution while its output is still open: after
 * the plan, and before the execution time.  EXPLAIN EXECUTE calls no hook that
 * has its output, so it does not get that line.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

#include "commands/defrem.h"
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#include "tcop/tcopprot.h"

/* The text before translation.  auto_explain has it in all versions. */
#define AUTO_EXPLAIN_MESSAGE	"duration: %.3f ms  plan:\n%s"

static emit_log_hook_type prev_emit_log = NULL;

/* Called before an entry is written to the server's log. */
static void
log_estimates(ErrorData *entry)
{
	char	   *text;

	if (pft_log_estimates && pft_last.just_finished && entry->message_id != NULL &&
		strcmp(entry->message_id, AUTO_EXPLAIN_MESSAGE) == 0 && (text = pft_describe_last()) != NULL)
		ereport(LOG_SERVER_ONLY,
				(errmsg_internal("pg_fast_timing: in the next plan, %s", text),
				 errhidestmt(true), errhidecontext(true)));
	if (prev_emit_log)
		prev_emit_log(entry);
}

#if PG_VERSION_NUM >= 180000

static int	extension_id;
static explain_validate_options_hook_type prev_validate_options = NULL;
static explain_per_node_hook_type prev_explain_per_node = NULL;
static explain_per_plan_hook_type prev_explain_per_plan = NULL;

static bool
details_requested(ExplainState *es)
{
	return GetExplainExtensionState(es, extension_id) != NULL;
}

static void
set_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	SetExplainExtensionState(es, extension_id, defGetBoolean(option) ? &extension_id : NULL);
}

/* Without ANALYZE there are no times.  As with TIMING, "on" is then an error. */
static void
validate_options(ExplainState *es, List *options, ParseState *pstate)
{
	if (prev_validate_options)
		prev_validate_options(es, options, pstate);
	if (details_requested(es) && !es->analyze)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("EXPLAIN option %s requires ANALYZE", "FAST_TIMING")));
}

static void
explain_timing(const FastInstr *fi, ExplainState *es)
{
	static const char *const names[] = {"exact", "estimated", "none", "wrong"};
	static const char *const texts[] = {"exact", "estimated", "none, because there is no ticking clock", "wrong, because a clock jumped"};
	Estimate	estimate = pft_estimate(fi);

	/* rounded up to the last printed digit, so that it remains a bound */
	double		error_ms = ceil(estimate.error_ns / 1e3 / fi->core.nloops) / 1e3;

	if (estimate.quality == TIME_EXACT && !details_requested(es))
		return;
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyText("Timing", names[estimate.quality], es);
		if (estimate.quality > TIME_ESTIMATED)
			return;
		ExplainPropertyUInteger("Timing Samples", NULL, estimate.samples, es);
		ExplainPropertyFloat("Timing Error", "ms", error_ms, 3, es);
	}
	else if (estimate.quality == TIME_ESTIMATED)
	{
		const char *how = fi->later_calls > 0 ? psprintf("from " UINT64_FORMAT " samples", estimate.samples) : "by parallel workers";

		ExplainPropertyText("Timing", psprintf("estimated %s, +-%.3f ms", how, error_ms), es);
	}
	else
		ExplainPropertyText("Timing", texts[estimate.quality], es);
}

static const char *const class_names[] = {"I/O", "Lock", "Client", "Other"};

static void
explain_waits_as_text(const SelfTime *self, ExplainState *es)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < WAIT_CLASSES; i++)
	{
		const WaitPart *part = &self->waits[i];

		if (part->ns > 0)
			appendStringInfo(&text, "%s %.0f ms (%s %.0f ms), ", class_names[i], part->ns / 1e6,
							 pft_waits_name(part->longest), part->longest_ns / 1e6);
	}
	appendStringInfo(&text, "CPU %.0f ms", self->cpu_ns / 1e6);
	ExplainPropertyText("Waits", text.data, es);
}

/* Prints what a node waited for, in all loops together.  Without waits, and without details, it prints nothing. */
static void
explain_waits(const TreeNode *node, ExplainState *es)
{
	SelfTime	self = pft_waits_divide(node->waits, node->waits_of_ns);

	if (node->waits == NULL && (!details_requested(es) || node->waits_of_ns == 0))
		return;
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		explain_waits_as_text(&self, es);
		return;
	}
	ExplainOpenGroup("Waits", "Waits", true, es);
	for (int i = 0; i < WAIT_CLASSES; i++)
	{
		const WaitPart *part = &self.waits[i];

		ExplainPropertyFloat(psprintf("%s Time", class_names[i]), "ms", part->ns / 1e6, 3, es);
		if (part->ns == 0)
			continue;
		ExplainPropertyText(psprintf("%s Longest Event", class_names[i]), pft_waits_name(part->longest), es);
		ExplainPropertyFloat(psprintf("%s Longest Event Time", class_names[i]), "ms", part->longest_ns / 1e6, 3, es);
	}
	ExplainPropertyFloat("CPU Time", "ms", self.cpu_ns / 1e6, 3, es);
	ExplainCloseGroup("Waits", "Waits", true, es);
}

static void
explain_node(PlanState *planstate, List *ancestors, const char *relationship,
			 const char *plan_name, ExplainState *es)
{
	const FastInstr *fi = es->analyze && es->timing ? pft_instr_of(planstate) : NULL;
	const TreeNode *node = es->analyze && es->timing ? pft_tree_node_of(planstate) : NULL;

	if (prev_explain_per_node)
		prev_explain_per_node(planstate, ancestors, relationship, plan_name, es);
	if (fi != NULL && fi->core.nloops > 0)
		explain_timing(fi, es);
	if (node != NULL && node->waits_of_ns > 0)
		explain_waits(node, es);
}

static void
explain_plan(PlannedStmt *plannedstmt, IntoClause *into, ExplainState *es,
			 const char *queryString, ParamListInfo params, QueryEnvironment *queryEnv)
{
	const LastStatement *last = &pft_last;

	if (prev_explain_per_plan)
		prev_explain_per_plan(plannedstmt, into, es, queryString, params, queryEnv);
	if (es->analyze && es->timing && details_requested(es))
		ExplainPropertyText("Fast Timing",
							psprintf("method %s, %s, %.0f ticks per second",
									 pft_method_options[last->method].name,
									 last->clock == KIND_TSC ?
									 psprintf("TSC at %.3f MHz +- %.2f ppm", pft_tsc_khz / 1e3, pft_tsc_ppm) :
									 psprintf("system clock (TSC: %s)", pft_tsc_reason ? pft_tsc_reason : "not used"),
									 last->period_ns > 0 ? 1e9 / last->period_ns : 0),
							es);
}

static void
init_for_version(void)
{
	extension_id = GetExplainExtensionId("pg_fast_timing");
#if PG_VERSION_NUM >= 190000
	RegisterExtensionExplainOption("fast_timing", set_option, GUCCheckBooleanExplainOption);
#else
	RegisterExtensionExplainOption("fast_timing", set_option);
#endif
	prev_validate_options = explain_validate_options_hook;
	explain_validate_options_hook = validate_options;
	prev_explain_per_node = explain_per_node_hook;
	explain_per_node_hook = explain_node;
	prev_explain_per_plan = explain_per_plan_hook;
	explain_per_plan_hook = explain_plan;
}

#else							/* before 18 */

/* The EXPLAIN that is running, and the text of its query. */
static ExplainState *explaining = NULL;
static const char *explained_text = NULL;
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
	ExplainState *outer = explaining;
	const char *outer_text = explained_text;

	explaining = es;
	explained_text = queryString;
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
		explained_text = outer_text;
	}
	PG_END_TRY();
}

/* Adds a line to EXPLAIN if the query that ends now is the explained one, and not all its times are exact. */
static void
explain_ExecutorEnd(QueryDesc *queryDesc)
{
	ExplainState *es = explaining;
	char	   *text;

	if (es != NULL && es->analyze && es->timing && queryDesc->sourceText == explained_text &&
		pft_query_of(queryDesc) != NULL && (text = pft_describe_last()) != NULL)
		ExplainPropertyText("Fast Timing", text, es);
	if (prev_ExecutorEnd)
		prev_ExecutorEnd(queryDesc);
	else
		standard_ExecutorEnd(queryDesc);
}

static void
init_for_version(void)
{
	prev_ExplainOneQuery = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_query;
	prev_ExecutorEnd = ExecutorEnd_hook;
	ExecutorEnd_hook = explain_ExecutorEnd;
}

#endif

void
pft_explain_init(void)
{
	prev_emit_log = emit_log_hook;
	emit_log_hook = log_estimates;
	init_for_version();
}
