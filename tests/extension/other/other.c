/*
 * Another extension that puts itself in front of one plan node's calls, as pg_tracing does. It counts them.
 *
 * other.at = root: the topmost node, before each call; leaf: the innermost one, for good after the first call.
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
static bool for_good;
static bool first;
static ExecProcNodeMtd behind;

static TupleTableSlot *
counted(PlanState *node)
{
	TupleTableSlot *slot;

	calls++;
	if (for_good && !first)
		return behind(node);
	first = false;
	node->ExecProcNode = behind;
	slot = node->ExecProcNode(node);
	behind = node->ExecProcNode;
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
	for_good = strcmp(at, "leaf") == 0;
	while (for_good && outerPlanState(node) != NULL)
		node = outerPlanState(node);
	calls = 0;
	first = true;
	behind = node->ExecProcNode;
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
	DefineCustomStringVariable("other.at", "Which node.", NULL, &at, "", PGC_USERSET, 0, NULL, NULL, NULL);
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = other_ExecutorStart;
}
