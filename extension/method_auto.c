/*-------------------------------------------------------------------------
 *
 * method_auto.c
 *	  calls timed exactly for as long as that is cheap, then a part of them
 *
 * Each call of a node is timed until timing would take more than its share of
 * the query's time.  From then on bursts of calls are timed, at random
 * distances, and stand for the calls in the gaps between them.  Single calls
 * would not do: one that is timed alone runs through code that the CPU does not
 * expect, and takes up to twice as long as its neighbours.  For the same reason
 * the first calls of a burst do not count.
 *
 * That is precise for the mass of short calls, and hopeless for the few long
 * ones: so a timed call counts only up to a cap, and what a call in a gap takes
 * beyond the cap is told by a ticker, as in the method sampling.  A tick that
 * comes more than the cap before the end of a call gives it the time since the
 * tick before; over many calls that makes just their time beyond the cap.  The
 * cap is where a timed call weighs as much as a tick.
 *
 * The first calls of loops are not like the others (an index is descended, a
 * hash table built), so they are told apart.  estimate.c weighs the result
 * against what ticks alone tell.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "common/pg_prng.h"

#include "clock.h"
#include "gaps.h"
#include "ticker.h"
#include "usage.h"

/* What timing may take of the time: each call of a node, or bursts of all nodes together. */
#define BUDGET			0.005

/* Keeping the books of a timed call: as much as a cheap clock. */
#define BOOKKEEPING_NS	20

/* Calls before the first look at the cost: they take 5 us, or 0.4 ms where the clock is slow. */
#define FIRST_REVIEW	AUTO_EXACT_CALLS
/* While every call is timed, a look now and then is enough. */
#define LATER_REVIEW	4096

/* Calls of a burst, of which the first do not count. */
#define BURST			32
#define WARM_UP			8

/* Rarer than this nothing is gained: the ticks tell more. */
#define MOST_EVERY		100000

/* What a node may take of the time: sampled nodes share the budget. */
static double
allowed(const FastQuery *query)
{
	return BUDGET / Max(query->sampled, 1);
}

/* What timing so many calls would have taken of the time since then. */
static double
share_of_time(const FastInstr *fi, double calls, uint64 now)
{
	const ClockFacts *clock = &fast_clocks[fi->query->clock];
	double		elapsed = (double) (int64) (now - fi->since);

	return elapsed <= 0 ? 1 :
		calls * (clock->cost + BOOKKEEPING_NS / clock->ns_per_tick) / elapsed;
}

/* Chooses how many calls to time, for what timing each would take of the time. */
static void
choose_every(FastInstr *fi, double share)
{
	double		period = fi->query->period_ns / fast_clocks[fi->query->clock].ns_per_tick;

	fi->every = (int32) Min(Max(ceil(share / allowed(fi->query)), 1), MOST_EVERY);
	fi->cap = ticker_start() ? (uint64) (period / fi->every) : PG_INT64_MAX;
}

/* Calls that are not timed: at random in number, lest a rhythm be met. */
static void
begin_gap(FastInstr *fi, uint64 now)
{
	int32		mean = BURST * (fi->every - 1);

	fi->gap = 1 + mean / 2 + (int32) pg_prng_uint64_range(&pg_global_prng_state, 0, mean);
	gap_note_calls(fi);
	fi->since = now;
	fi->last_row = fi->core.tuplecount + fi->gap;
}

/* False if calls cannot be led elsewhere: then the node goes on as it did. */
static bool
start_gap(FastInstr *fi, uint64 now)
{
	fi->in_burst = false;
	if (!fast_replace_wrapper(fi, fast_auto_wrapper(fi)))
		return false;
	begin_gap(fi, now);
	return true;
}

static bool
start_burst(FastInstr *fi)
{
	fi->in_burst = true;
	if (!fast_replace_wrapper(fi, fast_auto_wrapper(fi)))
	{
		fi->in_burst = false;
		return false;
	}
	fi->gap = gap_calls(fi);
	fi->gap_loops = fi->loops - fi->loops_before;
	fi->left = BURST;
	return true;
}

/* A call of a burst has returned. */
static pg_noinline void
note_burst_call(FastInstr *fi, bool first, uint64 elapsed, uint64 now)
{
	if (fi->left <= BURST - WARM_UP)
	{
		Stratum    *stratum = first ? &fi->first : &fi->next;

		/* back in time: a virtual machine that was moved */
		if ((int64) elapsed < 0)
			elapsed = 0;
		/* What reading the clock adds would be multiplied. */
		elapsed -= Min(elapsed, fast_clocks[fi->query->clock].window);
		stratum->timed++;
		stratum->sum += (double) Min(elapsed, fi->cap);
		fi->timed++;
	}
	if (--fi->left <= 0)
	{
		gap_give(fi, fi->gap, fi->gap_loops);
		choose_every(fi, share_of_time(fi, fi->gap + BURST, now));
		if (!start_gap(fi, now))
		{
			fi->in_burst = true;
			fi->left = BURST;
			fi->gap = 0;
			fi->gap_loops = 0;
		}
	}
}

