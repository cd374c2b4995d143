/*-------------------------------------------------------------------------
 *
 * instr.c
 *	  finds our instrumentation of plan nodes, and changes their wrappers
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "instr.h"

/* Compared by address: another extension cannot have it. */
const char	fast_instr_ident[] = "plan nodes";

/* Returns our instrumentation of a node, or NULL if we do not time the node. */
FastInstr *
fast_instr_of(PlanState *planstate)
{
	if (planstate == NULL || planstate->instrument == NULL ||
		GetMemoryChunkContext(planstate->instrument)->ident != fast_instr_ident)
		return NULL;
	return FAST_INSTR(planstate);
}

static bool
find_instr(PlanState *node, void *found)
{
	*(FastInstr **) found = fast_instr_of(node);
	return *(FastInstr **) found != NULL || planstate_tree_walker(node, find_instr, found);
}

/*
 * Returns our instrumentation of the first node that we time.  This may not be
 * the root, because another extension may time that.
 */
FastInstr *
fast_first_instr(QueryDesc *queryDesc)
{
	FastInstr  *found = NULL;

	if ((queryDesc->instrument_options & INSTRUMENT_TIMER) && queryDesc->planstate != NULL)
		find_instr(queryDesc->planstate, &found);
	return found;
}

/*
 * Changes the wrapper of a node.  Returns false if that is not possible, because
 * another extension has put a function in front that calls the present wrapper.
 */
bool
fast_replace_wrapper(FastInstr *fi, ExecProcNodeMtd wrapper)
{
	PlanState  *node = fi->node;

	if (node->ExecProcNode == fi->wrapper)
		node->ExecProcNode = wrapper;
	else if (node->ExecProcNode != fi->gather_entry)
		return false;
	fi->wrapper = wrapper;
	return true;
}
