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
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "calls.h"
#include "install.h"
#include "statistics.h"
#include "tree.h"

static void
record_worker_rows(TreeNode *each)
{
	const CoreWorkers *workers = each->node->worker_instrument;

	if (workers == NULL || workers == each->workers)
		return;
	for (int n = 0; n < workers->num_workers; n++)
	{
		each->worker_rows += workers->instrument[n].ntuples;
		each->worker_loops += workers->instrument[n].nloops;
	}
	each->workers = workers;
}

void
fast_calls_record_workers(FastQuery *query)
{
	for (int i = 0; i < query->node_count; i++)
		record_worker_rows(&query->nodes[i]);
}

/* The wrapper adds all changed rows to the node's rows, so they do not show the calls. */
bool
fast_modifies_remotely(const PlanState *node)
{
	const ForeignScanState *scan = (const ForeignScanState *) node;

	return IsA(node, ForeignScanState) && ((const ForeignScan *) node->plan)->operation != CMD_SELECT &&
		scan->resultRelInfo != NULL && scan->resultRelInfo->ri_projectReturning == NULL;
}

/* Reads no memory that can be released before the query's own. */
static double
own_calls(const FastInstr *fi)
{
	if (fi->modifies_remotely)
		return fi->ends;
	return fi->core.ntuples - fi->tree->worker_rows + fi->core.tuplecount + fi->ends;
}

double
fast_calls_of(FastInstr *fi)
{
	record_worker_rows(fi->tree);
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

/* Returns the calls in workers that cannot count them. */
static double
calls_of_workers(const TreeNode *each)
{
	if (fast_statistics_are_shared())
		return 0;
	return each->worker_loops + (fast_instruments_itself(each->node) ? 0 : each->worker_rows);
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
	fast_calls_record_workers(query);
	for (int i = 0; i < query->node_count; i++)
	{
		TreeNode   *each = &query->nodes[i];
		bool		wrapped = each->fi != NULL && each->fi->wrapper != NULL;

		add_calls(each, calls_of_workers(each) +
				  (wrapped ? own_calls(each->fi) : calls_without_wrapper(each)));
	}
}

void
fast_calls_add_after_error(FastQuery *query)
{
	for (int i = 0; i < query->node_count; i++)
	{
		TreeNode   *each = &query->nodes[i];

		if (each->fi != NULL && each->fi->wrapper != NULL)
			add_calls(each, own_calls(each->fi));
	}
}
