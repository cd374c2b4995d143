/*-------------------------------------------------------------------------
 *
 * install.c
 *	  puts our timing in the place of core's, node by node
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
#include "ticker.h"

/* What is ours is told by its memory context, and that by this identifier. */
static const char our_ident[] = "plan nodes";

/* What a tree is being searched for. */
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

/* What core puts into ExecProcNode: its address is not public, but to be seen. */
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

/* What we keep of a node; NULL if it is not ours. */
FastInstr *
fast_instr_of(PlanState *planstate)
{
	if (planstate == NULL || planstate->instrument == NULL ||
		GetMemoryChunkContext(planstate->instrument)->ident != our_ident)
		return NULL;
	return FAST_INSTR(planstate);
}

static bool
find_instr(PlanState *node, void *found)
{
	*(FastInstr **) found = fast_instr_of(node);
	return *(FastInstr **) found != NULL || planstate_tree_walker(node, find_instr, found);
}

/* That of the first node which is ours: the root may be another extension's. */
FastInstr *
fast_first_instr(QueryDesc *queryDesc)
{
	FastInstr  *found = NULL;

	if ((queryDesc->instrument_options & INSTRUMENT_TIMER) && queryDesc->planstate != NULL)
		find_instr(queryDesc->planstate, &found);
	return found;
}

/* Stack depth grows from node to node: once for each node is enough. */
static TupleTableSlot *
first_call(PlanState *node)
{
	check_stack_depth();
	node->ExecProcNode = FAST_INSTR(node)->wrapper;
	return node->ExecProcNode(node);
}

/*
 * Gather makes its parallel workers in the first call of a loop, and as it does
 * so core sets up parallel hash joins anew, with its own timing.
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

/*
 * Has the calls of a node go through another wrapper.  False if they cannot:
 * another extension has put itself in front and calls the one it found.
 */
bool
fast_replace_wrapper(FastInstr *fi, ExecProcNodeMtd wrapper)
{
	PlanState  *node = fi->node;

	if (node->ExecProcNode == fi->wrapper)
		node->ExecProcNode = wrapper;
	else if (node->ExecProcNode != gather_call)
		return false;
	fi->wrapper = wrapper;
	return true;
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

/* These time themselves with core's clock, once a call: there is little to gain. */
static bool
times_itself(PlanState *node)
{
	return IsA(node, HashState) || IsA(node, BitmapIndexScanState) ||
		IsA(node, BitmapAndState) || IsA(node, BitmapOrState);
}

/*
 * A node that is not as core left it belongs to another extension.  One that
 * can be asked asynchronously is started and stopped by core in ways that only
 * core knows.
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
	node->ExecProcNode =
		IsA(node, GatherState) || IsA(node, GatherMergeState) ? gather_call : first_call;
}

static bool
install_tree(PlanState *node, void *installing)
{
	check_stack_depth();
	install_node(node, installing);
	return planstate_tree_walker(node, install_tree, installing);
}

/* The method that can be had: tsc needs the counter, sampling a thread. */
static Method
possible(Method wanted)
{
	if (wanted == METHOD_TSC && !fast_tsc_usable())
		return METHOD_OFF;
	if (wanted == METHOD_SAMPLING && !ticker_ready())
	{
		ereport(WARNING,
				(errmsg("pg_fast_timing could not start a thread: the server times this statement")));
		return METHOD_OFF;
	}
	return wanted;
}

/* Times the nodes of a query that has been set up and was asked to be timed. */
void
fast_install(QueryDesc *queryDesc, Method wanted)
{
	Installing	installing;
	FastQuery  *query;
	Method		method = possible(wanted);
	bool		by_tsc = method != METHOD_SAMPLING && fast_tsc_usable();

	/* also when it is not trusted any more */
	fast_tsc_share();
	if (method == METHOD_OFF)
		return;
	installing.context = AllocSetContextCreate(queryDesc->estate->es_query_cxt,
											   "pg_fast_timing", ALLOCSET_SMALL_SIZES);
	MemoryContextSetIdentifier(installing.context, our_ident);
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

/* A parallel worker's hash joins are set up again between start and run. */
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
settle_tree(PlanState *node, void *unused)
{
	FastInstr  *fi = fast_instr_of(node);

	if (fi != NULL)
		fast_auto_settle(fi);
	return planstate_tree_walker(node, settle_tree, unused);
}

/* Nothing will be called any more. */
void
fast_finish(QueryDesc *queryDesc, const FastQuery *query)
{
	if (query != NULL && query->sampled > 0)
		settle_tree(queryDesc->planstate, NULL);
	fast_note_statement(queryDesc, query);
}
