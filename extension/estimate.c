/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  how far an estimated time may be off
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "nodes/nodeFuncs.h"

#include "clock.h"
#include "ticker.h"

/* Two standard errors: the truth is within them 95 times of 100. */
#define STANDARD_ERRORS		2.0

/*
 * Of the calls in gaps, as the bursts tell: from one burst to the next.  Few
 * bursts may be alike by chance, so it is the variance of Student's t; and three
 * tell nothing.
 */
static double
stratum_variance(const Stratum *stratum, double ns_per_tick)
{
	double		n = stratum->bursts;
	double		mean;
	double		spread;

	if (n < 4)
		return stratum->ns * stratum->ns;
	mean = stratum->means / n;
	spread = Max(stratum->squares / n - mean * mean, 0) * n / (n - 3);
	return stratum->calls * stratum->calls * spread / n * ns_per_tick * ns_per_tick;
}

/*
 * Calls in gaps are told by bursts, and by ticks alone.  The first has less of
 * chance in it; but what reading the clock adds to a short call depends on what
 * the CPU does at the same time, and may be as much again as was taken off.
 * Each counts by how far it may be off.
 */
void
fast_weigh(FastInstr *fi)
{
	const ClockFacts *clock = &fast_clocks[fi->query->clock];
	double		period = fi->query->period_ns;
	double		bursts_ns = fi->first.ns + fi->next.ns + fi->beyond_ns;
	double		bias = (fi->first.calls + fi->next.calls) * clock->window * clock->ns_per_tick;
	double		by_bursts = bias * bias + fi->beyond_variance +
		stratum_variance(&fi->first, clock->ns_per_tick) +
		stratum_variance(&fi->next, clock->ns_per_tick);
	/* of what there may be, and not of what was seen: none may have come */
	double		by_ticks = Max(fi->ticks_ns, bursts_ns) * period + period * period +
		fi->query->lost_ns * fi->query->lost_ns;
	double		change;

	if (bursts_ns <= 0 || fi->cap == PG_INT64_MAX)
	{
		fi->variance = by_bursts;
		return;
	}
	change = (fi->ticks_ns - bursts_ns) * by_bursts / (by_bursts + by_ticks);
	core_add_total_ns(&fi->core, change, change * fi->first.ns / bursts_ns);
	core_keep_startup_within_total(&fi->core);
	fi->variance = by_bursts * by_ticks / (by_bursts + by_ticks);
}

/*
 * Of what parallel workers have timed.  Their samples stay with them, so this
 * is what ticks alone would tell, which auto is better than.  0 if each call
 * was timed.
 */
static double
workers_error_ns(PlanState *planstate, const FastQuery *query)
{
	double		variance = 0;

	for (int n = 0; n < planstate->worker_instrument->num_workers; n++)
	{
		const CoreInstr *worker = &planstate->worker_instrument->instrument[n];
		double		calls = worker->ntuples + worker->nloops;

		if (calls > 0 && (query->method == METHOD_SAMPLING || calls >= AUTO_EXACT_CALLS))
			variance += (core_total_ns(worker) + query->period_ns) * query->period_ns;
	}
	return STANDARD_ERRORS * sqrt(variance);
}

/*
 * That no tick has met a node, or only a few, may be chance: what takes three
 * periods is met by none 1 time of 20.
 */
static double
sampling_error_ns(const FastInstr *fi)
{
	double		period = fi->query->period_ns;

	return STANDARD_ERRORS * sqrt(fi->variance + period * period) + period + fi->query->lost_ns;
}

/* How a node's time came about; after its loops have ended. */
Estimate
fast_estimate(PlanState *planstate)
{
	FastInstr  *fi = fast_instr_of(planstate);
	Estimate	estimate = {true, 0, 0};

	if (fi == NULL || fi->query->method == METHOD_TSC)
		return estimate;
	if (fi->estimated || fi->query->method == METHOD_SAMPLING)
	{
		estimate.exact = false;
		estimate.samples = fi->timed + fi->ticks;
		if (fi->query->method == METHOD_SAMPLING)
			estimate.error_ns = sampling_error_ns(fi);
		else
			estimate.error_ns = STANDARD_ERRORS * sqrt(fi->variance);
	}
	if (planstate->worker_instrument != NULL)
	{
		double		workers = workers_error_ns(planstate, fi->query);

		if (workers > 0)
			estimate.exact = false;
		estimate.error_ns = hypot(estimate.error_ns, workers);
	}
	return estimate;
}

LastStatement fast_last_statement;

static bool
note_node(PlanState *node, void *unused)
{
	if (fast_instr_of(node) != NULL)
	{
		Estimate	estimate = fast_estimate(node);

		fast_last_statement.nodes++;
		if (!estimate.exact)
			fast_last_statement.estimated++;
		fast_last_statement.samples += estimate.samples;
		fast_last_statement.error_ns = Max(fast_last_statement.error_ns, estimate.error_ns);
	}
	return planstate_tree_walker(node, note_node, unused);
}

/* Before 18 EXPLAIN cannot be told which times are estimates: this tells. */
void
fast_note_statement(QueryDesc *queryDesc, const FastQuery *query)
{
	LastStatement *last = &fast_last_statement;

	/* what was not to be timed tells nothing of timing */
	if (!(queryDesc->instrument_options & INSTRUMENT_TIMER))
		return;
	memset(last, 0, sizeof(*last));
	if (query == NULL)
		return;
	last->method = query->method;
	last->period_ns = query->period_ns;
	note_node(queryDesc->planstate, NULL);
	if (last->estimated > 0)
		ereport(DEBUG1,
				(errmsg_internal("pg_fast_timing: times of %d of %d plan nodes are estimates, from " UINT64_FORMAT " samples, off by %.3f ms at most",
								 last->estimated, last->nodes, last->samples, last->error_ns / 1e6)));
}
