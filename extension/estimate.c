/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  combines estimates of node times, and computes their errors
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"

#include "clock.h"
#include "estimate.h"
#include "statistics.h"
#include "ticker.h"
#include "tree.h"

/* An interval of two standard errors contains the true value in 95% of cases. */
#define STANDARD_ERRORS		2.0

/*
 * A call with one tick can have any duration up to two periods.  For a call with
 * several ticks, only its two ends are uncertain.
 */
double
tick_variance(uint64 ns)
{
	double		period = (double) ticker_period_ns();

	return ns < 2 * period ? (double) ns * ns : period * period / 6;
}

/*
 * Returns the variance of the time of calls in gaps, from the variation among
 * bursts.  Few bursts can be similar by chance, so the factor is n / (n - 3):
 * n / (n - 1) for the sample variance, times (n - 1) / (n - 3) for Student's t.
 * With fewer than four bursts, the standard error is the whole time.
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
 * Combines two estimates of the time of calls in gaps: from bursts, and from ticks
 * alone.  Each is weighted by the inverse of its variance.
 *
 * The estimate from bursts has less random error, but it can be biased.  The time
 * that a clock read adds to a short call depends on the CPU's other work.  It can
 * differ from the subtracted window by up to one window.  Other biases are not known
 * in advance: for example, clock reads in order keep the CPU from waiting for memory
 * in several calls at once.  So if the two estimates differ by more than chance
 * explains, the rest of the difference is such a bias.
 */
void
fast_combine_estimates(FastInstr *fi)
{
	const AutoTiming *timing = &fi->auto_timing;
	const ClockFacts *clock = &fast_clocks[fi->query->clock];
	double		period = fi->query->max_period_ns;
	double		bursts_ns = timing->first.ns + timing->next.ns + timing->beyond_ns;
	double		bias = (timing->first.calls + timing->next.calls) * clock->window * clock->ns_per_tick;
	/* Added after the estimates are combined: without ticks, the bursts are still representative. */
	double		tickless_variance = fi->query->tickless_ns * fi->query->tickless_ns;
	double		bursts_variance = bias * bias + timing->beyond_variance +
		stratum_variance(&timing->first, clock->ns_per_tick) +
		stratum_variance(&timing->next, clock->ns_per_tick);
	/* Use at least the expected tick time: a node may have had no tick by chance. */
	double		ticks_variance = Max(fi->samples.ns, bursts_ns) * period + period * period +
		fi->query->lost_ns * fi->query->lost_ns + tickless_variance;
	double		difference = fi->samples.ns - bursts_ns;
	double		random_variance;
	double		change;

	if (bursts_ns <= 0 || fi->query->tickless)
	{
		fi->variance = bursts_variance + tickless_variance;
		return;
	}
	random_variance = bursts_variance + ticks_variance;
	if (fabs(difference) > STANDARD_ERRORS * sqrt(random_variance))
		bursts_variance += difference * difference - random_variance;
	change = difference * bursts_variance / (bursts_variance + ticks_variance);
	core_add_total_ns(&fi->core, change, change * timing->first.ns / bursts_ns);
	fi->variance = bursts_variance * ticks_variance / (bursts_variance + ticks_variance) + tickless_variance;
}

/*
 * Returns the error of the time of parallel workers, or 0 if every call was timed.
 * The leader does not get the workers' samples, so this assumes an estimate from
 * ticks alone.  The method auto has a smaller error.
 */
static double
workers_error_ns(const CoreWorkers *workers, const FastQuery *query)
{
	double		variance = 0;

	for (int n = 0; n < workers->num_workers; n++)
	{
		const CoreInstr *worker = &workers->instrument[n];
		double		calls = worker->ntuples + worker->nloops;

		if (calls > 0 && (query->method == METHOD_SAMPLING || calls >= AUTO_EXACT_CALLS))
			variance += (core_total_ns(worker) + query->max_period_ns) * query->max_period_ns +
				query->tickless_ns * query->tickless_ns;
	}
	return STANDARD_ERRORS * sqrt(variance);
}

/*
 * Returns the error of the method sampling.  A node can have few ticks or none by
 * chance: a node that takes three periods has no tick in 1 of 20 cases.
 */
static double
sampling_error_ns(const FastInstr *fi)
{
	const FastQuery *query = fi->query;
	double		period = query->max_period_ns;

	return STANDARD_ERRORS * sqrt(fi->variance + period * period) + period +
		query->lost_ns + query->tickless_ns;
}

/* Returns how a node's time was obtained, and its error.  The node's last loop must have ended. */
Estimate
fast_estimate(const FastInstr *fi)
{
	const CoreWorkers *workers = fi->node->worker_instrument;
	Estimate	estimate = {true, 0, 0};

	if (fi->query->method == METHOD_TSC)
		return estimate;
	if (fi->estimated || fi->query->method == METHOD_SAMPLING)
	{
		estimate.exact = false;
		estimate.samples = fi->auto_timing.timed + fi->samples.ticks;
		if (fi->query->method == METHOD_SAMPLING)
			estimate.error_ns = sampling_error_ns(fi);
		else
			estimate.error_ns = STANDARD_ERRORS * sqrt(fi->variance);
	}
	if (workers != NULL)
	{
		double		error_ns = workers_error_ns(workers, fi->query);

		if (error_ns > 0)
			estimate.exact = false;
		estimate.error_ns = hypot(estimate.error_ns, error_ns);
	}
	return estimate;
}

LastStatement fast_last_statement;

static void
note_node(LastStatement *last, const FastInstr *fi)
{
	Estimate	estimate = fast_estimate(fi);

	last->nodes++;
	if (!estimate.exact)
		last->estimated++;
	last->samples += estimate.samples;
	last->error_ns = Max(last->error_ns, estimate.error_ns);
}

/* Parallel workers do not count their leader's statement once more. */
static void
add_to_statistics(const FastQuery *query)
{
	const LastStatement *last = &fast_last_statement;

	if (IsParallelWorker())
		return;
	fast_statistics_add(TIMED_STATEMENTS, 1);
	fast_statistics_add(EXACT_NODES, last->nodes - last->estimated);
	fast_statistics_add(ESTIMATED_NODES, last->estimated);
	fast_statistics_add(WITHOUT_TICKS, query->tickless ? 1 : 0);
}

char *
fast_describe_estimates(void)
{
	const LastStatement *last = &fast_last_statement;

	/* The error is rounded up to the last printed digit, so that it remains a bound. */
	return psprintf("times of %d of %d plan nodes are estimates; largest error of a node +-%.3f ms in all loops",
					last->estimated, last->nodes, ceil(last->error_ns / 1e3) / 1e3);
}

/* Stores facts about the statement.  A DEBUG1 message reports them: before 18, EXPLAIN cannot mark estimates. */
void
fast_note_statement(QueryDesc *queryDesc, const FastQuery *query)
{
	LastStatement *last = &fast_last_statement;

	/* An untimed statement does not replace the last timed one. */
	if (!(queryDesc->instrument_options & INSTRUMENT_TIMER))
		return;
	memset(last, 0, sizeof(*last));
	if (query == NULL)
		return;
	last->just_finished = true;
	last->method = query->method;
	last->period_ns = query->period_ns;
	for (int i = 0; i < query->node_count; i++)
	{
		const FastInstr *fi = fast_instr_of(query->nodes[i].node);

		if (fi != NULL)
			note_node(last, fi);
	}
	add_to_statistics(query);
	if (last->estimated > 0)
		ereport(DEBUG1, (errmsg_internal("pg_fast_timing: %s", fast_describe_estimates())));
}
