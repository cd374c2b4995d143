/*-------------------------------------------------------------------------
 *
 * tree.h
 *	  the plan nodes of the queries that we time
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_TREE_H
#define FAST_TREE_H

#include "instr.h"

#pragma GCC visibility push(hidden)

/* A node of a query's plan. */
struct TreeNode
{
	PlanState  *node;
	int			parent;			/* index of the parent node; -1: the root of the
								 * plan or of a subplan */
	FastInstr  *fi;				/* our instrumentation, or NULL */

	/* calls.c */
	const CoreWorkers *workers; /* parallel workers whose counts core has added */
	double		times_added;	/* how often core has added them; 0: unknown */
	double		worker_rows;	/* rows that core has added for all workers so far */
	double		worker_loops;	/* and loops */
	double		calls_of_workers;	/* their calls */
	double		rows_without_call;	/* rows that a foreign data wrapper has added */
	double		counted;		/* calls that are in the statistics */
};

/* Returns whether core times the node in the node's own code, once per call.  Ours would not be cheaper. */
extern bool fast_instruments_itself(const PlanState *node);

/* Adds a query to the queries that we time.  It is removed together with its memory context. */
extern FastQuery *fast_query_create(QueryDesc *queryDesc);

/* Returns our state of a query, or NULL if we do not time the query. */
extern FastQuery *fast_query_of(const EState *estate);

/* Returns our instrumentation of a node, or NULL if we do not time the node. */
extern FastInstr *fast_instr_of(const PlanState *planstate);

/* Returns the instrumentation that we created for a node, even if another one has replaced it since then. */
extern FastInstr *fast_instr_created(const FastQuery *query, const PlanState *planstate);

/* Allocates the instrumentation of a node.  Returns NULL if the node's id is in use. */
extern FastInstr *fast_instr_create(FastQuery *query, TreeNode *each);

#pragma GCC visibility pop

#endif							/* FAST_TREE_H */
