/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  the end of a query: times that are possible together, with their errors, and
 *	  the nodes' own times
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

/* An interval of two standard errors contains the true value in 95% of cases. */
#define STANDARD_ERRORS		2.0

/* The mean square of the intervals between ticks, in periods^2: they are distributed evenly from 0.5 to 1.5. */
#define MEAN_SQUARE			(13.0 / 12)

LastStatement pft_last;

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
 * Returns the error of a node's time by ticks, in this process.
 *
 * Each tick hits a node with a probability: the node's share of the time.  So the
 * number of hits has a binomial distribution, and its variance is smaller by the
 * factor (1 - share) than that of rare events.  A node can have few ticks or none
 * by chance: one that takes three periods has no tick in 1 of 20 cases.
 */
static double
ticks_error_ns(const FastInstr *fi)
{
	const FastQuery *query = fi->query;
	double		period = query->period_ns;
	double		share = query->elapsed_ns > 0 ? Min(fi->short_ns / query->elapsed_ns, 1) : 0;
	double		variance = fi->short_squares * (1 - share) + fi->variance;

	return STANDARD_ERRORS * sqrt(variance + period * period) + period +
		query->lost_ns + query->tickless_ns;
}

/*
 * Returns the error of a sum over many executions.  A node that takes less than a
 * period in those that were profiled can have no tick by chance.  Clock reads are
 * no chance: they add up.
 */
double
pft_error_of_sum(const double *sums)
{
	double		period = sums[SELF_VARIANCE] > 0 ? pft_ticker_period_ns() * sums[EXECUTIONS] / sums[PROFILED] : 0;

	return sums[CLOCK_NS] + STANDARD_ERRORS * sqrt(sums[SELF_VARIANCE] + sums[SAMPLING_VARIANCE] + period * period) + period;
}

/* Adds the error of the time of parallel workers to an estimate, if not every call was timed. */
static void
add_workers(Estimate *estimate, const FastInstr *fi)
{
	const CoreWorkers *workers = fi->node->worker_instrument;
	const FastQuery *query = fi->query;
	double		period = query->period_ns;
	double		variance = 0;

	for (int n = 0; !query->workers_exact && n < workers->num_workers; n++)
	{
		double		ns = CORE_NS_OF_TIME(CORE_TOTAL(&workers->instrument[n]));

		if (workers->instrument[n].nloops == 0)
			continue;
		variance += (ns + period) * period + query->tickless_ns * query->tickless_ns;
		estimate->quality = Max(estimate->quality, fi->workers_untimed ? TIME_NONE : TIME_ESTIMATED);
	}
	estimate->error_ns = hypot(estimate->error_ns, STANDARD_ERRORS * sqrt(variance));
}

/* Returns how a node's time was obtained, and its error.  The node's last loop must have ended. */
Estimate
pft_estimate(const FastInstr *fi)
{
	Estimate	estimate = {TIME_EXACT, 0, 0};

	if (fi->query->jumped)
		estimate.quality = TIME_WRONG;
	if (fi->query->jumped || fi->query->method != METHOD_AUTO)
		return estimate;
	if (fi->later_calls > 0)
	{
		estimate.quality = fi->phase == PHASE_TICKS ? TIME_ESTIMATED : TIME_NONE;
		estimate.samples = fi->granted - fi->left + fi->ticks;
		estimate.error_ns = ticks_error_ns(fi);
	}
	if (fi->node->worker_instrument != NULL)
		add_workers(&estimate, fi);
	return estimate;
}

/*
 * Returns the index of the node whose calls contain all calls of a node, or -1.
 *
 * A node runs within the calls of its parent.  But a custom scan can call its
 * children at any time.  Subplans run within the calls of the plan's root.  But
 * data-modifying subplans can run after it.  Below a Gather node, times are sums
 * over processes, so no node outside contains them.
 */
static int
outer_node(const FastQuery *query, int i)
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
 * Changes a node's time.  `outer` is NULL, or the node whose time is the reason
 * for the change.  Either time can be wrong, so the change is added to both errors.
 */
static void
set_total(FastInstr *fi, CoreTime total, FastInstr *outer)
{
	double		change_ns = CORE_NS_OF_TIME(total) - CORE_NS_OF_TIME(CORE_TOTAL(&fi->core));

	CORE_TOTAL(&fi->core) = total;
	fi->variance += change_ns * change_ns;
	if (outer != NULL)
		outer->variance += change_ns * change_ns;
}

