/*-------------------------------------------------------------------------
 *
 * gaps.c
 *	  the time of calls that are not timed: by bursts of others, and by ticks
 *
 * What for, see method_auto.c.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "gaps.h"
#include "ticker.h"

/*
 * A node's calls so far: its rows and the ends of its loops.  Core adds what
 * parallel workers have counted to the leader's rows as they are done.
 */
static double
calls_so_far(FastInstr *fi)
{
	const CoreWorkers *workers = fi->node->worker_instrument;

	if (workers != NULL && workers != fi->workers)
	{
		for (int n = 0; n < workers->num_workers; n++)
			fi->workers_rows += workers->instrument[n].ntuples;
		fi->workers = workers;
	}
	return fi->core.ntuples - fi->workers_rows + fi->core.tuplecount + fi->ends;
}

/* A gap begins. */
void
gap_note_calls(FastInstr *fi)
{
	fi->calls_before = calls_so_far(fi);
	fi->loops_before = fi->loops;
}

/* Calls since then. */
double
gap_calls(FastInstr *fi)
{
	return calls_so_far(fi) - fi->calls_before;
}

static void
give(FastInstr *fi, Stratum *stratum, double calls, double mean)
{
	double		ns = mean * calls * fast_clocks[fi->query->clock].ns_per_tick;

	stratum->calls += calls;
	stratum->ns += ns;
	core_add_total_ns(&fi->core, ns, stratum == &fi->first ? ns : 0);
}

/*
 * Gives calls of a gap their time, by the burst after it, or else by those
 * before.  As long as there are none, they wait.
 */
static void
extrapolate(FastInstr *fi, Stratum *stratum, double calls)
{
	double		mean;

	stratum->waiting += calls;
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
	give(fi, stratum, stratum->waiting, mean);
	stratum->waiting = 0;
	stratum->timed = 0;
	stratum->sum = 0;
}

/*
 * In the end: calls that no burst has met take what those took that were timed
 * before the first gap; but no more than the cap, for beyond it ticks tell.
 */
static void
give_waiting(FastInstr *fi, Stratum *stratum)
{
	double		prior = stratum->prior_ns / fast_clocks[fi->query->clock].ns_per_tick;

	give(fi, stratum, stratum->waiting, Min(prior, (double) fi->cap));
	stratum->waiting = 0;
}

void
gap_settle(FastInstr *fi)
{
	give_waiting(fi, &fi->first);
	give_waiting(fi, &fi->next);
	fi->estimated = fi->first.calls + fi->next.calls > 0;
}

/* Gives a gap's calls their time; so many of them began loops. */
void
gap_give(FastInstr *fi, double calls, double loops)
{
	extrapolate(fi, &fi->first, Min(loops, calls));
	extrapolate(fi, &fi->next, calls - Min(loops, calls));
}

/* What a call takes, as those tell that were timed so far. */
void
gap_note_priors(FastInstr *fi)
{
	double		calls = fi->core.ntuples + fi->core.tuplecount + fi->loops;
	double		startup = core_startup_so_far_ns(&fi->core);
	double		rest = core_time_so_far_ns(&fi->core) - startup;

	fi->first.prior_ns = startup / Max(fi->loops, 1);
	fi->next.prior_ns = Max(rest, 0) / Max(calls - fi->loops, 1);
}

/* Gives a call in a gap what the ticks in it tell. */
void
gap_met_by_tick(FastInstr *fi, uint64 start_ns)
{
	uint64		now = clock_ordered(fi->query->clock);
	uint64		last_ns;
	uint64		prev_ns;
	uint64		last;
	uint32		version;
	uint64		ns;

	/* ticks are a long time apart: this loop ends at once */
	do
	{
		version = ticker.version;
		pg_read_barrier();
		last_ns = ticker.last_ns;
		prev_ns = ticker.prev_ns;
		last = fi->query->clock == KIND_TSC ? ticker.last_tsc : last_ns;
		pg_read_barrier();
	} while ((version & 1) || version != ticker.version);

	ns = last_ns - start_ns;
	fi->ticks++;
	fi->ticks_ns += ns;

	/* The last tick came within the cap before the end of the call, or after it. */
	if ((int64) (now - last) <= (int64) fi->cap)
		last_ns = prev_ns;
	if ((int64) (last_ns - start_ns) > 0)
	{
		ns = last_ns - start_ns;
		core_add_ns(&fi->core, ns);
		fi->beyond_ns += ns;
		fi->beyond_variance += tick_variance(ns);
	}
}
