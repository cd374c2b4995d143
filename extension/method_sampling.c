/*-------------------------------------------------------------------------
 *
 * method_sampling.c
 *	  calls timed with a clock in memory that moves only when the ticker ticks
 *
 * A call that a tick falls into gets the time since the tick before.  Ticks
 * come at random times, so that each call gets its due on average, and reading
 * such a clock costs no more than a load.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "clock.h"
#include "ticker.h"
#include "usage.h"

static pg_noinline void
met_by_tick(FastInstr *fi, uint64 ns)
{
	core_add_ns(&fi->core, ns);
	fi->estimated = true;
	fi->ticks++;
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
	start = ticker.last_ns;
	slot = node->ExecProcNodeReal(node);
	end = ticker.last_ns;
	if (unlikely(end != start))
		met_by_tick(fi, end - start);
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
	const ExecProcNodeMtd ours[] = {sampling_time, sampling_buffers, sampling_all};

	return ours[usage_kind(fi)];
}
