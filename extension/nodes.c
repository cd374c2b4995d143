/*-------------------------------------------------------------------------
 *
 * nodes.c
 *	  the plan nodes of the queries that we time, and their instrumentation
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

/* Most plans have fewer nodes. */
#define INITIAL_NODES	4

/*
 * The planner does not assign larger ids than this: a million plan nodes take far
 * more than 100 MB.  A custom scan can give its children any id.
 */
#define MAX_IDS			(1024 * 1024)

static dlist_head queries = DLIST_STATIC_INIT(queries);

/* Argument of the walk through a plan tree. */
typedef struct Walk
{
	FastQuery  *query;
	int			allocated;		/* nodes for which there is memory */
	int			parent;			/* index of the node whose children are visited */
	Bitmapset  *subplans;		/* plan_node_id of the roots of subplans */
	Bitmapset  *visited;		/* subplans that have been visited */
} Walk;

/* Returns our state of a query, or NULL.  It is searched only if the root of the plan does not have our instrumentation. */
FastQuery *
pft_query_of(const QueryDesc *queryDesc)
{
	const FastInstr *root = queryDesc->planstate != NULL ? pft_instr_of(queryDesc->planstate) : NULL;
	dlist_iter	each;

	if (root != NULL)
		return root->query;
	if (queryDesc->estate->es_instrument != 0)
		dlist_foreach(each, &queries)
		{
			FastQuery  *query = dlist_container(FastQuery, link, each.cur);

			if (query->estate == queryDesc->estate)
				return query;
		}
	return NULL;
}

/* Returns whether core times a node in the node's own code, once per call.  Ours would not be cheaper. */
bool
pft_returns_all_at_once(const PlanState *node)
{
	return IsA(node, HashState) || IsA(node, BitmapIndexScanState) ||
		IsA(node, BitmapAndState) || IsA(node, BitmapOrState);
}

static TreeNode *
find_node(const FastQuery *query, const PlanState *node)
{
	for (int i = 0; i < query->node_count; i++)
		if (query->nodes[i].node == node)
			return &query->nodes[i];
	return NULL;
}

/* Returns our state of a plan node, or NULL. */
const TreeNode *
pft_tree_node_of(const PlanState *node)
{
	const FastInstr *fi = pft_instr_of(node);
	dlist_iter	each;

	if (fi != NULL)
		return fi->tree_node;
	dlist_foreach(each, &queries)
	{
		const FastQuery *query = dlist_container(FastQuery, link, each.cur);

		if (query->estate == node->state)
			return find_node(query, node);
	}
	return NULL;
}

static bool
has_usable_id(const PlanState *node)
{
	return node->plan->plan_node_id >= 0 && node->plan->plan_node_id < MAX_IDS;
}

/*
 * Stores a node and all nodes below it.  Several nodes can refer to one subplan:
 * the partitions of a table, or an index condition and its recheck.  The subplan
 * is stored once.
 */
static bool
store_nodes(PlanState *node, void *context)
{
	Walk	   *walk = context;
	FastQuery  *query = walk->query;
	int			id = node->plan->plan_node_id;
	int			caller = walk->parent;
	int			parent = caller;

	check_stack_depth();
	if (!has_usable_id(node))
	{
		/* Without a usable id, we cannot know whether we have visited the subplan.  The server times it. */
		if (list_member_ptr(query->estate->es_subplanstates, node))
			return false;
	}
	else if (bms_is_member(id, walk->subplans))
	{
		if (bms_is_member(id, walk->visited))
		{
			TreeNode   *subplan = find_node(query, node);

			subplan->readers = bms_add_member(subplan->readers, caller);
			return false;
		}
		walk->visited = bms_add_member(walk->visited, id);
		parent = -1;
	}
	if (query->node_count == walk->allocated)
	{
		walk->allocated *= 2;
		query->nodes = repalloc_huge(query->nodes, walk->allocated * sizeof(TreeNode));
	}
	walk->parent = query->node_count;
	query->nodes[query->node_count++] = (TreeNode) {.node = node, .parent = parent, .caller = caller,
		.readers = parent < 0 && caller >= 0 ? bms_make_singleton(caller) : NULL};
	planstate_tree_walker(node, store_nodes, walk);
	walk->parent = caller;
	return false;
}

/* Returns whether a node, or a node below it, needs the result of a subplan that its owner does not call itself. */
static bool
needs(const PlanState *node, const SubPlan *subplan)
{
	ListCell   *cell;

	if (subplan->subLinkType == CTE_SUBLINK)
		return IsA(node, CteScanState) && castNode(CteScan, node->plan)->ctePlanId == subplan->plan_id;
	foreach(cell, subplan->setParam)
		if (bms_is_member(lfirst_int(cell), node->plan->allParam))
			return true;
	return false;
}