/* Step 1, for one node: it takes at least as long as each exact node below it. */
static void
raise_to_children(const FastQuery *query, Bounds *bounds, int i)
{
	CoreInstr  *core = query->nodes[i].node->instrument;
	Bounds	   *own = &bounds[i];
	bool		exact = true;

	own->fi = pft_instr_of(query->nodes[i].node);
	own->outer = outer_node(query, i);
	if (core == NULL)
		return;
	if (own->fi != NULL)
	{
		Quality		quality = pft_estimate(own->fi).quality;

		InstrEndLoop(core);
		if (quality == TIME_NONE)
		{
			/*
			 * The exact part alone would be misleading.  A parallel worker tells its
			 * leader by a startup that stays negative if another one is added.
			 */
			CORE_TOTAL(core) = 0;
			CORE_STARTUP(core) = IsParallelWorker() ? -(CORE_TIME_MAX / 1000000) : 0;
			own->fi = NULL;
		}
		else
			set_total(own->fi, Max(CORE_TOTAL(core), own->low), NULL);
		exact = quality == TIME_EXACT;
	}
	if (own->outer >= 0)
	{
		CoreTime   *low = &bounds[own->outer].low;

		*low = Max(*low, exact ? core_total_so_far(core) : own->low);
	}
}

/* Step 2, for one node: it takes at most as long as the node that calls it. */
static void
limit_to_parent(const FastQuery *query, Bounds *bounds, int i)
{
	const TreeNode *each = &query->nodes[i];
	CoreInstr  *core = each->node->instrument;
	Bounds	   *own = &bounds[i];

	own->high = CORE_TIME_MAX;
	if (own->outer >= 0)
		own->high = bounds[own->outer].high;
	else if (each->parent < 0 && each->node->worker_instrument == NULL && query->elapsed_ns > 0)
		own->high = CORE_TIME_OF_NS(query->elapsed_ns);
	if (core == NULL || (own->fi == NULL && pft_instr_of(each->node) != NULL))
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

/* Corrects impossible times.  A parent comes before its children. */
void
pft_make_consistent(FastQuery *query)
{
	Bounds	   *bounds = MemoryContextAllocZero(query->estate->es_query_cxt, query->node_count * sizeof(Bounds));

	for (int i = query->node_count - 1; i >= 0; i--)
		raise_to_children(query, bounds, i);
	for (int i = 0; i < query->node_count; i++)
		limit_to_parent(query, bounds, i);
	pfree(bounds);
}

/*
 * Returns the calls of a node without a wrapper, which core times itself.  Hash and
 * bitmap nodes return all they have in one call per loop.  For other nodes, this
 * assumes that each loop ran to its end.  If workers ran the node, the leader's
 * part is unknown, because core has added theirs.
 */
double
pft_calls_without_wrapper(const PlanState *node)
{
	const CoreInstr *core = node->instrument;
	double		loops;

	if (core == NULL || node->worker_instrument != NULL)
		return 0;
	loops = core->nloops + (core->running ? 1 : 0);
	return pft_returns_all_at_once(node) ? loops : loops + core->ntuples + core->tuplecount;
}

/*
 * Reads what parallel workers have reported.  They do not tell their leader which
 * of their nodes are exact.  All of them are if the calls of all workers together
 * fit into the budget of one.
 */
void
pft_read_workers(FastQuery *query)
{
	double		calls = 0;

	for (int i = 0; i < query->node_count; i++)
	{
		CoreWorkers *workers = query->nodes[i].node->worker_instrument;

		for (int n = 0; workers != NULL && n < workers->num_workers; n++)
		{
			CoreInstr  *core = &workers->instrument[n];

			calls += core->ntuples + core->nloops;
			if (CORE_STARTUP(core) < 0 && query->nodes[i].fi != NULL)
			{
				query->nodes[i].fi->workers_untimed = true;
				CORE_STARTUP(core) = 0;
			}
		}
	}
	query->workers_exact = pft_fits_budget(query, calls);
}

/* Describes the statement, for the functions that print it, and counts it. */
LastStatement
pft_note_statement(const FastQuery *query)
{
	LastStatement statement = {
		.method = query->method,
		.clock = query->clock,
		.period_ns = query->period_ns,
		.jumped = query->jumped,
		.just_finished = true
	};
	LastStatement *last = &statement;
	double		cost_ns = 0;

	for (int i = 0; i < query->node_count; i++)
	{
		const FastInstr *fi = pft_instr_of(query->nodes[i].node);
		Estimate	estimate;

		if (fi == NULL)
			continue;
		estimate = pft_estimate(fi);
		last->nodes++;
		last->estimated += estimate.quality == TIME_ESTIMATED;
		last->untimed += estimate.quality == TIME_NONE;
		last->samples += estimate.samples;
		if (estimate.quality == TIME_ESTIMATED)
			last->error_ns = Max(last->error_ns, estimate.error_ns);
		cost_ns += (fi->granted - fi->left) * pft_call_cost_ns(query->clock);
	}
	pft_count(TIMING_NS, (uint64) cost_ns);
	/* Parallel workers do not count their leader's statement once more. */
	if (IsParallelWorker())
		return statement;
	pft_count(STATEMENTS, 1);
	pft_count(EXACT_NODES, query->jumped ? 0 : last->nodes - last->estimated - last->untimed);
	pft_count(ESTIMATED_NODES, last->estimated);
	pft_count(WITHOUT_TICKS, last->untimed > 0 || (query->tickless_ns > 0 && (query->sampled > 0 || query->parallel)));
	pft_count(CLOCK_JUMPS, query->jumped);
	return statement;
}

/* Returns a text about the last timed statement, in the current memory context; NULL: all its times are exact. */
char *
pft_describe_last(void)
{
	const LastStatement *last = &pft_last;
	StringInfoData text;

	if (!last->jumped && last->estimated == 0 && last->untimed == 0)
		return NULL;
	initStringInfo(&text);
	if (last->jumped)
		appendStringInfo(&text, "the times are wrong, because a clock jumped; ");
	/* The error is rounded up to the last printed digit, so that it remains a bound. */
	if (last->estimated > 0)
		appendStringInfo(&text, "times of %d of %d plan nodes are estimates; largest error of a node +-%.3f ms in all loops; ",
						 last->estimated, last->nodes, ceil(last->error_ns / 1e3) / 1e3);
	if (last->untimed > 0)
		appendStringInfo(&text, "%d of %d plan nodes have no time, because there is no ticking clock; ",
						 last->untimed, last->nodes);
	text.data[text.len - 2] = '\0';
	return text.data;
}

static double
total_ns(const PlanState *node)
{
	return node->instrument != NULL ? CORE_NS_OF_TIME(CORE_TOTAL(node->instrument)) : 0;
}

/* Returns the time of a node's calls by its caller.  If only the node ran in parallel workers, these are the calls of the leader. */
static double
called_ns(const TreeNode *each, const PlanState *caller)
{
	const CoreWorkers *workers = each->node->worker_instrument;
	double		ns = total_ns(each->node);

	for (int n = 0; workers != NULL && caller->worker_instrument == NULL && n < workers->num_workers; n++)
		ns -= CORE_NS_OF_TIME(CORE_TOTAL(&workers->instrument[n]));
	return Max(ns, 0);
}

/* Returns the variance of a time that was estimated from ticks: each tick hits it with the probability of its share. */
static double
variance_of(const FastQuery *query, double ns)
{
	double		share = ns < query->elapsed_ns ? ns / query->elapsed_ns : 0;

	return ns * query->period_ns * MEAN_SQUARE * (1 - share);
}

static bool
is_estimated(const TreeNode *each)
{
	return each->fi != NULL && pft_estimate(each->fi).quality == TIME_ESTIMATED;
}

/* Returns the largest cost of the clock reads for a node's calls, in this process or in all. */
static double
most_clock_ns(const FastQuery *query, const TreeNode *each, bool all)
{
	const CoreWorkers *workers = all ? each->node->worker_instrument : NULL;
	bool		ours = each->fi != NULL;
	double		cost = ours ? (each->fi->granted - each->fi->left) * pft_call_cost_ns(query->clock) :
		pft_most_cost_ns(query, pft_calls_without_wrapper(each->node), false);

	for (int n = 0; workers != NULL && n < workers->num_workers; n++)
		cost += pft_most_cost_ns(query, workers->instrument[n].ntuples + workers->instrument[n].nloops, ours);
	return cost;
}

/*
 * Subtracts a node's time from that of its callers.  If several nodes call it, their
 * parts are unknown.  A tick that hits both nodes adds no error to the difference.
 */
static void
subtract_from_callers(FastQuery *query, const TreeNode *each)
{
	bool		several = bms_num_members(each->readers) > 1;
	double		left;

	if (each->caller < 0)
		return;
	left = called_ns(each, query->nodes[each->caller].node);
	for (int i = several ? bms_next_member(each->readers, -1) : each->caller; i >= 0; i = several ? bms_next_member(each->readers, i) : -1)
	{
		TreeNode   *caller = &query->nodes[i];
		double		part = several ? Min(left, Max(caller->self_ns, 0)) : left;

		caller->clock_ns += most_clock_ns(query, each, caller->node->worker_instrument != NULL);
		if (several)
			caller->self_variance += left * left;
		if (is_estimated(caller) != is_estimated(each))
			caller->self_variance += variance_of(query, part);
		caller->self_ns -= part;
		left -= part;
	}
}

/*
 * Finds the nodes' own times.  They can be negative by chance, until the times are
 * consistent.  The server times bitmap nodes, so their waits count for the bitmap
 * heap scan.
 */
void
pft_find_self_times(FastQuery *query)
{
	for (int i = 0; i < query->node_count; i++)
	{
		TreeNode   *each = &query->nodes[i];

		if (each->node->instrument != NULL)
			InstrEndLoop(each->node->instrument);
		each->self_ns = total_ns(each->node);
		each->self_variance = each->waits_of_ns = 0;
		each->clock_ns = most_clock_ns(query, each, true);
	}
	/* A subplan's time is known to be that of its callers after the other nodes below them are subtracted. */
	for (int subplans = 0; subplans <= 1; subplans++)
		for (int i = 0; i < query->node_count; i++)
			if ((query->nodes[i].readers != NULL) == subplans)
				subtract_from_callers(query, &query->nodes[i]);
	for (int i = query->node_count - 1; i >= 0; i--)
	{
		TreeNode   *each = &query->nodes[i];

		if (is_estimated(each))
			each->self_variance += variance_of(query, Max(each->self_ns, 0)) + pow(query->lost_ns + query->tickless_ns, 2);
		each->waits_of_ns += query->with_waits ? each->self_ns : 0;
		if (pft_returns_all_at_once(each->node) && !IsA(each->node, HashState) && each->caller >= 0)
		{
			query->nodes[each->caller].waits_of_ns += each->waits_of_ns;
			each->waits_of_ns = 0;
		}
	}
}

/* Returns the calls of a node in all processes. */
static double
all_calls(const TreeNode *each)
{
	const CoreWorkers *workers = each->node->worker_instrument;
	double		calls = each->fi != NULL ? pft_calls(each->fi) : pft_calls_without_wrapper(each->node);

	for (int n = 0; workers != NULL && n < workers->num_workers; n++)
		calls += workers->instrument[n].ntuples + workers->instrument[n].nloops;
	return calls;
}

/* Returns what the profile stores of a node.  CPU_NS still contains the waits: only their sums are limited to the time. */
void
pft_node_values(const FastQuery *query, int i, double *values)
{
	const TreeNode *each = &query->nodes[i];
	const CoreInstr *core = each->node->instrument;
	const BufferUsage *buffers = core != NULL ? &CORE_USAGE(core)->bufusage : NULL;

	memset(values, 0, NODE_VALUES * sizeof(double));
	values[EXECUTIONS] = 1;
	values[PLAN_NS] = i == 0 ? query->elapsed_ns : 0;
	values[PLAN_CLIENT_NS] = i == 0 && query->with_waits ? pft_waits_of_class(query->outside, WAIT_CLIENT) : 0;
	if (core == NULL)
		return;
	values[LOOPS] = core->nloops;
	values[ROWS] = core->ntuples;
	values[CALLS] = all_calls(each);
	values[PLANNED_ROWS] = each->node->plan->plan_rows * core->nloops;
	values[TOTAL_NS] = total_ns(each->node);
	values[SELF_NS] = each->self_ns;
	values[SELF_VARIANCE] = each->self_variance;
	values[CLOCK_NS] = each->clock_ns;
	values[STARTUP_NS] = CORE_NS_OF_TIME(CORE_STARTUP(core));
	values[CPU_NS] = each->waits_of_ns;
	for (int c = 0; query->with_waits && c < WAIT_CLASSES; c++)
		values[FIRST_WAIT_NS + c] = pft_waits_of_class(each->waits, c);
	values[SHARED_HIT] = buffers->shared_blks_hit;
	values[SHARED_READ] = buffers->shared_blks_read;
	values[TEMP_BLOCKS] = buffers->temp_blks_read + buffers->temp_blks_written;
}

bool
pft_all_timed(const FastQuery *query)
{
	if (query->jumped)
		return false;
	for (int i = 0; i < query->node_count; i++)
		if (query->nodes[i].fi != NULL && pft_estimate(query->nodes[i].fi).quality > TIME_ESTIMATED)
			return false;
	return true;
}
