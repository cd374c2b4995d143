/*-------------------------------------------------------------------------
 *
 * gaps.c
 *	  method auto: the time of calls that are not timed
 *
 * method_auto.c describes the method.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"

#include "calls.h"
#include "clock.h"
#include "estimate.h"
#include "gaps.h"
#include "ticker.h"

void
gap_start(FastInstr *fi, int32 mean, uint64 now)
{
	AutoTiming *timing = &fi->auto_timing;

	timing->gap_length = 1 + mean / 2 + (int32) pg_prng_uint64_range(&pg_global_prng_state, 0, mean);
	timing->calls_before = fast_calls_of(fi);
	timing->loops_before = fi->loops;
	timing->since = now;
	timing->gap_end_row = fi->core.tuplecount + timing->gap_length;
}

double
gap_calls(FastInstr *fi)
{
	return fast_calls_of(fi) - fi->auto_timing.calls_before;
}

double
gap_loops(const FastInstr *fi)
{
	return fi->loops - fi->auto_timing.loops_before;
}

/* Adds the time of `calls` calls to a node.  `mean` is their mean duration in ticks. */
static void
attribute(FastInstr *fi, Stratum *stratum, double calls, double mean)
{
	double		ns = mean * calls * fast_clocks[fi->query->clock].ns_per_tick;

	stratum->calls += calls;
	stratum->ns += ns;
	core_add_total_ns(&fi->core, ns, stratum == &fi->auto_timing.first ? ns : 0);
}

/*
 * Attributes time to the calls of a gap: the mean of the burst after it, or else of
 * earlier bursts.  Before the first burst, the calls are pending.
 */
static void
extrapolate(FastInstr *fi, Stratum *stratum, double calls)
{
	double		mean;

	stratum->pending_calls += calls;
	if (stratum->timed > 0)
	{
		mean = stratum->sum / stratum->timed;
		stratum->bursts++;
		stratum->means += mean;
		stratum->squares += mean * mean;
	}
	else if (stratum->bursts > 0)
		mean = stratum->means / stratum->bursts;
	else
		return;
	attribute(fi, stratum, stratum->pending_calls, mean);
	stratum->pending_calls = 0;
	stratum->timed = 0;
	stratum->sum = 0;
}

/*
 * Attributes time to calls without a burst: the mean of the exact phase, limited to
 * `cap`.  Ticks account for the time beyond it.
 */
static void
attribute_pending(FastInstr *fi, Stratum *stratum)
{
	double		prior = stratum->prior_ns / fast_clocks[fi->query->clock].ns_per_tick;

	attribute(fi, stratum, stratum->pending_calls, Min(prior, (double) fi->auto_timing.cap));
	stratum->pending_calls = 0;
}

void
gap_finish(FastInstr *fi)
{
	AutoTiming *timing = &fi->auto_timing;

	attribute_pending(fi, &timing->first);
	attribute_pending(fi, &timing->next);
	fi->estimated = timing->first.calls + timing->next.calls > 0;
}

void
gap_attribute(FastInstr *fi, double calls, double loops)
{
	extrapolate(fi, &fi->auto_timing.first, Min(loops, calls));
	extrapolate(fi, &fi->auto_timing.next, calls - Min(loops, calls));
}

void
gap_store_prior(FastInstr *fi)
{
	double		calls = fi->core.ntuples + fi->core.tuplecount + fi->loops;
	double		startup = core_startup_so_far_ns(&fi->core);
	double		rest = core_time_so_far_ns(&fi->core) - startup;

	fi->auto_timing.first.prior_ns = startup / Max(fi->loops, 1);
	fi->auto_timing.next.prior_ns = Max(rest, 0) / Max(calls - fi->loops, 1);
}

void
gap_attribute_tick(FastInstr *fi, uint64 tick_before_ns)
{
	AutoTiming *timing = &fi->auto_timing;
	uint64		now = clock_ordered(fi->query->clock);
	uint64		last_ns;
	uint64		prev_ns;
	uint64		last;
	uint32		version;
	uint64		ns;

	/* The time between ticks is long, so one pass is almost always enough. */
	do
	{
		version = ticker->version;
		pg_read_barrier();
		last_ns = ticker->last_ns;
		prev_ns = ticker->prev_ns;
		last = fi->query->clock == KIND_TSC ? ticker->last_tsc : last_ns;
		pg_read_barrier();
	} while ((version & 1) || version != ticker->version);

	ns = last_ns - tick_before_ns;
	fi->samples.ticks++;
	fi->samples.ns += ns;

	/* Do not credit the last tick if it came within the cap before the call's end, or after it. */
	if ((int64) (now - last) <= (int64) timing->cap)
		last_ns = prev_ns;
	if ((int64) (last_ns - tick_before_ns) > 0)
	{
		ns = last_ns - tick_before_ns;
		core_add_ns(&fi->core, ns);
		timing->beyond_ns += ns;
		timing->beyond_variance += tick_variance(ns);
	}
}