/* A Gather node evaluates what its workers need. */
static bool
evaluates(const PlanState *node, const SubPlan *subplan)
{
	const Bitmapset *params = NULL;

	if (IsA(node, GatherState))
		params = castNode(Gather, node->plan)->initParam;
	if (IsA(node, GatherMergeState))
		params = castNode(GatherMerge, node->plan)->initParam;
	return subplan->setParam != NIL && bms_is_member(linitial_int(subplan->setParam), params);
}

/* Finds the lowest nodes that need the result of a subplan. */
static Bitmapset *
find_readers(const FastQuery *query, const SubPlan *subplan)
{
	Bitmapset  *readers = NULL;
	Bitmapset  *callers = NULL;

	for (int i = query->node_count - 1; i >= 0; i--)
	{
		int			reader = i;

		if (!needs(query->nodes[i].node, subplan))
			continue;
		if (query->nodes[i].caller >= 0)
			callers = bms_add_member(callers, query->nodes[i].caller);
		for (int outer = i; outer >= 0; outer = query->nodes[outer].parent)
			if (evaluates(query->nodes[outer].node, subplan))
				reader = outer;
		if (!bms_is_member(i, callers))
			readers = bms_add_member(readers, reader);
	}
	bms_free(callers);
	return readers;
}

/* Finds the nodes that call InitPlans and CTEs.  The node that owns them in the plan does not. */
static void
find_all_readers(FastQuery *query)
{
	for (int i = 0; i < query->node_count; i++)
	{
		ListCell   *cell;

		foreach(cell, query->nodes[i].node->initPlan)
		{
			SubPlanState *subplan = lfirst(cell);
			TreeNode   *root = find_node(query, subplan->planstate);

			if (root == NULL)
				continue;
			root->readers = find_readers(query, subplan->subplan);
			root->caller = bms_next_member(root->readers, -1);
		}
	}
}

static void
store_tree(FastQuery *query, QueryDesc *queryDesc)
{
	MemoryContext old = MemoryContextSwitchTo(query->estate->es_query_cxt);
	Walk		walk = {.query = query, .allocated = INITIAL_NODES, .parent = -1};
	ListCell   *cell;

	query->nodes = palloc(INITIAL_NODES * sizeof(TreeNode));
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
	if (queryDesc->estate->es_subplanstates != NIL && query->wants_waits)
		find_all_readers(query);
	MemoryContextSwitchTo(old);
}

/*
 * Called before the query's memory is released, even after an error.  Then the
 * state of its nodes may no longer exist.
 */
static void
release_query(void *released)
{
	FastQuery  *query = released;
	double		calls = 0;

	dlist_delete(&query->link);
	for (int i = 0; i < query->node_count; i++)
	{
		FastInstr  *fi = query->nodes[i].fi;

		if (fi == NULL)
			continue;
		calls += pft_calls(fi);
		pft_pool_return(fi);
	}
	pft_count(NODE_CALLS, query->uncounted ? 0 : (uint64) calls);
}

/* Adds a query to the queries that we time.  It is removed together with its memory context. */
static void
add_query(QueryDesc *queryDesc, FastQuery *query)
{
	query->estate = queryDesc->estate;
	query->queryid = queryDesc->plannedstmt->queryId;
	query->wants_waits = query->profiled || (query->typed && query->method == METHOD_AUTO && PG_VERSION_NUM >= 180000);
	store_tree(query, queryDesc);
	dlist_push_head(&queries, &query->link);
	query->release.func = release_query;
	query->release.arg = query;
	MemoryContextRegisterResetCallback(query->estate->es_query_cxt, &query->release);
}

static ExecProcNodeMtd core_first_call;
static ExecProcNodeMtd core_timed_call = NULL;

static TupleTableSlot *
unused_node(PlanState *node)
{
	return NULL;
}

/*
 * Finds the functions that core puts into ExecProcNode for the first call of a
 * node, and for later calls that it times.  They are not exported, so we let core
 * put them into a scratch node.
 */
static void
find_core_calls(void)
{
	CoreInstr	instrument = {0};
	PlanState	scratch = {.instrument = &instrument};

	ExecSetExecProcNode(&scratch, unused_node);
	core_first_call = scratch.ExecProcNode;
	/* This can raise an error: the stack is too deep. */
	core_first_call(&scratch);
	core_timed_call = scratch.ExecProcNode;
}

/* Returns whether core has initialized the workers of a Gather node, and nodes below it again. */
static bool
has_workers(const PlanState *node)
{
	return IsA(node, GatherState) ? castNode(GatherState, node)->pei != NULL : castNode(GatherMergeState, node)->pei != NULL;
}

/*
 * A node's first call.  It asks for exact calls.  The stack depth depends on the
 * node, so one check is enough.
 */
