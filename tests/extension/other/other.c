/*
 * Another extension that wraps the calls of one plan node, as pg_tracing does.
 * It counts them.
 *
 * other.at = root: the wrapper is at the topmost node, and restores the
 * previous function during each call.  other.at = leaf: the wrapper is at the
 * innermost node, and restores it only during the first call.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "fmgr.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(other_calls);
void		_PG_init(void);

static ExecutorStart_hook_type prev_ExecutorStart;
static char *at = "";
static int64 calls;
static bool permanent;
static bool first;
static ExecProcNodeMtd wrapped;

static TupleTableSlot *
counted(PlanState *node)
{
	TupleTableSlot *slot;

	calls++;
	if (permanent && !first)
		return wrapped(node);
	first = false;
	node->ExecProcNode = wrapped;
	slot = node->ExecProcNode(node);
	wrapped = node->ExecProcNode;
	node->ExecProcNode = counted;
	return slot;
}

static void
other_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	PlanState  *node;

	if (prev_ExecutorStart)
		prev_ExecutorStart(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
	if (queryDesc->instrument_options == 0 || queryDesc->planstate == NULL || *at == '\0')
		return;
	node = queryDesc->planstate;
	permanent = strcmp(at, "leaf") == 0;
	while (permanent && outerPlanState(node) != NULL)
		node = outerPlanState(node);
	calls = 0;
	first = true;
	wrapped = node->ExecProcNode;
	node->ExecProcNode = counted;
}

Datum
other_calls(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(calls);
}

void
_PG_init(void)
{
	DefineCustomStringVariable("other.at", "Node to wrap: root or leaf.", NULL, &at, "", PGC_USERSET, 0, NULL, NULL, NULL);
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = other_ExecutorStart;
}
