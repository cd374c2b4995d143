/*-------------------------------------------------------------------------
 *
 * wrappers.c
 *	  the functions that replace ExecProcNode, and the budget of a statement
 *
 * A wrapper calls its node, counts the row, and adds time.  There is one for
 * each phase, clock and kind of usage, with and without waits, so that none does
 * unnecessary work.
 *
 * Exact times are paid from the budget of the statement: each node asks for a
 * number of calls in advance.  If the budget does not allow them, the node
 * continues with ticks.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

#include "storage/bufmgr.h"

/*
 * The budget is this share of the statement's time, and a fixed amount: a person
 * who typed EXPLAIN wants exact times, and auto_explain times all statements and
 * prints only a few.  Tests build the extension without any budget.
 */
#define BUDGET_SHARE	0.005
#ifdef ONLY_ESTIMATES
#define BUDGET_NS(typed)	(-1e18)
#else
#define BUDGET_NS(typed)	((typed) ? 20e6 : 20e3)
#endif

/* Cost of the bookkeeping for a timed call, about that of a cheap clock. */
#define BOOKKEEPING_NS	20

/* A node asks for as many calls as it had, but for at least FIRST_CALLS and at most MOST_CALLS.  Many nodes have only one or two. */
#define FIRST_CALLS		4
#define MOST_CALLS		4096

/* The counters that a node must maintain. */
typedef enum UsageKind
{
	USAGE_NONE,
	USAGE_BUFFERS,
	USAGE_ALL					/* buffers, WAL, and times of reads and writes */
} UsageKind;

static UsageKind
usage_kind(const FastInstr *fi)
{
	if (CORE_USAGE(&fi->core)->need_walusage)
		return USAGE_ALL;
	if (!CORE_USAGE(&fi->core)->need_bufusage)
		return USAGE_NONE;
	return PG_VERSION_NUM >= 180000 && track_io_timing ? USAGE_ALL : USAGE_BUFFERS;
}

static pg_noinline void
usage_changed(FastInstr *fi, uint64 sum, bool by_call)
{
	if (by_call)
		core_usage_add(&fi->core, &fi->start);
	core_usage_start(&fi->start, sum);
}

/* Called before and after a call of the node. */
static pg_attribute_always_inline void
usage_check(FastInstr *fi, UsageKind kind, bool by_call)
{
	uint64		sum = kind == USAGE_NONE ? 0 : core_usage_sum(kind == USAGE_ALL);

	if (kind != USAGE_NONE && unlikely(sum != fi->start.sum))
		usage_changed(fi, sum, by_call);
}

/* Returns the calls of a node in this process. */
double
pft_calls(const FastInstr *fi)
{
	return (double) fi->granted - fi->left + fi->later_calls;
}

/* Returns the cost of timing one call exactly. */
double
pft_call_cost_ns(ClockKind kind)
{
	return pft_clocks[kind].cost * pft_clocks[kind].ns_per_tick + BOOKKEEPING_NS;
}

/* Returns the largest cost of exact times in a statement that has run for `elapsed_ns`. */
static double
allowed_ns(const FastQuery *query, double elapsed_ns)
{
	return BUDGET_NS(query->typed) + BUDGET_SHARE * elapsed_ns;
}

/* Returns the cost of exact times of calls that may have used another clock. */
static double
other_cost_ns(const FastQuery *query, double calls)
{
	pft_clock_measure(KIND_SYSTEM);
	return calls * Max(pft_call_cost_ns(KIND_SYSTEM), pft_call_cost_ns(query->clock));
}

/* Returns the largest cost of clock reads for calls of the server, or of another process with our timing. */
double
pft_most_cost_ns(const FastQuery *query, double calls, bool ours)
{
	double		cost = other_cost_ns(query, calls);

	return ours && query->method == METHOD_AUTO ? Min(cost, Max(allowed_ns(query, query->elapsed_ns), 0)) : cost;
}

/*
 * Returns whether these calls of another process were certainly all exact.  Its
 * nodes asked for up to twice as many.
 */
bool
pft_fits_budget(const FastQuery *query, double calls)
{
	return other_cost_ns(query, 2 * calls + query->node_count * FIRST_CALLS) <= allowed_ns(query, 0);
}