static TupleTableSlot *
first_call(PlanState *node)
{
	FastInstr  *fi = pft_instr_of(node);

	check_stack_depth();
	if (fi == NULL)
		node->ExecProcNode = core_first_call;
	else
	{
		if (fi->query->gather != NULL && has_workers(fi->query->gather))
			pft_reinstall(fi->query);
		fi->wrapper = pft_wrapper(fi);
		if (fi->phase == PHASE_EXACT && fi->granted == 0)
			pft_request_calls(fi);
		node->ExecProcNode = fi->entry != NULL ? fi->entry : fi->wrapper;
	}
	return node->ExecProcNode(node);
}

/*
 * A call of a Gather node.  Its first call in a loop starts parallel workers,
 * which do not report a ticker that stops, so the leader uses the ticker, too.
 * Core then initializes parallel hash joins again, with its own timing.  Ours is
 * installed again in the first call of a node below them, or after this call.  The
 * node can first execute an InitPlan that has a Gather node, too.
 */
static TupleTableSlot *
gather_call(PlanState *node)
{
	FastInstr  *fi = pft_instr_of(node);
	FastQuery  *query;
	PlanState  *outer;
	TupleTableSlot *slot;

	if (fi == NULL)
		return core_first_call(node);
	if (fi->core.running)
		return fi->wrapper(node);
	query = fi->query;
	outer = query->gather;
	query->gather = node;
	if (query->with_waits && query->parallel)
		pft_waits_collect(query);	/* of the loop before */
	if (query->profiled)
		node->state->es_instrument |= INSTRUMENT_TIMER | INSTRUMENT_BUFFERS;	/* for the workers */
	if (query->method == METHOD_AUTO)
		query->parallel = pft_ticker_start();
	slot = fi->wrapper(node);
	pft_reinstall(query);
	query->gather = outer;
	return slot;
}

/*
 * Installs our timing in a node.
 *
 * Some nodes are left out: nodes that another extension has changed, nodes with
 * asynchronous execution, whose timing core starts and stops itself, and nodes
 * that core times in their own code, once per call.
 */
static void
install_node(FastQuery *query, TreeNode *each)
{
	PlanState  *node = each->node;
	FastInstr  *fi = each->fi;

	if (node->instrument == NULL || node->async_capable || pft_returns_all_at_once(node) ||
		(node->ExecProcNode != core_first_call && (fi == NULL || node->ExecProcNode != core_timed_call)) ||
		CORE_USAGE(node->instrument)->need_timer != (query->method != METHOD_COUNT))
		return;
	if (fi == NULL)
	{
		fi = pft_pool_take();
		if (fi == NULL)
			return;
		fi->core = *node->instrument;
		fi->node = node;
		fi->query = query;
		fi->tree_node = each;
		fi->phase = query->method == METHOD_COUNT ? PHASE_UNTIMED : PHASE_EXACT;
		if (IsA(node, GatherState) || IsA(node, GatherMergeState))
			fi->entry = gather_call;
		each->fi = fi;
		node->instrument = &fi->core;
	}
	if (node->instrument == &fi->core)
		node->ExecProcNode = first_call;
}

/*
 * Installs our timing in all nodes.  Called again after core has initialized
 * nodes again: in the leader of parallel workers, and in a worker between start
 * and run.
 */
void
pft_reinstall(FastQuery *query)
{
	query->gather = NULL;
	for (int i = 0; i < query->node_count; i++)
		install_node(query, &query->nodes[i]);
}

/* Turns on times and buffers for the profile.  Core has created the instrumentation without them. */
static void
enable_instrumentation(const FastQuery *query)
{
	for (int i = 0; i < query->node_count; i++)
	{
		CoreInstr  *core = query->nodes[i].node->instrument;

		if (core == NULL)
			continue;
		CORE_USAGE(core)->need_timer = true;
		CORE_USAGE(core)->need_bufusage = true;
	}
}

/*
 * Replaces the server's instrumentation in an initialized query.  The caller has set
 * the query's method, and whether it is typed, profiled or uncounted.
 */
void
pft_install(QueryDesc *queryDesc, FastQuery *query)
{
	bool		has_timer = queryDesc->estate->es_instrument & INSTRUMENT_TIMER;

	if (!has_timer && !query->profiled)
		query->method = METHOD_COUNT;
	/* With auto, a parallel worker does not wait for the rate, because its leader waits for it. */
	else if (pft_tsc_usable(query->method == METHOD_TSC || !IsParallelWorker()))
		query->clock = KIND_TSC;
	else if (query->method == METHOD_TSC && has_timer)
	{
		/* Parallel workers do not count their leader's statement once more. */
		pft_count(WITHOUT_TSC, !IsParallelWorker());
		return;
	}
	else
		query->method = METHOD_AUTO;
	if (query->method != METHOD_COUNT)
		pft_clock_measure(query->clock);
	query->server_tsc = SERVER_TIMES_BY_TSC;
	if (core_timed_call == NULL)
		find_core_calls();
	add_query(queryDesc, query);
	if (query->profiled)
		enable_instrumentation(query);
	pft_reinstall(query);
}
