/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  the clocks that calls are timed with
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_CLOCK_H
#define FAST_CLOCK_H

#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "pg_fast_timing.h"
#include "tsc.h"

#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__linux__)
#define HAVE_TSC 1
#endif

/* One of the clocks, as it was found to be. */
typedef struct ClockFacts
{
	double		ns_per_tick;
	uint64		window;			/* ticks between two reads with nothing in between */
	double		cost;			/* ticks that timing a call takes */
	bool		stale;			/* measured too long ago, or never */
} ClockFacts;

#pragma GCC visibility push(hidden)
extern ClockFacts fast_clocks[2];

/* Finds out what timing a call with that clock costs. */
extern void fast_clock_measure(ClockKind kind);
#pragma GCC visibility pop

static pg_attribute_always_inline uint64
tsc_now(void)
{
#if defined(__x86_64__) && defined(__linux__)
	return __rdtsc();
#elif defined(__aarch64__) && defined(__linux__)
	uint64		ticks;

	__asm__ __volatile__("mrs %0, cntvct_el0":"=r"(ticks));
	return ticks;
#else
	return 0;
#endif
}

/*
 * After what came before it has ended.  A CPU that waits for memory goes on as
 * far as it can, and reads its counter meanwhile: without order, a call gets
 * what its caller was still waiting for.  System clocks read in order as well.
 */
static pg_attribute_always_inline uint64
tsc_ordered(void)
{
#if defined(__x86_64__)
	_mm_lfence();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb":::"memory");
#endif
	return tsc_now();
}

static pg_attribute_always_inline uint64
system_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64) now.tv_sec * 1000000000 + now.tv_nsec;
}

static pg_attribute_always_inline uint64
clock_ordered(ClockKind kind)
{
	return kind == KIND_TSC ? tsc_ordered() : system_now();
}

/*
 * Adds ticks of a clock to a node's time.  A call can be shorter than a ns:
 * what is left over goes with the next one.
 */
static pg_attribute_always_inline void
add_ticks(FastInstr *fi, ClockKind kind, uint64 ticks)
{
#ifdef HAVE_TSC
	if (kind == KIND_TSC)
	{
		unsigned __int128 ns;

		/* back in time: a virtual machine that was moved */
		if (unlikely((int64) ticks < 0))
			return;

#if PG_VERSION_NUM >= 190000
		if (fi->query->server_tsc)
		{
			fi->core.counter.ticks += ticks;
			return;
		}
#endif
		ns = (unsigned __int128) ticks * fast_tsc_scale + fi->fraction;
		fi->fraction = (uint32) ns;
		core_add_ns(&fi->core, (uint64) (ns >> 32));
		return;
	}
#endif
	core_add_ns(&fi->core, ticks);
}

/* Counts a call that has returned. */
static pg_attribute_always_inline void
count_call(FastInstr *fi, TupleTableSlot *slot)
{
	if (unlikely(!fi->core.running))
	{
		core_start_loop(&fi->core);
		fi->loops++;
	}
	if (!TupIsNull(slot))
		fi->core.tuplecount += 1.0;
}

#endif							/* FAST_CLOCK_H */