/* While every call is timed: whether to go on so. */
static pg_noinline void
review(FastInstr *fi, uint64 start, uint64 now)
{
	double		share = share_of_time(fi, fi->gap, now);

	/* the first call begins it */
	if (fi->since != 0 && share > allowed(fi->query))
	{
		choose_every(fi, share);
		if (start_gap(fi, now))
		{
			fi->query->sampled++;
			gap_note_priors(fi);
			return;
		}
		fi->every = 0;
	}
	fi->gap = fi->left = fi->since == 0 ? FIRST_REVIEW : LATER_REVIEW;
	fi->since = start;
}

static pg_attribute_always_inline TupleTableSlot *
exact(PlanState *node, UsageKind usage, ClockKind kind, bool burst)
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
	if (burst)
		note_burst_call(fi, first, end - start, end);
	else if (unlikely(--fi->left <= 0))
		review(fi, start, end);
	return slot;
}

/* Calls are timed from the next one on; if that cannot be, a gap follows the gap. */
static pg_noinline void
end_gap(FastInstr *fi)
{
	if (start_burst(fi))
		return;
	gap_give(fi, gap_calls(fi), fi->loops - fi->loops_before);
	begin_gap(fi, clock_ordered(fi->query->clock));
}

/* The first call of a loop has returned in a gap. */
static pg_noinline void
begin_loop_in_gap(FastInstr *fi)
{
	double		left = fi->gap - gap_calls(fi);

	core_start_loop(&fi->core);
	fi->loops++;
	fi->last_row = fi->core.tuplecount + left;
	if (left <= 0)
		end_gap(fi);
}

/* That a gap has ended is seen by a number that is at hand: the rows of the loop. */
static pg_attribute_always_inline TupleTableSlot *
in_gap(PlanState *node, UsageKind usage)
{
	FastInstr  *fi = FAST_INSTR(node);
	TupleTableSlot *slot;
	uint64		start_ns;
	double		rows;

	if (usage != USAGE_NONE)
		usage_enter(fi, usage);
	start_ns = ticker.last_ns;
	slot = node->ExecProcNodeReal(node);
	if (unlikely(ticker.last_ns != start_ns))
		gap_met_by_tick(fi, start_ns);
	if (usage != USAGE_NONE)
		usage_leave(fi, usage);
	rows = fi->core.tuplecount;
	if (TupIsNull(slot))
		fi->ends++;
	else
		fi->core.tuplecount = ++rows;
	if (unlikely(!fi->core.running))
		begin_loop_in_gap(fi);
	else if (unlikely(rows >= fi->last_row))
		end_gap(fi);
	return slot;
}

#define EXACT(name, usage, kind, burst) \
static TupleTableSlot * \
name(PlanState *node) \
{ \
	return exact(node, usage, kind, burst); \
}

#define IN_GAP(name, usage) \
static TupleTableSlot * \
name(PlanState *node) \
{ \
	return in_gap(node, usage); \
}

EXACT(system_time, USAGE_NONE, KIND_SYSTEM, false)
EXACT(system_buffers, USAGE_BUFFERS, KIND_SYSTEM, false)
EXACT(system_all, USAGE_ALL, KIND_SYSTEM, false)
EXACT(tsc_time, USAGE_NONE, KIND_TSC, false)
EXACT(tsc_buffers, USAGE_BUFFERS, KIND_TSC, false)
EXACT(tsc_all, USAGE_ALL, KIND_TSC, false)
EXACT(system_time_burst, USAGE_NONE, KIND_SYSTEM, true)
EXACT(system_buffers_burst, USAGE_BUFFERS, KIND_SYSTEM, true)
EXACT(system_all_burst, USAGE_ALL, KIND_SYSTEM, true)
EXACT(tsc_time_burst, USAGE_NONE, KIND_TSC, true)
EXACT(tsc_buffers_burst, USAGE_BUFFERS, KIND_TSC, true)
EXACT(tsc_all_burst, USAGE_ALL, KIND_TSC, true)
IN_GAP(gap_time, USAGE_NONE)
IN_GAP(gap_buffers, USAGE_BUFFERS)
IN_GAP(gap_all, USAGE_ALL)

ExecProcNodeMtd
fast_auto_wrapper(const FastInstr *fi)
{
	const ExecProcNodeMtd each_call[][3] = {
		[KIND_SYSTEM] = {system_time, system_buffers, system_all},
		[KIND_TSC] = {tsc_time, tsc_buffers, tsc_all},
	};
	const ExecProcNodeMtd burst[][3] = {
		[KIND_SYSTEM] = {system_time_burst, system_buffers_burst, system_all_burst},
		[KIND_TSC] = {tsc_time_burst, tsc_buffers_burst, tsc_all_burst},
	};
	const ExecProcNodeMtd gap[] = {gap_time, gap_buffers, gap_all};
	UsageKind	usage = usage_kind(fi);
	ClockKind	kind = fi->query->clock;

	if (fi->every == 0)
		return each_call[kind][usage];
	return fi->in_burst ? burst[kind][usage] : gap[usage];
}

/* The query's nodes have done their work: the last gap gets its time. */
void
fast_auto_settle(FastInstr *fi)
{
	if (fi->every == 0)
		return;
	if (fi->in_burst)
		gap_give(fi, fi->gap, fi->gap_loops);
	else
		gap_give(fi, gap_calls(fi), fi->loops - fi->loops_before);
	gap_settle(fi);
	fast_weigh(fi);
}
