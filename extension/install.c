/*-------------------------------------------------------------------------
 *
 * install.c
 *	  replaces core's timing of plan nodes by ours
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "miscadmin.h"

#include "calls.h"
#include "clock.h"
#include "estimate.h"
#include "install.h"
#include "methods.h"
#include "settings.h"
#include "settle.h"
#include "statistics.h"
#include "ticker.h"
#include "tree.h"
#include "tsc.h"
#include "tsc_share.h"

static TupleTableSlot *
unused_node(PlanState *node)
{
	return NULL;
}

/*
 * Returns the function that core puts into ExecProcNode for the first call.  It
 * is not exported, so we let core put it into a scratch node.
 */
static ExecProcNodeMtd
core_first_call(void)
{
	static ExecProcNodeMtd first_call = NULL;

	if (first_call == NULL)
	{
		PlanState	scratch = {0};

		ExecSetExecProcNode(&scratch, unused_node);
		first_call = scratch.ExecProcNode;
	}
	return first_call;
}

/*
 * A node's first call in a run.  The stack depth depends on the node, so one check
 * is enough.  Another extension can have replaced the instrumentation; then the
 * server times the node from now on.
 */
static TupleTableSlot *
first_call(PlanState *node)
{
	FastInstr  *fi = fast_instr_created(fast_query_of(node->state), node);

	check_stack_depth();
	if (fi != NULL && node->instrument != &fi->core)
		fi->wrapper = NULL;
	if (fi == NULL || fi->wrapper == NULL)
		node->ExecProcNode = core_first_call();
	else
		node->ExecProcNode = fi->entry != NULL ? fi->entry : fi->wrapper;
	return node->ExecProcNode(node);
}

/* Called before a Gather node starts parallel workers. */
static void
before_workers(FastQuery *query)
{
	fast_calls_record_worker_rows(query);
	if (query->method == METHOD_AUTO || query->method == METHOD_SAMPLING)
	{
		/* Workers do not report a ticker that stops, so the leader uses it, too. */
		query->parallel = true;
		ticker_start();
	}
}

/*
 * A call of a Gather node.  Its first call in a loop starts parallel workers.
 * Core then initializes parallel hash joins again, with its own timing, so ours
 * must be installed again.
 */
static TupleTableSlot *
gather_call(PlanState *node)
{
	FastInstr  *fi = FAST_INSTR(node);
	bool		first = !fi->core.running;
	TupleTableSlot *slot;

	if (first)
		before_workers(fi->query);
	slot = fi->wrapper(node);
	if (first)
		fast_reinstall(fi->query);
	return slot;
}

/*
 * A call of a foreign scan that executes an UPDATE or DELETE.  A foreign data wrapper
 * like postgres_fdw adds all rows in one call, and these rows are not calls.
 */
static TupleTableSlot *
modify_call(PlanState *node)
{
	FastInstr  *fi = FAST_INSTR(node);
	double		before = fi->core.tuplecount;
	TupleTableSlot *slot = fi->wrapper(node);

	fi->tree->rows_without_call += fi->core.tuplecount - before - (TupIsNull(slot) ? 0 : 1);
	return slot;
}

/* Returns the function that must call the wrapper of a node, or NULL. */
static ExecProcNodeMtd
entry_for(const PlanState *node)
{
	if (IsA(node, GatherState) || IsA(node, GatherMergeState))
		return gather_call;
	if (IsA(node, ForeignScanState) && ((ForeignScan *) node->plan)->operation != CMD_SELECT)
		return modify_call;
	return NULL;
}

static ExecProcNodeMtd
wrapper_for(const FastInstr *fi)
{
	switch (fi->query->method)
	{
		case METHOD_TSC:
			return fast_tsc_wrapper(fi);
		case METHOD_SAMPLING:
			return fast_sampling_wrapper(fi);
		case METHOD_AUTO:
			return fast_auto_wrapper(fi);
		case METHOD_COUNT:
			return fast_count_wrapper(fi);
		case METHOD_OFF:
			break;
	}
	return NULL;
}

/*
 * Installs our timing in a node.
 *
 * Two kinds of nodes are left out: nodes that another extension has changed, and
 * nodes with asynchronous execution, whose timing core starts and stops itself.
 */
