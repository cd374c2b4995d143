/*-------------------------------------------------------------------------
 *
 * budget.c
 *	  method auto: the time that timing may take
 *
 * method_auto.c describes the method.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "budget.h"
#include "clock.h"
#include "ticker.h"

/* Largest share of the query's time for timing one node.  Nodes that are timed in bursts divide it. */
#define BUDGET			0.005

/* Cost of the bookkeeping for a timed call, about that of a cheap clock. */
#define BOOKKEEPING_NS	20

/* Calls before the first review.  Timing them takes 5 us, or 0.4 ms with a slow clock. */
#define FIRST_REVIEW	AUTO_EXACT_CALLS
/* While every call is timed, a review now and then is enough. */
#define LATER_REVIEW	4096

/* Rarer bursts gain nothing, because then the ticks are more precise. */
#define MAX_ONE_IN		100000

/* Returns the largest share of the time that timing of one node may take. */
static double
allowed_share(const FastQuery *query)
{
	return BUDGET / Max(query->sampled, 1);
}

/* Returns the time for timing `calls` calls, as a share of the time since the last review or gap start. */
static double
share_of_time(const FastInstr *fi, double calls, uint64 now)
{
	const ClockFacts *clock = &fast_clocks[fi->query->clock];
	double		elapsed = (double) (int64) (now - fi->auto_timing.since);

	return elapsed <= 0 ? 1 :
		calls * (clock->cost + BOOKKEEPING_NS / clock->ns_per_tick) / elapsed;
}

/* Chooses the part of the calls to time.  `share` is the cost of timing all calls. */
static void
choose_part(FastInstr *fi, double share)
{
	AutoTiming *timing = &fi->auto_timing;
	FastQuery  *query = fi->query;
	bool		ticks = ticker_start();

	ticker_note_period(query);
	timing->one_in = (int32) Min(Max(ceil(share / allowed_share(query)), 1), MAX_ONE_IN);
	if (ticks)
		timing->cap = (uint64) (query->period_ns / fast_clocks[query->clock].ns_per_tick / timing->one_in);
	else
	{
		timing->cap = PG_INT64_MAX;
		query->tickless = true;
	}
}

void
budget_choose_part(FastInstr *fi, double calls, uint64 now)
{
	choose_part(fi, share_of_time(fi, calls, now));
}

bool
budget_exceeded(FastInstr *fi, uint64 now)
{
	AutoTiming *timing = &fi->auto_timing;
	double		share = share_of_time(fi, timing->review_interval, now);

	/* The first call only starts the phase. */
	if (timing->since == 0 || share <= allowed_share(fi->query))
		return false;
	choose_part(fi, share);
	return true;
}

void
budget_schedule_review(FastInstr *fi, uint64 start)
{
	AutoTiming *timing = &fi->auto_timing;

	timing->review_interval = timing->since == 0 ? FIRST_REVIEW : LATER_REVIEW;
	timing->review_left = timing->review_interval;
	timing->since = start;
}
