/*-------------------------------------------------------------------------
 *
 * method_auto.c
 *	  exact timing while it is cheap, then timing of a part of the calls
 *
 * At first every call of a node is timed.  If that takes more of the query's time
 * than BUDGET allows, only bursts of calls are timed, at random distances.  They
 * represent the calls in the gaps between them.  Single calls would not be
 * representative: the CPU's branch prediction does not expect the timing code, so
 * a single timed call takes up to twice as long as its neighbors.  For the same
 * reason the first calls of a burst do not count.
 *
 * Bursts are precise for many short calls, but not for a few long ones.  So a
 * timed call counts only up to a cap.  For calls in gaps, a ticker accounts for the
 * time beyond the cap, as in the method sampling: the interval of a tick is
 * credited only if the tick came more than `cap` before the end of the call.  On
 * average that credits max(0, duration - cap).  The cap is the tick period divided
 * by one_in: a timed call of that duration stands for one_in calls, so it
 * contributes one period, as a tick does.
 *
 * The first calls of loops are a stratum of their own, because they take longer
 * (for example, they descend an index or build a hash table).  estimate.c
 * combines the result with the estimate from ticks alone.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "budget.h"
#include "call.h"
#include "estimate.h"
#include "gaps.h"
#include "methods.h"
#include "ticker.h"
#include "usage.h"

/* Calls of a burst.  The first ones do not count. */
#define BURST			32
#define WARM_UP			8

/* Returns the mean length of a gap, in calls. */
static int32
mean_gap(const FastInstr *fi)
{
	return BURST * (fi->auto_timing.one_in - 1);
}

/*
 * Changes the wrapper of a node.  Returns false if that is not possible, because
 * another extension has put a function in front, which calls the present wrapper.
 */
static bool
replace_wrapper(FastInstr *fi, ExecProcNodeMtd wrapper)
{
	PlanState  *node = fi->node;

	if (node->ExecProcNode == fi->wrapper)
		node->ExecProcNode = wrapper;
	else if (node->ExecProcNode != fi->entry)
		return false;
	fi->wrapper = wrapper;
	return true;
}

/* Changes the phase and the wrapper.  Returns false, and changes nothing, if that is not possible. */
static bool
change_phase(FastInstr *fi, AutoPhase phase)
{
	AutoPhase	old = fi->auto_timing.phase;

	fi->auto_timing.phase = phase;
	if (replace_wrapper(fi, fast_auto_wrapper(fi)))
		return true;
	fi->auto_timing.phase = old;
	return false;
}

/* Changes to the gap phase.  Returns false if that is not possible. */
static bool
enter_gap_phase(FastInstr *fi, uint64 now)
{
	if (!change_phase(fi, PHASE_GAP))
		return false;
	gap_start(fi, mean_gap(fi), now);
	return true;
}

/* Changes to the burst phase.  Returns false if that is not possible. */
static bool
enter_burst_phase(FastInstr *fi)
{
	AutoTiming *timing = &fi->auto_timing;

	if (!change_phase(fi, PHASE_BURST))
		return false;
	timing->last_gap_calls = gap_calls(fi);
	timing->last_gap_loops = gap_loops(fi);
	timing->burst_left = BURST;
	return true;
}

/* Adds the duration of a finished call to the burst.  Ends the burst after its last call. */
static pg_noinline void
note_burst_call(FastInstr *fi, bool first, uint64 elapsed, uint64 now)
{
	AutoTiming *timing = &fi->auto_timing;

	if (timing->burst_left <= BURST - WARM_UP)
	{
		Stratum    *stratum = first ? &timing->first : &timing->next;

		/* The counter went back: a virtual machine was migrated. */
		if ((int64) elapsed < 0)
			elapsed = 0;
		/* Subtract the clock read's time; otherwise it would be extrapolated, too. */
		elapsed -= Min(elapsed, fast_clocks[fi->query->clock].window);
		stratum->timed++;
		stratum->sum += (double) Min(elapsed, timing->cap);
		timing->timed++;
	}
	if (--timing->burst_left <= 0)
	{
		gap_attribute(fi, timing->last_gap_calls, timing->last_gap_loops);
		budget_choose_part(fi, timing->last_gap_calls + BURST, now);
		if (!enter_gap_phase(fi, now))
		{
			/* Another burst follows, without a gap. */
			timing->burst_left = BURST;
			timing->last_gap_calls = 0;
			timing->last_gap_loops = 0;
		}
	}
}

/* Reviews the cost in the exact phase, and ends the phase if timing takes too much. */
static pg_noinline void
review(FastInstr *fi, uint64 start, uint64 now)
{
	if (budget_exceeded(fi, now) && enter_gap_phase(fi, now))
	{
		fi->query->sampled++;
		gap_store_prior(fi);
	}
	else
		budget_schedule_review(fi, start);
}

static pg_attribute_always_inline TupleTableSlot *
timed_call(PlanState *node, UsageKind usage, ClockKind kind, AutoPhase phase)
{
	FastInstr  *fi = FAST_INSTR(node);
	TupleTableSlot *slot;
	bool		first = !fi->core.running;
	uint64		start;
	uint64		end;

	if (usage != USAGE_NONE)
		usage_enter(fi, usage);
	start = clock_ordered(kind);
	slot = node->ExecProcNodeReal(node);
	end = clock_ordered(kind);
	add_ticks(fi, kind, end - start);
	count_call(fi, slot);
	if (usage != USAGE_NONE)
		usage_leave(fi, usage);
	if (phase == PHASE_BURST)
		note_burst_call(fi, first, end - start, end);
	else if (unlikely(--fi->auto_timing.review_left <= 0))
		review(fi, start, end);
	return slot;
}

