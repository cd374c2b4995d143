/*-------------------------------------------------------------------------
 *
 * tree.c
 *	  the plan nodes of the queries that we time
 *
 * Several nodes can refer to one subplan: the partitions of a table, or an index
 * condition and its recheck.  planstate_tree_walker() visits the subplan for each
 * of them.  So we walk through the tree only once, and store each node once.
 *
 * Another extension can replace a node's instrumentation with its own.  We do not
 * know how it allocates memory, so we recognize ours only by its address.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "tree.h"

/* Most plans have fewer nodes. */
#define INITIAL_NODES	16

/*
 * The planner does not assign larger ids than this: a million plan nodes take far
 * more than 100 MB.  It numbers the nodes of a statement from 0, including nodes
 * that it removes later, so an id can be larger than the number of nodes.  With
 * this limit, our array takes at most 8 MB.
 */
#define MAX_IDS			(1024 * 1024)

/* The last started query comes first. */
static FastQuery *queries = NULL;

/* Argument of the walk through a plan tree. */
typedef struct Walk
{
	FastQuery  *query;
	int			allocated;		/* nodes for which there is memory */
	int			parent;			/* index of the node whose children are visited */
	Bitmapset  *subplans;		/* plan_node_id of the roots of subplans */
	Bitmapset  *visited;		/* subplans that have been visited */
} Walk;

/* Returns whether a node's id can be an index.  A custom scan can give its children any id. */
static bool
has_usable_id(const PlanState *node)
{
	return node->plan->plan_node_id >= 0 && node->plan->plan_node_id < MAX_IDS;
}

static void
append_node(Walk *walk, PlanState *node, int parent)
{
	FastQuery  *query = walk->query;

	if (query->node_count == walk->allocated)
	{
		walk->allocated *= 2;
		query->nodes = repalloc(query->nodes, walk->allocated * sizeof(TreeNode));
	}
	query->nodes[query->node_count++] = (TreeNode) {.node = node, .parent = parent};
	if (has_usable_id(node))
		query->ids = Max(query->ids, node->plan->plan_node_id + 1);
}

/* Stores a node and all nodes below it, unless this was done before. */
static bool
store_nodes(PlanState *node, void *context)
{
	Walk	   *walk = context;
	int			id = node->plan->plan_node_id;
	int			caller = walk->parent;
	int			parent = caller;

	check_stack_depth();
	if (!has_usable_id(node))
	{
		/* Without a usable id, we cannot know whether we have visited the subplan.  The server times it. */
		if (list_member_ptr(walk->query->estate->es_subplanstates, node))
			return false;
	}
	else if (bms_is_member(id, walk->subplans))
	{
		if (bms_is_member(id, walk->visited))
			return false;
		walk->visited = bms_add_member(walk->visited, id);
		parent = -1;
	}
	walk->parent = walk->query->node_count;
	append_node(walk, node, parent);
	planstate_tree_walker(node, store_nodes, walk);
	walk->parent = caller;
	return false;
}

static void
store_tree(FastQuery *query, QueryDesc *queryDesc)
{
	Walk		walk = {.query = query, .allocated = INITIAL_NODES, .parent = -1};
	ListCell   *cell;

	query->nodes = MemoryContextAlloc(query->context, INITIAL_NODES * sizeof(TreeNode));
	foreach(cell, queryDesc->estate->es_subplanstates)
	{
		PlanState  *subplan = lfirst(cell);

		/* A parallel worker does not initialize all subplans. */
		if (subplan != NULL && has_usable_id(subplan))
			walk.subplans = bms_add_member(walk.subplans, subplan->plan->plan_node_id);
	}
	store_nodes(queryDesc->planstate, &walk);
	bms_free(walk.subplans);
	bms_free(walk.visited);
	query->instrs = MemoryContextAllocZero(query->context, query->ids * sizeof(FastInstr *));
}

bool
fast_instruments_itself(const PlanState *node)
{
	return IsA(node, HashState) || IsA(node, BitmapIndexScanState) ||
		IsA(node, BitmapAndState) || IsA(node, BitmapOrState);
}

/* Called when the query's memory is released, even after an error. */
static void
forget_query(void *query)
{
	FastQuery **link = &queries;

	while (*link != query)
		link = &(*link)->next;
	*link = (*link)->next;
}

FastQuery *
fast_query_create(QueryDesc *queryDesc)
{
	MemoryContext context = AllocSetContextCreate(queryDesc->estate->es_query_cxt,
												  "pg_fast_timing", ALLOCSET_SMALL_SIZES);
	FastQuery  *query = MemoryContextAllocZero(context, sizeof(FastQuery));

	query->context = context;
	query->estate = queryDesc->estate;
	store_tree(query, queryDesc);
	query->next = queries;
	queries = query;
	query->forget.func = forget_query;
	query->forget.arg = query;
	MemoryContextRegisterResetCallback(context, &query->forget);
	return query;
}

FastQuery *
fast_query_of(const EState *estate)
{
	FastQuery  *query = queries;

	while (query != NULL && query->estate != estate)
		query = query->next;
	return query;
}

FastInstr *
fast_instr_created(const FastQuery *query, const PlanState *planstate)
{
	int			id = planstate->plan->plan_node_id;
	FastInstr  *fi = query != NULL && id >= 0 && id < query->ids ? query->instrs[id] : NULL;

	return fi != NULL && fi->node == planstate ? fi : NULL;
}

FastInstr *
fast_instr_of(const PlanState *planstate)
{
	FastInstr  *fi = fast_instr_created(fast_query_of(planstate->state), planstate);

	return fi != NULL && planstate->instrument == &fi->core ? fi : NULL;
}

FastInstr *
fast_instr_create(FastQuery *query, TreeNode *each)
{
	int			id = each->node->plan->plan_node_id;
	FastInstr  *fi;

	/* A custom scan can create plan nodes without ids of their own. */
	if (id < 0 || id >= query->ids || query->instrs[id] != NULL)
		return NULL;
	fi = MemoryContextAllocZero(query->context, sizeof(FastInstr));
	fi->core = *each->node->instrument;
	fi->node = each->node;
	fi->tree = each;
	fi->query = query;
	query->instrs[id] = fi;
	each->fi = fi;
	return fi;
}
