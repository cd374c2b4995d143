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

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "clock.h"
#include "estimate.h"
#include "install.h"
#include "methods.h"
#include "ticker.h"
#include "tsc.h"

/* Argument of the walk through a plan tree. */
typedef struct Installing
{
	FastQuery  *query;
	MemoryContext context;
} Installing;

static bool install_tree(PlanState *node, void *installing);

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

/* The first call of a node.  The stack depth depends on the node, so one check is enough. */
static TupleTableSlot *
first_call(PlanState *node)
{
	check_stack_depth();
	node->ExecProcNode = FAST_INSTR(node)->wrapper;
	return node->ExecProcNode(node);
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
	TupleTableSlot *slot = fi->wrapper(node);

	if (first)
	{
		Installing	installing = {fi->query, GetMemoryChunkContext(fi)};

		planstate_tree_walker(node, install_tree, &installing);
	}
	return slot;
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
		case METHOD_OFF:
			break;
	}
	return NULL;
}

/* Core times these nodes in their own code, only once per call.  There is nothing to gain. */
static bool
times_itself(PlanState *node)
{
	return IsA(node, HashState) || IsA(node, BitmapIndexScanState) ||
		IsA(node, BitmapAndState) || IsA(node, BitmapOrState);
}

/*
 * Installs our timing in a node.
 *
 * Left out: nodes that another extension has changed, and nodes with
 * asynchronous execution, whose timing core starts and stops itself.
 */
static void
install_node(PlanState *node, Installing *installing)
{
	FastInstr  *fi = fast_instr_of(node);

	if (node->instrument == NULL || node->async_capable || times_itself(node) ||
		node->ExecProcNode != core_first_call() || !CORE_WANTS_TIMER(node->instrument))
		return;
	if (fi == NULL)
	{
		fi = MemoryContextAllocZero(installing->context, sizeof(FastInstr));
		fi->core = *node->instrument;
		fi->node = node;
		fi->query = installing->query;
	}
	fi->wrapper = wrapper_for(fi);
	if (fi->wrapper == NULL)
		return;
	node->instrument = &fi->core;
	if (IsA(node, GatherState) || IsA(node, GatherMergeState))
		fi->gather_entry = gather_call;
	node->ExecProcNode = fi->gather_entry != NULL ? fi->gather_entry : first_call;
}

static bool
install_tree(PlanState *node, void *installing)
{
	check_stack_depth();
	install_node(node, installing);
	return planstate_tree_walker(node, install_tree, installing);
}

/* Returns the method that works here: tsc needs the counter, sampling needs a thread. */
static Method
effective_method(Method wanted)
{
	if (wanted == METHOD_TSC && !fast_tsc_usable())
		return METHOD_OFF;
	if (wanted == METHOD_SAMPLING && !ticker_ready())
	{
		ereport(WARNING,
				(errmsg("pg_fast_timing could not start a thread, so the server times this statement")));
		return METHOD_OFF;
	}
	return wanted;
}

/* Installs our timing in the nodes of an initialized query. */
void
fast_install(QueryDesc *queryDesc, Method wanted)
{
	Installing	installing;
	FastQuery  *query;
	Method		method = effective_method(wanted);
	bool		by_tsc = method != METHOD_SAMPLING && fast_tsc_usable();

	/* also if the counter is no longer trusted, so that workers do not use it */
	fast_tsc_share();
	if (method == METHOD_OFF)
		return;
	installing.context = AllocSetContextCreate(queryDesc->estate->es_query_cxt,
											   "pg_fast_timing", ALLOCSET_SMALL_SIZES);
	MemoryContextSetIdentifier(installing.context, fast_instr_ident);
	query = MemoryContextAllocZero(installing.context, sizeof(FastQuery));
	query->method = method;
	query->clock = by_tsc ? KIND_TSC : KIND_SYSTEM;
	query->server_tsc = server_times_by_tsc();
	query->period_ns = (double) ticker_period_ns();
	if (method == METHOD_AUTO)
		fast_clock_measure(query->clock);
	installing.query = query;
	install_tree(queryDesc->planstate, &installing);
}

/* Core initializes the hash joins of a parallel worker again between start and run. */
void
fast_reinstall(QueryDesc *queryDesc)
{
	FastInstr  *any = fast_first_instr(queryDesc);

	if (any != NULL)
	{
		Installing	installing = {any->query, GetMemoryChunkContext(any)};

		install_tree(queryDesc->planstate, &installing);
	}
}

static bool
finish_tree(PlanState *node, void *unused)
{
	FastInstr  *fi = fast_instr_of(node);

	if (fi != NULL)
		fast_auto_finish(fi);
	return planstate_tree_walker(node, finish_tree, unused);
}

/* Called after the last call of a node. */
void
fast_finish(QueryDesc *queryDesc, const FastQuery *query)
{
	if (query != NULL && query->sampled > 0)
		finish_tree(queryDesc->planstate, NULL);
	fast_note_statement(queryDesc, query);
}
