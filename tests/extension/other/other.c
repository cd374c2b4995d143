/*
 * Another extension that wraps the calls of one plan node, as pg_tracing does.
 * It counts them.
 *
 * other.at = root: the wrapper is at the topmost node, and restores the
 * previous function during each call.  other.at = leaf: the wrapper is at the
 * innermost node, and restores it only during the first call.
 *
 * other.at = memory: it replaces the instrumentation of the topmost node instead.
 * The memory before and after the new one cannot be read.
 *
 * other.at = later: it does this before each run of a query that has already run,
 * as between two FETCHes of a cursor.
 *
 * other.at = during: it does this at the innermost node, before its call 1000.
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "executor/executor.h"
#include "executor/instrument.h"
#include "fmgr.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(other_calls);
PG_FUNCTION_INFO_V1(other_half_start);
void		_PG_init(void);

static ExecutorStart_hook_type prev_ExecutorStart;
static ExecutorRun_hook_type prev_ExecutorRun;
static char *at = "";
static int64 calls;
static bool permanent;
static bool first;
static ExecProcNodeMtd wrapped;

static void replace_instrumentation(PlanState *node);

static TupleTableSlot *
counted(PlanState *node)
{
	TupleTableSlot *slot;

	calls++;
	if (strcmp(at, "during") == 0 && calls == 1000)
		replace_instrumentation(node);
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
replace_instrumentation(PlanState *node)
{
	long		page = sysconf(_SC_PAGESIZE);
	size_t		size = sizeof(*node->instrument);
	size_t		space = TYPEALIGN(page, size);
	char	   *memory = mmap(NULL, space + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory + page, space, PROT_READ | PROT_WRITE) != 0)
		elog(ERROR, "no memory: %m");
	/* Code that expects a larger struct reaches the memory after it. */
	memory += page + (strcmp(at, "memory") != 0 ? space - size : 0);
	memcpy(memory, node->instrument, size);
	node->instrument = (void *) memory;
}

static void
other_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	PlanState  *node;

	if (prev_ExecutorStart)
		prev_ExecutorStart(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
	if (queryDesc->instrument_options == 0 || queryDesc->planstate == NULL || *at == '\0' || strcmp(at, "later") == 0)
		return;
	node = queryDesc->planstate;
	if (strcmp(at, "memory") == 0)
	{
		replace_instrumentation(node);
		return;
	}
	permanent = strcmp(at, "leaf") == 0 || strcmp(at, "during") == 0;
	while (permanent && outerPlanState(node) != NULL)
		node = outerPlanState(node);
	calls = 0;
	first = true;
	wrapped = node->ExecProcNode;
	node->ExecProcNode = counted;
}

/* ExecutorRun has other arguments since 18. */
#if PG_VERSION_NUM >= 180000
#define RUN_PARAMETERS	QueryDesc *queryDesc, ScanDirection direction, uint64 count
#define RUN_ARGUMENTS	queryDesc, direction, count
#else
#define RUN_PARAMETERS	QueryDesc *queryDesc, ScanDirection direction, uint64 count, bool execute_once
#define RUN_ARGUMENTS	queryDesc, direction, count, execute_once
#endif

static void
other_ExecutorRun(RUN_PARAMETERS)
{
	PlanState  *node = queryDesc->planstate;

	if (strcmp(at, "later") == 0 && node != NULL && node->instrument != NULL && node->instrument->running)
		replace_instrumentation(node);
	if (prev_ExecutorRun)
		prev_ExecutorRun(RUN_ARGUMENTS);
	else
		standard_ExecutorRun(RUN_ARGUMENTS);
}

Datum
other_calls(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(calls);
}

/* The state of the worker's clock, as ticker.c has it after the clock's own cache line, and the state STARTING. */
#define CLOCK_SIZE		(PG_CACHE_LINE_SIZE + 3 * sizeof(uint32) + 4 + sizeof(void *))
#define STARTING		1

/* Leaves the worker's clock as a session does that is stopped while it writes the first tick. */
Datum
other_half_start(PG_FUNCTION_ARGS)
{
	bool		found;
	char	   *clock;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	clock = ShmemInitStruct("pg_fast_timing ticker", CLOCK_SIZE, &found);
	LWLockRelease(AddinShmemInitLock);
	if (!found)
		elog(ERROR, "pg_fast_timing is not preloaded");
	*(volatile uint32 *) (clock + PG_CACHE_LINE_SIZE) = STARTING;
	PG_RETURN_VOID();
}

void
_PG_init(void)
{
	DefineCustomStringVariable("other.at", "Node to wrap: root or leaf; or what to replace: memory, later or during.", NULL, &at, "", PGC_USERSET, 0, NULL, NULL, NULL);
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = other_ExecutorStart;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = other_ExecutorRun;
}
