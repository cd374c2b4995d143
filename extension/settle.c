/*-------------------------------------------------------------------------
 *
 * settle.c
 *	  makes the times of a finished query consistent
 *
 * The times of nodes are estimated separately, so an estimate can be larger than
 * that of its caller, or than the time of the whole query.  Exact times can differ
 * by the errors of their clocks.  So there are two steps:
 *
 * 1. From the leaves to the root: a node takes at least as long as each of its
 *	  children with an exact time.
 * 2. From the root to the leaves: a node takes at most as long as its parent.
 *
 * A subplan has no parent, because several nodes can call it.  The root of the plan
 * takes its place.
 *
 * This changes only nodes that we time.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "estimate.h"
#include "settle.h"
#include "tree.h"

/* What is known about a node's time. */
typedef struct Bounds
{
	FastInstr  *fi;				/* NULL: we do not time the node */
	int			outer;			/* index of the node whose calls contain all calls
								 * of this node; -1: none */
	CoreTime	low;			/* largest exact time below the node */
	CoreTime	high;			/* upper bound for the node's children */
} Bounds;

/*
 * A node runs within the calls of its parent.  But a custom scan can call its
 * children at any time.  Subplans run within the calls of the plan's root.  But
 * data-modifying subplans can run after it.  Below a Gather node, times are sums over
 * processes, so no node outside contains them.
 */
int
fast_outer_node(const FastQuery *query, int i)
{
	const TreeNode *each = &query->nodes[i];
	bool		in_workers = each->node->worker_instrument != NULL;
	const PlanState *parent;

	if (each->parent < 0)
		return i > 0 && !in_workers && query->estate->es_auxmodifytables == NIL ? 0 : -1;
	parent = query->nodes[each->parent].node;
	return !IsA(parent, CustomScanState) &&
		(!in_workers || parent->worker_instrument != NULL) ? each->parent : -1;
}

/*
 * Changes a node's time.  `outer` is NULL, or the node whose time is the reason for
 * the change.  Either time can be wrong, so the change is added to both errors.
 */
static void
set_total(FastInstr *fi, CoreTime total, FastInstr *outer)
{
	double		before_ns = core_total_ns(&fi->core);
	double		change_ns;

	CORE_TOTAL(&fi->core) = total;
	change_ns = core_total_ns(&fi->core) - before_ns;
	fi->variance += change_ns * change_ns;
	if (outer != NULL)
		outer->variance += change_ns * change_ns;
}

/* Step 1, for one node. */
static void
raise_to_children(const FastQuery *query, Bounds *bounds, int i)
{
	const PlanState *node = query->nodes[i].node;
	CoreInstr  *core = node->instrument;
	Bounds	   *own = &bounds[i];
	bool		exact = true;

	own->fi = fast_instr_of(node);
	own->outer = fast_outer_node(query, i);
	if (core == NULL)
		return;
	if (own->fi != NULL)
	{
		InstrEndLoop(core);
		set_total(own->fi, Max(CORE_TOTAL(core), own->low), NULL);
		exact = fast_estimate(own->fi).exact;
	}
	if (own->outer >= 0)
	{
		CoreTime   *low = &bounds[own->outer].low;

		*low = Max(*low, exact ? core_total_so_far(core) : own->low);
	}
}

/* Returns the upper bound of a node's time. */
static CoreTime
upper_bound(const FastQuery *query, const Bounds *bounds, int i)
{
	const TreeNode *each = &query->nodes[i];

	if (bounds[i].outer >= 0)
		return bounds[bounds[i].outer].high;
	if (each->parent >= 0 || each->node->worker_instrument != NULL)
		return CORE_TIME_MAX;
	return query->elapsed_ns > 0 ? core_time_of_ns(query->elapsed_ns) : CORE_TIME_MAX;
}

/* Step 2, for one node. */
static void
limit_to_parent(const FastQuery *query, Bounds *bounds, int i)
{
	CoreInstr  *core = query->nodes[i].node->instrument;
	Bounds	   *own = &bounds[i];

	own->high = upper_bound(query, bounds, i);
	if (core == NULL)
		return;
	if (own->fi != NULL)
	{
		set_total(own->fi, Max(Min(CORE_TOTAL(core), own->high), 0),
				  own->outer >= 0 ? bounds[own->outer].fi : NULL);
		CORE_STARTUP(core) = Max(Min(CORE_STARTUP(core), CORE_TOTAL(core)), 0);
	}
	/* A node that was not timed, for example because of another extension, gives no bound. */
	if (core->nloops > 0 || core->running)
		own->high = Min(own->high, core_total_so_far(core));
}

void
fast_settle(FastQuery *query)
{
	/* A parent comes before its children. */
	Bounds	   *bounds = MemoryContextAllocZero(query->context, query->node_count * sizeof(Bounds));

	for (int i = query->node_count - 1; i >= 0; i--)
		raise_to_children(query, bounds, i);
	for (int i = 0; i < query->node_count; i++)
		limit_to_parent(query, bounds, i);
	pfree(bounds);
#ifdef FAST_TIMING_CHECK
	fast_check_times(query);
#endif
}
