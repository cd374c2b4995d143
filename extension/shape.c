/*-------------------------------------------------------------------------
 *
 * shape.c
 *	  names of plan nodes, and the identity of a plan
 *
 * The identity is a hash of the shape: kinds of nodes, relations, indexes and join
 * types, by their names.  It contains no constant, no object identifier and no
 * number that a version of PostgreSQL assigns.  So it is the same after a restart,
 * after dump and restore, and on all versions.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"
#include "utils/rel.h"

/* A kind of node. */
typedef struct Kind
{
	NodeTag		tag;
	const char *name;
	bool		has_relation;	/* its state is a ScanState with an open relation */
} Kind;

static const Kind kinds[] = {
	{T_SeqScan, "Seq Scan", true},
	{T_IndexScan, "Index Scan", true},
	{T_IndexOnlyScan, "Index Only Scan", true},
	{T_BitmapHeapScan, "Bitmap Heap Scan", true},
	{T_BitmapIndexScan, "Bitmap Index Scan", false},
	{T_NestLoop, "Nested Loop", false},
	{T_HashJoin, "Hash", false},
	{T_Hash, "Hash", false},
	{T_Sort, "Sort", false},
	{T_Agg, "Aggregate", false},
	{T_Limit, "Limit", false},
	{T_Result, "Result", false},
	{T_ModifyTable, "Modify", false},
	{T_Append, "Append", false},
	{T_MergeAppend, "Merge Append", false},
	{T_MergeJoin, "Merge", false},
	{T_Material, "Materialize", false},
	{T_Memoize, "Memoize", false},
	{T_IncrementalSort, "Incremental Sort", false},
	{T_Group, "Group", false},
	{T_WindowAgg, "WindowAgg", false},
	{T_Unique, "Unique", false},
	{T_Gather, "Gather", false},
	{T_GatherMerge, "Gather Merge", false},
	{T_SetOp, "SetOp", false},
	{T_LockRows, "LockRows", false},
	{T_ProjectSet, "ProjectSet", false},
	{T_RecursiveUnion, "Recursive Union", false},
	{T_BitmapAnd, "BitmapAnd", false},
	{T_BitmapOr, "BitmapOr", false},
	{T_SampleScan, "Sample Scan", true},
	{T_TidScan, "Tid Scan", true},
	{T_TidRangeScan, "Tid Range Scan", true},
	{T_SubqueryScan, "Subquery Scan", false},
	{T_FunctionScan, "Function Scan", false},
	{T_ValuesScan, "Values Scan", false},
	{T_TableFuncScan, "Table Function Scan", false},
	{T_CteScan, "CTE Scan", false},
	{T_NamedTuplestoreScan, "Named Tuplestore Scan", false},
	{T_WorkTableScan, "WorkTable Scan", false},
	{T_ForeignScan, "Foreign Scan", true},
	{T_CustomScan, "Custom Scan", true},
};

static const Kind other = {T_Invalid, "Other", false};

static const char *const operations[] = {
	[CMD_INSERT] = "Insert", [CMD_UPDATE] = "Update", [CMD_DELETE] = "Delete", [CMD_MERGE] = "Merge"
};

static const char *const joins[] = {
	[JOIN_INNER] = " Join", [JOIN_LEFT] = " Left Join", [JOIN_FULL] = " Full Join", [JOIN_RIGHT] = " Right Join",
	[JOIN_SEMI] = " Semi Join", [JOIN_ANTI] = " Anti Join",
#if PG_VERSION_NUM >= 160000
	[JOIN_RIGHT_ANTI] = " Right Anti Join",
#endif
#if PG_VERSION_NUM >= 180000
	[JOIN_RIGHT_SEMI] = " Right Semi Join",
#endif
};

static const char *const aggregates[] = {
	[AGG_PLAIN] = "Aggregate", [AGG_SORTED] = "GroupAggregate", [AGG_HASHED] = "HashAggregate", [AGG_MIXED] = "MixedAggregate"
};

static const Kind *
kind_of(const Plan *plan)
{
	for (int i = 0; i < lengthof(kinds); i++)
		if (kinds[i].tag == nodeTag(plan))
			return &kinds[i];
	return &other;
}

/* The words of EXPLAIN for a node: "Parallel ", "Hash", " Left Join". */
typedef struct Words
{
	const char *before;
	const char *kind;
	const char *after;
} Words;