/* Asks the budget for more exact calls of a node.  Returns whether it has allowed them. */
static bool
request_calls(FastInstr *fi)
{
	FastQuery  *query = fi->query;
	int32		calls = Max(Min(fi->granted, MOST_CALLS), FIRST_CALLS);
	double		cost = calls * pft_call_cost_ns(query->clock);

	if (query->method == METHOD_AUTO)
	{
		if (query->spent_ns + cost > allowed_ns(query, query->known_ns))
		{
			uint64		coarse_ns = coarse_now();

			/* Reading a precise clock for each of many nodes can cost too much. */
			if (query->refused_ns == coarse_ns)
				return false;
			query->refused_ns = coarse_ns;
			query->known_ns = Max(query->elapsed_ns, 0) + ns_between(query->clock, query->run_start, clock_now(query->clock));
			if (query->spent_ns + cost > allowed_ns(query, query->known_ns))
				return false;
		}
		query->spent_ns += cost;
	}
	fi->left += calls;
	fi->granted += calls;
	return true;
}

/*
 * Asks for more exact calls, also before the first one.  If the budget does not
 * allow them, the node changes to ticks, or remains without times.  If another
 * extension has put a function in front of the old wrapper, that wrapper calls
 * the new one.
 */
pg_noinline void
pft_request_calls(FastInstr *fi)
{
	ExecProcNodeMtd old = fi->wrapper;

	if (request_calls(fi))
		return;
	fi->phase = pft_ticker_start() ? PHASE_TICKS : PHASE_UNTIMED;
	fi->wrapper = pft_wrapper(fi);
	if (fi->node->ExecProcNode == old)
		fi->node->ExecProcNode = fi->wrapper;
	fi->query->sampled++;
	pft_ticker_note_period(fi->query);
}

/* Adds ticks of a clock to a node's time.  A call can be shorter than a ns, so the fraction is kept for the next call. */
static pg_attribute_always_inline void
add_elapsed(FastInstr *fi, ClockKind kind, uint64 ticks)
{
	unsigned __int128 ns;

	if (kind == KIND_SYSTEM)
	{
		core_add_ns(&fi->core, ticks);
		return;
	}
	/* The counter went back: a virtual machine was migrated. */
	if (unlikely((int64) ticks < 0))
		return;
#if PG_VERSION_NUM >= 190000
	if (fi->query->server_tsc)
	{
		fi->core.counter.ticks += ticks;
		return;
	}
#endif
	ns = (unsigned __int128) ticks * pft_tsc_scale + fi->fraction;
	fi->fraction = (uint32) ns;
	core_add_ns(&fi->core, (uint64) (ns >> 32));
}

/* Adds the time of the ticks that fell into a call. */
static pg_noinline void
add_ticks(FastInstr *fi, uint64 before_ns)
{
	uint64		ns = pft_ticks->last_ns - before_ns;
	double		period = fi->query->period_ns;

	/*
	 * A nested statement has started ticks that this run did not have before.  Or
	 * another backend has just started the clock again, at an earlier time.
	 */
	pft_waits_charge(fi, false);
	if (fi->query->tickless || (int64) ns < 0)
		return;
	core_add_ns(&fi->core, ns);
	fi->ticks++;

	/*
	 * A call with one tick can have any duration up to two periods.  For a call
	 * with several ticks, only its two ends are uncertain.
	 */
	if (ns < 2 * period)
	{
		fi->short_ns += ns;
		fi->short_squares += (double) ns * ns;
	}
	else
		fi->variance += period * period / 6;
}

/* Counts a call that has returned. */
static pg_attribute_always_inline void
count_row(FastInstr *fi, TupleTableSlot *slot)
{
	if (unlikely(!fi->core.running))
		core_start_loop(&fi->core);
	if (!TupIsNull(slot))
		fi->core.tuplecount += 1.0;
}

/* Another extension has replaced the node's instrumentation.  The server times the call, as without us. */
static pg_noinline TupleTableSlot *
timed_by_server(PlanState *node)
{
	TupleTableSlot *slot;

	if (node->instrument == NULL)
		return node->ExecProcNodeReal(node);
	InstrStartNode(node->instrument);
	slot = node->ExecProcNodeReal(node);
	InstrStopNode(node->instrument, TupIsNull(slot) ? 0.0 : 1.0);
	return slot;
}

