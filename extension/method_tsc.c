/*-------------------------------------------------------------------------
 *
 * method_tsc.c
 *	  timing of every call with the CPU's counter
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "call.h"
#include "methods.h"
#include "usage.h"

/* Unordered reads are cheaper.  tests/extension/accuracy.py compares with ordered reads. */
#ifdef ORDERED_TSC
#define tsc_now		tsc_ordered
#endif

static pg_attribute_always_inline TupleTableSlot *
timed(PlanState *node, UsageKind usage)
{
	FastInstr  *fi = FAST_INSTR(node);
	TupleTableSlot *slot;
	uint64		start;

	if (usage != USAGE_NONE)
		usage_enter(fi, usage);
	start = tsc_now();
	slot = node->ExecProcNodeReal(node);
	add_ticks(fi, KIND_TSC, tsc_now() - start);
	count_call(fi, slot);
	if (usage != USAGE_NONE)
		usage_leave(fi, usage);
	return slot;
}

/* One wrapper for each kind of usage, so that none does unnecessary work. */
#define WRAPPER(name, usage) \
static TupleTableSlot * \
name(PlanState *node) \
{ \
	return timed(node, usage); \
}

WRAPPER(tsc_time, USAGE_NONE)
WRAPPER(tsc_buffers, USAGE_BUFFERS)
WRAPPER(tsc_all, USAGE_ALL)

ExecProcNodeMtd
fast_tsc_wrapper(const FastInstr *fi)
{
	const ExecProcNodeMtd wrappers[] = {tsc_time, tsc_buffers, tsc_all};

	return wrappers[usage_kind(fi)];
}
