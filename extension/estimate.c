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
 * What a clock's reads add to a short call depends on what the CPU does at the
 * same time: up to half of what they take alone.
 */
#define WINDOW_ERROR		0.5

static double
stratum_variance(const Stratum *stratum)
{
	double		n = (double) stratum->timed;
	double		mean;
	double		spread;

	if (stratum->timed < 2)
		return 0;
	mean = stratum->sum / n;
	spread = Max(stratum->squares / n - mean * mean, 0) * n / (n - 1);
	return stratum->calls * stratum->calls * spread / n * Max(1 - n / stratum->calls, 0);
}

/* Of what this process has timed. */
static double
own_error_ns(const FastInstr *fi)
{
	const ClockFacts *clock = &fast_clocks[fi->query->clock];
	double		square = clock->ns_per_tick * clock->ns_per_tick;
	double		chance;
	double		bias;

	chance = fi->variance +
		square * (stratum_variance(&fi->first) + stratum_variance(&fi->next));
	bias = (fi->first.calls + fi->next.calls) * WINDOW_ERROR * clock->window * clock->ns_per_tick;
	return STANDARD_ERRORS * sqrt(chance) + bias;
}

/*
 * Of what parallel workers have timed.  Their samples stay with them, so this
 * is what ticks alone would tell, which auto is better than.
 */
static double
workers_error_ns(PlanState *planstate, const FastInstr *fi)
{
	double		total = 0;

	for (int n = 0; n < planstate->worker_instrument->num_workers; n++)
		total += core_total_ns(&planstate->worker_instrument->instrument[n]);
	return STANDARD_ERRORS * sqrt(total * ticker_period_ns());
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
		estimate.samples = fi->first.timed + fi->next.timed + fi->ticks;
		estimate.error_ns = own_error_ns(fi);
	}
	if (planstate->worker_instrument != NULL)
	{
		estimate.exact = false;
		estimate.error_ns += workers_error_ns(planstate, fi);
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
fast_note_statement(QueryDesc *queryDesc)
{
	LastStatement *last = &fast_last_statement;

	memset(last, 0, sizeof(*last));
	note_node(queryDesc->planstate, NULL);
	if (last->estimated > 0)
		ereport(DEBUG1,
				(errmsg_internal("pg_fast_timing: times of %d of %d plan nodes are estimates, from " UINT64_FORMAT " samples, off by %.3f ms at most",
								 last->estimated, last->nodes, last->samples, last->error_ns / 1e6)));
}
