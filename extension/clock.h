/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  the clocks that time calls
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

#include "instr.h"

#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__linux__)
#define HAVE_TSC 1
#endif

/* Measured properties of a clock. */
typedef struct ClockFacts
{
	double		ns_per_tick;
	uint64		window;			/* ticks between two consecutive reads */
	double		cost;			/* cost of timing a call, in ticks */
	bool		stale;			/* must be measured again */
} ClockFacts;

#pragma GCC visibility push(hidden)
extern ClockFacts fast_clocks[2];

/* Measures the cost of a clock, if it is stale. */
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
 * Reads the counter after all earlier instructions.  Without this order, a CPU
 * that waits for memory reads its counter too early, and a call gets a part of
 * its caller's time.  System clocks are also read in order.
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

#endif							/* FAST_CLOCK_H */
