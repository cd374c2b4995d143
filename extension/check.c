/*-------------------------------------------------------------------------
 *
 * check.c
 *	  looks for impossible times, only in tests
 *
 * Compiled with -DFAST_TIMING_CHECK.  Each impossible time is a line in the server's
 * log, and not an error: a function could catch an error and hide it.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "settle.h"
#include "tree.h"

#ifdef FAST_TIMING_CHECK

/* The server rounds times up to 18 to floating-point numbers.  In hours, the error is below a ns. */
#define ROUNDING_NS		1.0

static void
complain(const FastQuery *query, int i, const char *what, double ns, const char *limit, double limit_ns)
{
	ereport(LOG_SERVER_ONLY,
			(errmsg_internal("impossible time: node %d of type %d, method %d: %s of %.0f ns, %s of %.0f ns",
							 i, (int) nodeTag(query->nodes[i].node->plan), (int) query->method, what, ns, limit, limit_ns),
			 errhidestmt(true)));
}

static bool
was_called(const CoreInstr *core)
{
	return core != NULL && (core->nloops > 0 || core->running);
}

static void
check_node(const FastQuery *query, int i)
{
	const TreeNode *each = &query->nodes[i];
	const CoreInstr *core = each->node->instrument;
	int			outer = fast_outer_node(query, i);
	bool		ours = fast_instr_of(each->node) != NULL;
	double		total_ns;

	if (!was_called(core))
		return;
	total_ns = core_time_so_far_ns(core);
	if (ours && core_startup_so_far_ns(core) < 0)
		complain(query, i, "startup", core_startup_so_far_ns(core), "minimum", 0);
	if (ours && core_startup_so_far_ns(core) > total_ns + ROUNDING_NS)
		complain(query, i, "startup", core_startup_so_far_ns(core), "total", total_ns);
	if (outer >= 0)
	{
		const PlanState *node = query->nodes[outer].node;
		double		outer_ns;

		/* The server's own times are not corrected. */
		if (!was_called(node->instrument) || (!ours && fast_instr_of(node) == NULL))
			return;
		outer_ns = core_time_so_far_ns(node->instrument);
		if (total_ns > outer_ns + ROUNDING_NS)
			complain(query, i, "total", total_ns, "node that calls it", outer_ns);
	}
	else if (ours && each->parent < 0 && each->node->worker_instrument == NULL &&
			 query->elapsed_ns > 0 && total_ns > query->elapsed_ns + ROUNDING_NS)
		complain(query, i, "total", total_ns, "whole query", query->elapsed_ns);
}

void
fast_check_times(const FastQuery *query)
{
	for (int i = 0; i < query->node_count; i++)
		check_node(query, i);
}

#endif
