/*-------------------------------------------------------------------------
 *
 * method_auto.c
 *	  calls timed exactly for as long as that is cheap, then a part of them
 *
 * Each call of a node is timed until timing would take more than its share of
 * the query's time.  From then on one call in so many, chosen at random, is
 * timed and stands for those before it.  That is precise for the mass of short
 * calls, and hopeless for the few long ones: so a timed call counts only up to
 * a cap, and what any call takes beyond the cap is told by a ticker, as in the
 * method sampling.  A tick that comes more than the cap before the end of a
 * call gives it the time since the tick before; over many calls that makes
 * just their time beyond the cap.  The cap is where a timed call weighs as
 * much as a tick.
 *
 * The first calls of loops are not like the others (an index is descended, a
 * hash table built), so they are told apart.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "common/pg_prng.h"

#include "clock.h"
#include "ticker.h"
#include "usage.h"

/* What timing may take of a query's time, all nodes together. */
#define BUDGET			0.005

/* Drawing the next call and keeping the books of a timed one: as much as a cheap clock. */
#define BOOKKEEPING_NS	30

/* Calls before the first look at the cost: they take 5 us, or 0.4 ms where the clock is slow. */
#define FIRST_REVIEW	256
/* While every call is timed, a look now and then is enough. */
#define LATER_REVIEW	4096
/* Once sampled, after so many timed calls. */
#define SAMPLED_REVIEW	32

/* Rarer than this nothing is gained: the ticks tell more. */
#define MOST_EVERY		100000

/* What a node may take of the time: sampled nodes share the budget. */
static double
allowed(const FastQuery *query)
{
	return BUDGET / Max(query->sampled, 1);
}

/* What timing each of the calls since the last review would have taken of it. */
static double
share_of_time(const FastInstr *fi, uint64 now)
{
	const ClockFacts *clock = &fast_clocks[fi->query->clock];
	double		elapsed = (double) (now - fi->reviewed_at);

	return elapsed <= 0 ? 1 :
		fi->calls * (clock->cost + BOOKKEEPING_NS / clock->ns_per_tick) / elapsed;
}

/* Calls until the next that is timed: at random, lest a rhythm be met. */
static void
draw(Stratum *stratum, int32 every)
{
	stratum->gap = every == 1 ? 1 :
		1 + (int32) pg_prng_uint64_range(&pg_global_prng_state, 0, 2 * every - 2);
	stratum->left = stratum->gap;
}

/* Chooses how many calls to time, for what each of them took of the time. */
static void
choose_every(FastInstr *fi, double share)
{
	double		period = ticker_period_ns() / fast_clocks[fi->query->clock].ns_per_tick;

	fi->every = (int32) Min(Max(ceil(share / allowed(fi->query)), 1), MOST_EVERY);
	fi->cap = (uint64) (period / fi->every);
}

static void
start_review(FastInstr *fi, uint64 now, int32 timed_calls)
{
	fi->reviewed_at = now;
	fi->calls = 0;
	fi->review = timed_calls;
}

/* The node was called so far; from now on a part of the calls is timed. */
static void
become_sampled(PlanState *node, FastInstr *fi, uint64 now, double share)
{
	fi->query->sampled++;
	fi->estimated = true;
	choose_every(fi, share);
	if (!ticker_start())
		fi->cap = PG_UINT64_MAX;
	draw(&fi->first, fi->every);
	draw(&fi->next, fi->every);
	start_review(fi, now, SAMPLED_REVIEW);
	fi->wrapper = fast_auto_wrapper(fi);
	node->ExecProcNode = fi->wrapper;
}

static pg_attribute_always_inline TupleTableSlot *
exact(PlanState *node, UsageKind usage, ClockKind kind)
{
	FastInstr  *fi = FAST_INSTR(node);
	TupleTableSlot *slot;
	uint64		start;
	uint64		end;

	if (usage != USAGE_NONE)
		usage_enter(fi, usage);
	start = clock_now(kind);
	slot = node->ExecProcNodeReal(node);
	end = clock_now(kind);
	add_ticks(fi, kind, end - start);
	count_call(fi, slot);
	if (usage != USAGE_NONE)
		usage_leave(fi, usage);

	if (unlikely(--fi->review <= 0))
	{
		if (fi->reviewed_at == 0)
			start_review(fi, start, FIRST_REVIEW);
		else
		{
			double		share;

			fi->calls = fi->reviewing;
			share = share_of_time(fi, end);
			if (share > allowed(fi->query))
				become_sampled(node, fi, end, share);
			else
				start_review(fi, end, LATER_REVIEW);
		}
		fi->reviewing = fi->review;
	}
	return slot;
}

