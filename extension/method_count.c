/*-------------------------------------------------------------------------
 *
 * method_count.c
 *	  rows, buffers and WAL without times, for TIMING OFF
 *
 * Core calls two functions for each call of a node.  This wrapper does the same in
 * its own code, and copies the counters of BUFFERS and WAL only after a change.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "call.h"
#include "methods.h"
#include "usage.h"

static pg_attribute_always_inline TupleTableSlot *
counted(PlanState *node, UsageKind usage)
{
	FastInstr  *fi = FAST_INSTR(node);
	TupleTableSlot *slot;

	if (usage != USAGE_NONE)
		usage_enter(fi, usage);
	slot = node->ExecProcNodeReal(node);
	if (usage != USAGE_NONE)
		usage_leave(fi, usage);
	count_call(fi, slot);
	return slot;
}

#define WRAPPER(name, usage) \
static TupleTableSlot * \
name(PlanState *node) \
{ \
	return counted(node, usage); \
}

WRAPPER(count_rows, USAGE_NONE)
WRAPPER(count_buffers, USAGE_BUFFERS)
WRAPPER(count_all, USAGE_ALL)

ExecProcNodeMtd
fast_count_wrapper(const FastInstr *fi)
{
	const ExecProcNodeMtd wrappers[] = {count_rows, count_buffers, count_all};

	return wrappers[usage_kind(fi)];
}