static void
install_node(FastQuery *query, TreeNode *each)
{
	PlanState  *node = each->node;
	FastInstr  *fi = fast_instr_of(node);

	if (node->instrument == NULL || node->async_capable || fast_instruments_itself(node) ||
		node->ExecProcNode != core_first_call() ||
		CORE_WANTS_TIMER(node->instrument) != (query->method != METHOD_COUNT))
		return;
	if (fi == NULL)
		fi = fast_instr_create(query, each);
	if (fi == NULL)
		return;
	fi->wrapper = wrapper_for(fi);
	if (fi->wrapper == NULL)
		return;
	node->instrument = &fi->core;
	fi->entry = entry_for(node);
	node->ExecProcNode = first_call;
}

/*
 * Installs our timing in all nodes.  Called again after core has initialized
 * nodes again: in the leader of parallel workers, and in a worker between start
 * and run.
 */
void
fast_reinstall(FastQuery *query)
{
	for (int i = 0; i < query->node_count; i++)
		install_node(query, &query->nodes[i]);
}

/*
 * Called before each run of a query: the wrappers do not check whether a node still
 * has our instrumentation, so the node's first call in the run does.
 *
 * If another extension has put a function in front of the wrapper, that function
 * continues to call the wrapper.  Then the node gets our instrumentation back.
 */
void
fast_recheck(FastQuery *query)
{
	for (int i = 0; i < query->node_count; i++)
	{
		PlanState  *node = query->nodes[i].node;
		FastInstr  *fi = fast_instr_created(query, node);

		if (fi == NULL || fi->wrapper == NULL)
			continue;
		if (node->ExecProcNode == fi->wrapper || node->ExecProcNode == fi->entry)
			node->ExecProcNode = first_call;
		else if (node->ExecProcNode != first_call && fi->loops > 0)
			node->instrument = &fi->core;
	}
}

/* Warns once in a session, and not again in its parallel workers. */
static void
warn_of_no_ticker(void)
{
	static bool warned = false;

	if (warned || IsParallelWorker())
		return;
	if (fast_ticker == TICKER_NONE)
		ereport(WARNING,
				(errmsg("pg_fast_timing.ticker is \"none\"; the server's own timing is used"),
				 errhint("Use the method \"auto\", or another ticker.")));
	else
		ereport(WARNING,
				(errmsg("pg_fast_timing could not create a thread; the server's own timing is used for now: %m"),
				 errhint("Increase the limit of processes, or use the method \"auto\".")));
	warned = true;
}

/* Returns the method that works here: tsc needs the counter, sampling needs a ticking clock. */
static Method
effective_method(Method wanted)
{
	if (wanted == METHOD_TSC && !fast_tsc_usable())
	{
		fast_statistics_add(WITHOUT_TSC, 1);
		return METHOD_OFF;
	}
	if (wanted == METHOD_SAMPLING && !ticker_ready())
	{
		fast_statistics_add(WITHOUT_TICKS, 1);
		warn_of_no_ticker();
		return METHOD_OFF;
	}
	return wanted;
}

/* Counts the calls of an initialized query. */
static void
install_counting(QueryDesc *queryDesc)
{
	FastQuery  *query = fast_query_create(queryDesc);

	fast_calls_add_at_release(query);
	query->method = METHOD_COUNT;
	fast_reinstall(query);
}

/* Times the calls of an initialized query. */
static void
install_timing(QueryDesc *queryDesc, Method wanted)
{
	FastQuery  *query;
	Method		method = effective_method(wanted);
	bool		by_tsc = method != METHOD_SAMPLING && fast_tsc_usable();

	/* Called even if the counter is no longer trusted, so that workers do not use it. */
	fast_tsc_share();
	if (method == METHOD_OFF)
		return;
	query = fast_query_create(queryDesc);
	fast_calls_add_at_release(query);
	query->method = method;
	query->clock = by_tsc ? KIND_TSC : KIND_SYSTEM;
	query->server_tsc = server_times_by_tsc();
	ticker_note_period(query);
	if (method == METHOD_AUTO)
		fast_clock_measure(query->clock);
	fast_reinstall(query);
}

void
fast_install(QueryDesc *queryDesc, Method method)
{
	if (queryDesc->estate->es_instrument & INSTRUMENT_TIMER)
		install_timing(queryDesc, method);
	else
		install_counting(queryDesc);
}

/* Called after the last call of a node.  `query` is NULL if the server timed the statement. */
void
fast_finish(QueryDesc *queryDesc, FastQuery *query)
{
	fast_last_statement.just_finished = false;
	if (query != NULL && query->method == METHOD_COUNT)
		return;
	for (int i = 0; query != NULL && i < query->node_count; i++)
	{
		FastInstr  *fi = fast_instr_of(query->nodes[i].node);

		if (fi != NULL)
			fast_auto_finish(fi);
	}
	if (query != NULL)
		fast_settle(query);
	fast_note_statement(queryDesc, query);
}
