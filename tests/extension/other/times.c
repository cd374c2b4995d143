/*
 * Looks for impossible times in each statement that ends, when pg_fast_timing times it.  Each one is a line in
 * the server's log, and not an error: a function could catch an error and hide it.
 *
 * No startup is negative or after the total.  No node takes longer than the node that calls it.  The exceptions are nodes that
 * the server times itself, nodes below a custom scan, and sums over processes below a Gather node.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/instrument.h"
#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;
void		_PG_init(void);

#if PG_VERSION_NUM >= 190000
typedef NodeInstrumentation CoreInstr;
#define TOTAL_MS(i)		(INSTR_TIME_GET_DOUBLE((i)->instr.total) * 1e3 + INSTR_TIME_GET_DOUBLE((i)->counter) * 1e3)
#define STARTUP_MS(i)	(INSTR_TIME_GET_DOUBLE((i)->startup) * 1e3)
#define IS_TIMED(i)		((i)->instr.need_timer)
#else
typedef Instrumentation CoreInstr;
#define TOTAL_MS(i)		((i)->total * 1e3 + INSTR_TIME_GET_DOUBLE((i)->counter) * 1e3)
#define STARTUP_MS(i)	((i)->startup * 1e3)
#define IS_TIMED(i)		((i)->need_timer)
#endif

/* The server rounds times up to 18 to floating-point numbers.  In hours, the error is below a ns. */
#define ROUNDING_MS		1e-6

static ExecutorEnd_hook_type prev_ExecutorEnd;

/* Argument of the walk: the nodes that can contain a node's calls. */
typedef struct Above
{
	PlanState  *parent;
	PlanState  *root;
	EState	   *estate;
} Above;

static bool
is_checked(const PlanState *node)
{
	const CoreInstr *instrument = node->instrument;

	return instrument != NULL && IS_TIMED(instrument) && instrument->nloops > 0 && !instrument->running &&
		!node->async_capable && !IsA(node, HashState) && !IsA(node, BitmapIndexScanState) &&
		!IsA(node, BitmapAndState) && !IsA(node, BitmapOrState);
}

static bool
check_times(PlanState *node, void *context)
{
	Above	   *above = context;
	Above		here = {node, above->root, above->estate};
	bool		in_workers = node->worker_instrument != NULL;
	PlanState  *outer = above->parent;

	if (list_member_ptr(above->estate->es_subplanstates, node))
		outer = above->estate->es_auxmodifytables == NIL ? above->root : NULL;
	if (outer != NULL && (IsA(outer, CustomScanState) || (in_workers && outer->worker_instrument == NULL)))
		outer = NULL;
	if (is_checked(node))
	{
		double		total = TOTAL_MS(node->instrument);
		double		startup = STARTUP_MS(node->instrument);

		if (total > 0 && (startup < 0 || startup > total + ROUNDING_MS))
			ereport(LOG_SERVER_ONLY, (errmsg_internal("impossible time: type %d: startup %.6f ms, total %.6f ms", (int) nodeTag(node), startup, total), errhidestmt(true)));
		/* A node without a time gives no limit. */
		if (outer != NULL && is_checked(outer) && TOTAL_MS(outer->instrument) > 0 && total > TOTAL_MS(outer->instrument) + ROUNDING_MS)
			ereport(LOG_SERVER_ONLY, (errmsg_internal("impossible time: type %d: %.6f ms, within type %d of %.6f ms", (int) nodeTag(node), total, (int) nodeTag(outer), TOTAL_MS(outer->instrument)), errhidestmt(true)));
	}
	return planstate_tree_walker(node, check_times, &here);
}

static void
times_ExecutorEnd(QueryDesc *queryDesc)
{
	const char *method = GetConfigOption("pg_fast_timing.method", true, false);

	if (method != NULL && strcmp(method, "off") != 0 && queryDesc->planstate != NULL)
	{
		Above		above = {NULL, queryDesc->planstate, queryDesc->estate};

		check_times(queryDesc->planstate, &above);
	}
	if (prev_ExecutorEnd)
		prev_ExecutorEnd(queryDesc);
	else
		standard_ExecutorEnd(queryDesc);
}

void
_PG_init(void)
{
	prev_ExecutorEnd = ExecutorEnd_hook;
	ExecutorEnd_hook = times_ExecutorEnd;
}