/* Charges waits to the node, or to its caller, if the ticking clock has moved.  Returns its time. */
static pg_attribute_always_inline uint64
check_waits(FastInstr *fi, bool to_caller)
{
	uint64		tick_ns = pft_ticks->last_ns;

	if (unlikely(tick_ns != pft_charged.tick_ns))
		pft_waits_charge(fi, to_caller);
	return tick_ns;
}

/* Reads the clock of the exact phase.  The method tsc does not wait for earlier instructions, which is cheaper. */
static pg_attribute_always_inline uint64
read_clock(ClockKind kind, bool ordered)
{
	return kind == KIND_TSC && !ordered ? tsc_now() : clock_ordered(kind);
}

static pg_attribute_always_inline TupleTableSlot *
exact_call(PlanState *node, UsageKind usage, ClockKind kind, bool ordered, bool waits)
{
	FastInstr  *fi = (FastInstr *) node->instrument;
	TupleTableSlot *slot;
	uint64		start;

	if (unlikely(!pft_is_ours(fi)))
		return timed_by_server(node);
	if (unlikely(fi->phase != PHASE_EXACT))
		return fi->wrapper(node);
	usage_check(fi, usage, false);
	if (waits)
		check_waits(fi, true);
	start = read_clock(kind, ordered);
	slot = node->ExecProcNodeReal(node);
	add_elapsed(fi, kind, read_clock(kind, ordered) - start);
	if (waits)
		check_waits(fi, false);
	count_row(fi, slot);
	usage_check(fi, usage, true);
	if (unlikely(--fi->left <= 0))
		pft_request_calls(fi);
	return slot;
}

/* A call after the exact ones, with the ticks that fall into it or without times. */
static pg_attribute_always_inline TupleTableSlot *
later_call(PlanState *node, UsageKind usage, bool with_ticks, bool waits)
{
	FastInstr  *fi = (FastInstr *) node->instrument;
	TupleTableSlot *slot;
	uint64		before_ns;

	if (unlikely(!pft_is_ours(fi)))
		return timed_by_server(node);
	usage_check(fi, usage, false);
	before_ns = waits ? check_waits(fi, true) : with_ticks ? pft_ticks->last_ns : 0;
	slot = node->ExecProcNodeReal(node);
	if (with_ticks && unlikely(pft_ticks->last_ns != before_ns))
		add_ticks(fi, before_ns);
	usage_check(fi, usage, true);
	count_row(fi, slot);
	fi->later_calls++;
	return slot;
}

#define WRAPPER(name, call) \
static TupleTableSlot * \
name(PlanState *node) \
{ \
	return call; \
}

#define WRAPPERS(name, function, ...) \
WRAPPER(name##_only, function(node, USAGE_NONE, __VA_ARGS__)) \
WRAPPER(name##_buffers, function(node, USAGE_BUFFERS, __VA_ARGS__)) \
WRAPPER(name##_all, function(node, USAGE_ALL, __VA_ARGS__)) \
static const ExecProcNodeMtd name[] = {name##_only, name##_buffers, name##_all};

WRAPPERS(system_time, exact_call, KIND_SYSTEM, true, false)
WRAPPERS(tsc_time, exact_call, KIND_TSC, false, false)
WRAPPERS(ordered_tsc_time, exact_call, KIND_TSC, true, false)
WRAPPERS(ticks, later_call, true, false)
WRAPPERS(untimed, later_call, false, false)
WRAPPERS(system_time_waits, exact_call, KIND_SYSTEM, true, true)
WRAPPERS(ordered_tsc_time_waits, exact_call, KIND_TSC, true, true)
WRAPPERS(ticks_waits, later_call, true, true)

/* Returns the wrapper for a node in its phase.  The query must have begun to run. */
ExecProcNodeMtd
pft_wrapper(const FastInstr *fi)
{
	const ExecProcNodeMtd *wrappers = untimed;
	bool		waits = fi->query->with_waits;

	if (fi->query->method == METHOD_TSC)
		wrappers = tsc_time;
	else if (fi->phase == PHASE_TICKS)
		wrappers = waits ? ticks_waits : ticks;
	else if (fi->phase == PHASE_EXACT && fi->query->clock == KIND_TSC)
		wrappers = waits ? ordered_tsc_time_waits : ordered_tsc_time;
	else if (fi->phase == PHASE_EXACT)
		wrappers = waits ? system_time_waits : system_time;
	return wrappers[usage_kind(fi)];
}
