/*
 * A custom scan provider.  With custom.scans on, it puts a custom node above
 * the scan of each table.  custom.child_id is the plan_node_id of the node below it;
 * -1 keeps the planner's id.
 */
#include "postgres.h"

#include <limits.h>

#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/extensible.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;
void		_PG_init(void);

static set_rel_pathlist_hook_type prev_set_rel_pathlist;
static bool scans = false;
static int	child_id = -1;

static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	/* The macro copyObject() of 19 needs a newer compiler than Debian 12 has. */
	Plan	   *child = copyObjectImpl(linitial(plan->custom_plans));

	if (child_id != -1)
		child->plan_node_id = child_id;
	node->custom_ps = list_make1(ExecInitNode(child, estate, eflags));
}

static TupleTableSlot *
next(CustomScanState *node)
{
	TupleTableSlot *row = ExecProcNode(linitial(node->custom_ps));
	TupleTableSlot *scan = node->ss.ss_ScanTupleSlot;

	if (TupIsNull(row))
		return NULL;
	/* The test only counts rows, so no column is needed. */
	ExecStoreAllNullTuple(scan);
	/* A node must return its result type.  17.12 checks it. */
	if (node->ss.ps.ps_ProjInfo == NULL)
		return scan;
	node->ss.ps.ps_ExprContext->ecxt_scantuple = scan;
	return ExecProject(node->ss.ps.ps_ProjInfo);
}

static void
end(CustomScanState *node)
{
	ExecEndNode(linitial(node->custom_ps));
}

static void
rescan(CustomScanState *node)
{
	ExecReScan(linitial(node->custom_ps));
}

static const CustomExecMethods exec_methods = {
	.CustomName = "Counted",
	.BeginCustomScan = begin,
	.ExecCustomScan = next,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
};

static Node *
create_state(CustomScan *plan)
{
	CustomScanState *state = (CustomScanState *) newNode(sizeof(CustomScanState), T_CustomScanState);

	state->methods = &exec_methods;
	return (Node *) state;
}

static const CustomScanMethods scan_methods = {"Counted", create_state};

static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *plan = makeNode(CustomScan);

	plan->scan.plan.targetlist = tlist;
	plan->scan.scanrelid = rel->relid;
	plan->custom_plans = custom_plans;
	plan->methods = &scan_methods;
	return &plan->scan.plan;
}

static const CustomPathMethods path_methods = {"Counted", plan_path, NULL};

static void
set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	CustomPath *path;
	Path	   *below;

	if (prev_set_rel_pathlist)
		prev_set_rel_pathlist(root, rel, rti, rte);
	if (!scans || rte->rtekind != RTE_RELATION || rel->pathlist == NIL)
		return;
	below = linitial(rel->pathlist);
	path = makeNode(CustomPath);
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.param_info = below->param_info;
	path->path.rows = below->rows;
	path->path.startup_cost = below->startup_cost;
	path->path.total_cost = below->total_cost;
	path->custom_paths = list_make1(below);
	path->methods = &path_methods;
	rel->pathlist = list_make1(path);
	rel->partial_pathlist = NIL;
}

void
_PG_init(void)
{
	DefineCustomBoolVariable("custom.scans", "Scan tables with custom nodes.", NULL, &scans, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("custom.child_id", "The id of the node below a custom node.", NULL, &child_id, -1, INT_MIN, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	RegisterCustomScanMethods(&scan_methods);
	prev_set_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = set_rel_pathlist;
}
