/*-------------------------------------------------------------------------
 *
 * calls.c
 *	  counts the calls of plan nodes
 *
 * Each call returns a row, or it ends a loop.  Core counts the rows, and the wrappers
 * count the ends.  The sum is exact, and a call that returns a row costs nothing more.
 *
 * If parallel workers finish, core adds their rows to the leader's nodes.  Each worker
 * counts its own calls, so the leader subtracts these rows.  A worker can add
 * its calls only to shared counters.  Otherwise the leader takes the workers' rows and loops.
 *
 * A foreign data wrapper can add rows to a node's counts itself.  No call returns them.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "calls.h"
#include "statistics.h"
#include "tree.h"

/*
 * Returns how often core has added the workers' rows and loops to a node of the leader.
 *
 * Core visits a subplan once for each node that refers to it, so it can add the same
 * numbers several times.  We know our own loops of a node with a wrapper, so the other
 * loops are those of the workers.  Other nodes have been visited as often as their
 * parents.
 */
static double
times_added(const FastQuery *query, const TreeNode *each, double reported_loops)
{
	const FastInstr *fi = each->fi;
	double		times = each->parent >= 0 ? query->nodes[each->parent].times_added : 1;

	if (fi != NULL && fi->wrapper != NULL && reported_loops > 0)
	{
		double		own_loops = fi->loops - (fi->core.running ? 1 : 0);

		times = rint((fi->core.nloops - own_loops - each->worker_loops) / reported_loops);
	}
	return Max(times, 1);
}

static void
record_worker_rows(const FastQuery *query, TreeNode *each)
{
	const CoreWorkers *workers = each->node->worker_instrument;
	double		rows = 0;
	double		loops = 0;

	if (workers == NULL || workers == each->workers)
		return;
	for (int n = 0; n < workers->num_workers; n++)
	{
		rows += workers->instrument[n].ntuples;
		loops += workers->instrument[n].nloops;
	}
	each->workers = workers;
	each->times_added = times_added(query, each, loops);
	each->worker_rows += rows * each->times_added;
	each->worker_loops += loops * each->times_added;
	/* A worker, too, adds its numbers to its report as often as it visits the node. */
	each->calls_of_workers += (loops + (fast_instruments_itself(each->node) ? 0 : rows)) / each->times_added;
}

void
fast_calls_record_worker_rows(FastQuery *query)
{
	for (int i = 0; i < query->node_count; i++)
		record_worker_rows(query, &query->nodes[i]);
}

/* Reads only our own memory. */
static double
own_calls(const FastInstr *fi)
{
	return fi->core.ntuples - fi->tree->worker_rows - fi->tree->rows_without_call + fi->core.tuplecount + fi->ends;
}

double
fast_calls_of(FastInstr *fi)
{
	record_worker_rows(fi->query, fi->tree);
	return own_calls(fi);
}

/*
 * Returns the calls of a node that has no wrapper.  Hash and bitmap nodes return
 * all they have in one call.  For other nodes, this assumes that each loop ran to
 * its end.
 */
static double
calls_without_wrapper(const TreeNode *each)
{
	const CoreInstr *core = each->node->instrument;
	double		loops;

	if (core == NULL)
		return 0;
	loops = core->nloops - each->worker_loops + (core->running ? 1 : 0);
	return fast_instruments_itself(each->node) ? loops :
		loops + core->ntuples - each->worker_rows + core->tuplecount;
}

static void
add_calls(TreeNode *each, double calls)
{
	if (calls > each->counted)
	{
		fast_statistics_add(NODE_CALLS, (uint64) (calls - each->counted));
		each->counted = calls;
	}
}

void
fast_calls_add(FastQuery *query)
{
	fast_calls_record_worker_rows(query);
	for (int i = 0; i < query->node_count; i++)
	{
		TreeNode   *each = &query->nodes[i];
		bool		wrapped = each->fi != NULL && each->fi->wrapper != NULL;

		add_calls(each, (fast_statistics_are_shared() ? 0 : each->calls_of_workers) +
				  (wrapped ? own_calls(each->fi) : calls_without_wrapper(each)));
	}
}

/* After an error, only our own memory is certain to exist. */
static void
add_at_release(void *released)
{
	FastQuery  *query = released;

	for (int i = 0; i < query->node_count; i++)
	{
		TreeNode   *each = &query->nodes[i];

		if (each->fi != NULL && each->fi->wrapper != NULL)
			add_calls(each, own_calls(each->fi));
	}
}

void
fast_calls_add_at_release(FastQuery *query)
{
	query->count.func = add_at_release;
	query->count.arg = query;
	MemoryContextRegisterResetCallback(query->context, &query->count);
}