static Words
words_of(const Plan *plan)
{
	Words		words = {plan->parallel_aware ? "Parallel " : "", kind_of(plan)->name, ""};

	if (IsA(plan, NestLoop) || IsA(plan, MergeJoin) || IsA(plan, HashJoin))
	{
		JoinType	type = ((const Join *) plan)->jointype;

		words.after = IsA(plan, NestLoop) && type == JOIN_INNER ? "" : joins[type];
	}
	if (IsA(plan, Agg))
	{
		const Agg  *agg = (const Agg *) plan;

		words.before = DO_AGGSPLIT_SKIPFINAL(agg->aggsplit) ? "Partial " : DO_AGGSPLIT_COMBINE(agg->aggsplit) ? "Finalize " : "";
		words.kind = aggregates[agg->aggstrategy];
	}
	if (IsA(plan, CustomScan))
		words = (Words) {"Custom Scan (", ((const CustomScan *) plan)->methods->CustomName, ")"};
	if (IsA(plan, ModifyTable))
		words.kind = operations[((const ModifyTable *) plan)->operation];
	return words;
}

/* Returns the relation that a node reads or changes, or NULL. */
static Relation
relation_of(const PlanState *node)
{
	if (IsA(node, ModifyTableState))
		return castNode(ModifyTableState, node)->rootResultRelInfo->ri_RelationDesc;
	return kind_of(node->plan)->has_relation ? ((const ScanState *) node)->ss_currentRelation : NULL;
}

/* Returns the index that a node reads, or NULL. */
static Relation
index_of(const PlanState *node)
{
	switch (nodeTag(node))
	{
		case T_IndexScanState:
			return ((const IndexScanState *) node)->iss_RelationDesc;
		case T_IndexOnlyScanState:
			return ((const IndexOnlyScanState *) node)->ioss_RelationDesc;
		case T_BitmapIndexScanState:
			return ((const BitmapIndexScanState *) node)->biss_RelationDesc;
		default:
			return NULL;
	}
}

static const char *
name_of(Relation relation)
{
	return relation != NULL ? RelationGetRelationName(relation) : "";
}

/* Describes a node.  The query is still open. */
NodeShape
pft_shape_of(const PlanState *node)
{
	NodeShape	shape = {0};
	Words		words = words_of(node->plan);

	snprintf(shape.kind, KIND_LENGTH, "%s%s%s", words.before, words.kind, words.after);
	snprintf(shape.relation, NAMEDATALEN, "%s", name_of(relation_of(node)));
	snprintf(shape.index, NAMEDATALEN, "%s", name_of(index_of(node)));
	return shape;
}

static uint64
add_text(uint64 hash, const char *text)
{
	return text[0] == '\0' ? hash : hash_bytes_extended((const unsigned char *) text, strlen(text), hash);
}

static uint64
add_words(uint64 hash, int depth, const Plan *plan)
{
	Words		words = words_of(plan);

	return add_text(add_text(add_text(hash_combine64(hash, depth), words.before), words.kind), words.after);
}

static uint64 add_kinds(uint64 hash, int depth, const Plan *plan);

static uint64
add_kinds_of_list(uint64 hash, int depth, const List *plans)
{
	ListCell   *cell;

	foreach(cell, plans)
		hash = add_kinds(hash, depth, lfirst(cell));
	return hash;
}

/* Adds the kinds of all nodes of a plan, without names. */
static uint64
add_kinds(uint64 hash, int depth, const Plan *plan)
{
	if (plan == NULL)
		return hash;
	check_stack_depth();
	hash = add_words(hash, depth, plan);
	hash = add_kinds(add_kinds(hash, depth + 1, plan->lefttree), depth + 1, plan->righttree);
	if (IsA(plan, Append))
		hash = add_kinds_of_list(hash, depth + 1, ((const Append *) plan)->appendplans);
	if (IsA(plan, MergeAppend))
		hash = add_kinds_of_list(hash, depth + 1, ((const MergeAppend *) plan)->mergeplans);
	if (IsA(plan, SubqueryScan))
		hash = add_kinds(hash, depth + 1, ((const SubqueryScan *) plan)->subplan);
	return hash;
}

/*
 * Returns the identity of a query's plan.  If partitions are chosen when the plan
 * starts or runs, their names are left out, because each execution can choose others.
 */
uint64
pft_plan_id(const FastQuery *query)
{
	int		   *depths = palloc0(query->node_count * sizeof(int));	/* -1: below partitions that are chosen */
	uint64		hash = 0;

	for (int i = 0; i < query->node_count; i++)
	{
		const PlanState *node = query->nodes[i].node;
		int			caller = query->nodes[i].caller;

		if (caller >= 0)
			depths[i] = depths[caller] < 0 || CHOOSES_PARTITIONS(query->nodes[caller].node->plan) ? -1 : depths[caller] + 1;
		if (depths[i] < 0)
			continue;
		if (CHOOSES_PARTITIONS(node->plan))
			hash = add_kinds(hash, depths[i], node->plan);
		hash = add_words(hash, depths[i], node->plan);
		hash = add_text(add_text(hash, name_of(relation_of(node))), name_of(index_of(node)));
	}
	pfree(depths);
	return hash;
}
