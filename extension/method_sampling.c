/*-------------------------------------------------------------------------
 *
 * method_sampling.c
 *	  timing with a clock in memory that moves only when the ticker ticks
 *
 * If a tick falls into a call, the call is charged the time since the previous
 * tick.  Ticks come at random times, so on average each call is charged its true
 * duration.  A read of this clock is only a load from memory.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "call.h"
#include "estimate.h"
#include "methods.h"
#include "ticker.h"
#include "usage.h"

/* Charges a call with the time of its ticks. */
static pg_noinline void
attribute_ticks(FastInstr *fi, uint64 ns)
{
	core_add_ns(&fi->core, ns);
	fi->estimated = true;
	fi->samples.ticks++;
	fi->variance += tick_variance(ns);
}

static pg_attribute_always_inline TupleTableSlot *
sampled(PlanState *node, UsageKind usage)
{
	FastInstr  *fi = FAST_INSTR(node);
	TupleTableSlot *slot;
	uint64		start;
	uint64		end;

	if (usage != USAGE_NONE)
		usage_enter(fi, usage);
	start = ticker->last_ns;
	slot = node->ExecProcNodeReal(node);
	end = ticker->last_ns;
	if (unlikely(end != start))
		attribute_ticks(fi, end - start);
	if (usage != USAGE_NONE)
		usage_leave(fi, usage);
	count_call(fi, slot);
	return slot;
}

#define WRAPPER(name, usage) \
static TupleTableSlot * \
name(PlanState *node) \
{ \
	return sampled(node, usage); \
}

WRAPPER(sampling_time, USAGE_NONE)
WRAPPER(sampling_buffers, USAGE_BUFFERS)
WRAPPER(sampling_all, USAGE_ALL)

ExecProcNodeMtd
fast_sampling_wrapper(const FastInstr *fi)
{
	const ExecProcNodeMtd wrappers[] = {sampling_time, sampling_buffers, sampling_all};

	return wrappers[usage_kind(fi)];
}
