/*-------------------------------------------------------------------------
 *
 * explain_option.c
 *	  the option FAST_TIMING of EXPLAIN (since 18)
 *
 * "on" prints details.  "off" leaves the timing to the server: it sets
 * pg_fast_timing.method to off until EXPLAIN ends.  The server then restores
 * the setting itself, also after an error, and parallel workers get it, too.
 *
 * The last one of repeated options applies, as with the server's own options.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "explain.h"
#include "settings.h"

#if PG_VERSION_NUM >= 180000

#include "commands/defrem.h"
#include "commands/explain.h"
#include "commands/explain_state.h"
#include "tcop/utility.h"
#include "utils/guc.h"

#define OPTION	"fast_timing"

static int	extension_id;
static explain_validate_options_hook_type prev_validate_options = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;

bool
fast_details_requested(ExplainState *es)
{
	return GetExplainExtensionState(es, extension_id) != NULL;
}

static void
set_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	SetExplainExtensionState(es, extension_id, defGetBoolean(option) ? &extension_id : NULL);
}

/* Without ANALYZE there are no times.  As with TIMING, "on" is then an error, and "off" has no effect. */
static void
validate_options(ExplainState *es, List *options, ParseState *pstate)
{
	if (prev_validate_options)
		prev_validate_options(es, options, pstate);
	if (fast_details_requested(es) && !es->analyze)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("EXPLAIN option %s requires ANALYZE", "FAST_TIMING")));
}

/* Returns whether a statement is an EXPLAIN whose last option FAST_TIMING is off. */
static bool
is_switched_off(Node *statement)
{
	bool		off = false;
	ListCell   *cell;

	if (!IsA(statement, ExplainStmt))
		return false;
	foreach(cell, ((ExplainStmt *) statement)->options)
	{
		DefElem    *option = lfirst(cell);

		if (strcmp(option->defname, OPTION) == 0)
			off = !defGetBoolean(option);
	}
	return off;
}

#define UTILITY_PARAMETERS	PlannedStmt *pstmt, const char *queryString, bool readOnlyTree, \
	ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *queryEnv, \
	DestReceiver *dest, QueryCompletion *qc
#define UTILITY_ARGUMENTS	pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc

static void
next_ProcessUtility(UTILITY_PARAMETERS)
{
	if (prev_ProcessUtility)
		prev_ProcessUtility(UTILITY_ARGUMENTS);
	else
		standard_ProcessUtility(UTILITY_ARGUMENTS);
}

static void
explain_ProcessUtility(UTILITY_PARAMETERS)
{
	int			level;

	if (!is_switched_off(pstmt->utilityStmt))
	{
		next_ProcessUtility(UTILITY_ARGUMENTS);
		return;
	}
	level = NewGUCNestLevel();
	(void) set_config_option(METHOD_SETTING, fast_method_name(METHOD_OFF), PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	next_ProcessUtility(UTILITY_ARGUMENTS);
	AtEOXact_GUC(true, level);
}

void
fast_explain_option_init(void)
{
	extension_id = GetExplainExtensionId("pg_fast_timing");
#if PG_VERSION_NUM >= 190000
	RegisterExtensionExplainOption(OPTION, set_option, GUCCheckBooleanExplainOption);
#else
	RegisterExtensionExplainOption(OPTION, set_option);
#endif
	prev_validate_options = explain_validate_options_hook;
	explain_validate_options_hook = validate_options;
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = explain_ProcessUtility;
}

#endif