/* Gives a call what the ticks in it tell of its time beyond the cap. */
static pg_noinline void
beyond_cap(FastInstr *fi, uint64 start_ns, uint64 now)
{
	uint64		last_ns;
	uint64		prev_ns;
	uint64		last;
	uint32		version;

	/* ticks are a long time apart: this loop ends at once */
	do
	{
		version = ticker.version;
		pg_read_barrier();
		last_ns = ticker.last_ns;
		prev_ns = ticker.prev_ns;
		last = fi->query->clock == KIND_TSC ? ticker.last_tsc : last_ns;
		pg_read_barrier();
	} while ((version & 1) || version != ticker.version);

	/* The last tick came within the cap before the end of the call, or after it. */
	if ((int64) (now - last) <= (int64) Min(fi->cap, PG_INT64_MAX))
		last_ns = prev_ns;
	if ((int64) (last_ns - start_ns) > 0)
		add_tick_span(fi, last_ns - start_ns);
}

/* The same of a call that was not timed.  Apart, so that the common case saves no registers for it. */
static pg_noinline void
met_by_tick(FastInstr *fi, uint64 start_ns)
{
	beyond_cap(fi, start_ns, clock_now(fi->query->clock));
}

/* A call that stands for those since the last one that did. */
static pg_noinline TupleTableSlot *
timed_call(PlanState *node, FastInstr *fi, Stratum *stratum)
{
	ClockKind	kind = fi->query->clock;
	const ClockFacts *clock = &fast_clocks[kind];
	TupleTableSlot *slot;
	uint64		start_ns = ticker.last_ns;
	uint64		start;
	uint64		end;
	uint64		elapsed;

	start = clock_now(kind);
	slot = node->ExecProcNodeReal(node);
	end = clock_now(kind);

	/* What reading the clock adds would be multiplied. */
	elapsed = end - start;
	elapsed -= Min(elapsed, clock->window);
	elapsed = Min(elapsed, fi->cap);
	add_ticks(fi, kind, elapsed * stratum->gap);
	if (ticker.last_ns != start_ns)
		beyond_cap(fi, start_ns, end);

	stratum->timed++;
	stratum->calls += stratum->gap;
	stratum->sum += elapsed;
	stratum->squares += (double) elapsed * elapsed;
	fi->calls += stratum->gap;
	if (--fi->review <= 0)
	{
		choose_every(fi, share_of_time(fi, end));
		start_review(fi, end, SAMPLED_REVIEW);
	}
	draw(stratum, fi->every);
	return slot;
}

static pg_attribute_always_inline TupleTableSlot *
sampled(PlanState *node, UsageKind usage)
{
	FastInstr  *fi = FAST_INSTR(node);
	Stratum    *stratum = fi->core.running ? &fi->next : &fi->first;
	TupleTableSlot *slot;

	if (usage != USAGE_NONE)
		usage_enter(fi, usage);
	if (unlikely(--stratum->left <= 0))
		slot = timed_call(node, fi, stratum);
	else
	{
		uint64		start_ns = ticker.last_ns;

		slot = node->ExecProcNodeReal(node);
		if (unlikely(ticker.last_ns != start_ns))
			met_by_tick(fi, start_ns);
	}
	count_call(fi, slot);
	if (usage != USAGE_NONE)
		usage_leave(fi, usage);
	return slot;
}

#define EXACT(name, usage, kind) \
static TupleTableSlot * \
name(PlanState *node) \
{ \
	return exact(node, usage, kind); \
}

#define SAMPLED(name, usage) \
static TupleTableSlot * \
name(PlanState *node) \
{ \
	return sampled(node, usage); \
}

EXACT(system_time, USAGE_NONE, KIND_SYSTEM)
EXACT(system_buffers, USAGE_BUFFERS, KIND_SYSTEM)
EXACT(system_wal, USAGE_WAL, KIND_SYSTEM)
EXACT(tsc_time, USAGE_NONE, KIND_TSC)
EXACT(tsc_buffers, USAGE_BUFFERS, KIND_TSC)
EXACT(tsc_wal, USAGE_WAL, KIND_TSC)
SAMPLED(sampled_time, USAGE_NONE)
SAMPLED(sampled_buffers, USAGE_BUFFERS)
SAMPLED(sampled_wal, USAGE_WAL)

ExecProcNodeMtd
fast_auto_wrapper(const FastInstr *fi)
{
	const ExecProcNodeMtd exact_calls[][3] = {
		[KIND_SYSTEM] = {system_time, system_buffers, system_wal},
		[KIND_TSC] = {tsc_time, tsc_buffers, tsc_wal},
	};
	const ExecProcNodeMtd some_calls[] = {sampled_time, sampled_buffers, sampled_wal};
	UsageKind	usage = usage_kind(fi);

	return fi->every > 0 ? some_calls[usage] : exact_calls[fi->query->clock][usage];
}

/* The calls since the last timed one are like those before it. */
static void
settle(FastInstr *fi, Stratum *stratum)
{
	double		calls = stratum->gap - stratum->left;

	if (stratum->timed == 0 || calls <= 0)
		return;
	core_add_total_ns(&fi->core,
					  calls * stratum->sum / stratum->timed * fast_clocks[fi->query->clock].ns_per_tick);
	stratum->calls += calls;
	draw(stratum, fi->every);
}

/* The query's nodes have done their work. */
void
fast_auto_settle(FastInstr *fi)
{
	if (fi->every > 0)
	{
		settle(fi, &fi->first);
		settle(fi, &fi->next);
	}
}