/* Ends a gap.  The next call starts a burst, or another gap if the wrapper cannot be replaced. */
static pg_noinline void
end_gap(FastInstr *fi)
{
	if (enter_burst_phase(fi))
		return;
	gap_attribute(fi, gap_calls(fi), gap_loops(fi));
	gap_start(fi, mean_gap(fi), clock_ordered(fi->query->clock));
}

/* Starts a loop after its first call, and computes where in this loop the gap ends. */
static pg_noinline void
begin_loop_in_gap(FastInstr *fi)
{
	double		left = fi->auto_timing.gap_length - gap_calls(fi);

	core_start_loop(&fi->core);
	fi->loops++;
	fi->auto_timing.gap_end_row = fi->core.tuplecount + left;
	if (left <= 0)
		end_gap(fi);
}

/* Calls the node without reading the clock.  The loop's tuplecount, counted anyway, shows the end of the gap. */
static pg_attribute_always_inline TupleTableSlot *
gap_call(PlanState *node, UsageKind usage)
{
	FastInstr  *fi = FAST_INSTR(node);
	TupleTableSlot *slot;
	uint64		tick_before_ns;
	double		rows;

	if (usage != USAGE_NONE)
		usage_enter(fi, usage);
	tick_before_ns = ticker->last_ns;
	slot = node->ExecProcNodeReal(node);
	if (unlikely(ticker->last_ns != tick_before_ns))
		gap_attribute_tick(fi, tick_before_ns);
	if (usage != USAGE_NONE)
		usage_leave(fi, usage);
	rows = fi->core.tuplecount;
	if (TupIsNull(slot))
		fi->ends++;
	else
		fi->core.tuplecount = ++rows;
	if (unlikely(!fi->core.running))
		begin_loop_in_gap(fi);
	else if (unlikely(rows >= fi->auto_timing.gap_end_row))
		end_gap(fi);
	return slot;
}

#define TIMED(name, usage, kind, phase) \
static TupleTableSlot * \
name(PlanState *node) \
{ \
	return timed_call(node, usage, kind, phase); \
}

#define GAP(name, usage) \
static TupleTableSlot * \
name(PlanState *node) \
{ \
	return gap_call(node, usage); \
}

TIMED(system_time, USAGE_NONE, KIND_SYSTEM, PHASE_EXACT)
TIMED(system_buffers, USAGE_BUFFERS, KIND_SYSTEM, PHASE_EXACT)
TIMED(system_all, USAGE_ALL, KIND_SYSTEM, PHASE_EXACT)
TIMED(tsc_time, USAGE_NONE, KIND_TSC, PHASE_EXACT)
TIMED(tsc_buffers, USAGE_BUFFERS, KIND_TSC, PHASE_EXACT)
TIMED(tsc_all, USAGE_ALL, KIND_TSC, PHASE_EXACT)
TIMED(system_time_burst, USAGE_NONE, KIND_SYSTEM, PHASE_BURST)
TIMED(system_buffers_burst, USAGE_BUFFERS, KIND_SYSTEM, PHASE_BURST)
TIMED(system_all_burst, USAGE_ALL, KIND_SYSTEM, PHASE_BURST)
TIMED(tsc_time_burst, USAGE_NONE, KIND_TSC, PHASE_BURST)
TIMED(tsc_buffers_burst, USAGE_BUFFERS, KIND_TSC, PHASE_BURST)
TIMED(tsc_all_burst, USAGE_ALL, KIND_TSC, PHASE_BURST)
GAP(gap_time, USAGE_NONE)
GAP(gap_buffers, USAGE_BUFFERS)
GAP(gap_all, USAGE_ALL)

ExecProcNodeMtd
fast_auto_wrapper(const FastInstr *fi)
{
	static const ExecProcNodeMtd exact[][3] = {
		[KIND_SYSTEM] = {system_time, system_buffers, system_all},
		[KIND_TSC] = {tsc_time, tsc_buffers, tsc_all},
	};
	static const ExecProcNodeMtd burst[][3] = {
		[KIND_SYSTEM] = {system_time_burst, system_buffers_burst, system_all_burst},
		[KIND_TSC] = {tsc_time_burst, tsc_buffers_burst, tsc_all_burst},
	};
	static const ExecProcNodeMtd gap[] = {gap_time, gap_buffers, gap_all};
	UsageKind	usage = usage_kind(fi);
	ClockKind	kind = fi->query->clock;

	switch (fi->auto_timing.phase)
	{
		case PHASE_EXACT:
			return exact[kind][usage];
		case PHASE_GAP:
			return gap[usage];
		case PHASE_BURST:
			return burst[kind][usage];
	}
	return NULL;
}

void
fast_auto_finish(FastInstr *fi)
{
	AutoTiming *timing = &fi->auto_timing;

	switch (timing->phase)
	{
		case PHASE_EXACT:
			return;
		case PHASE_GAP:
			gap_attribute(fi, gap_calls(fi), gap_loops(fi));
			break;
		case PHASE_BURST:
			gap_attribute(fi, timing->last_gap_calls, timing->last_gap_loops);
			break;
	}
	gap_finish(fi);
	/* The estimates change the times of finished loops. */
	InstrEndLoop(&fi->core);
	fast_combine_estimates(fi);
}
