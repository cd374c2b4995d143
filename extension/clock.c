/*-------------------------------------------------------------------------
 *
 * clock.c
 *	  measures the cost of timing a call
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "clock.h"

ClockFacts	fast_clocks[2] = {{.ns_per_tick = 1.0, .stale = true}, {.stale = true}};

/* 64 pairs of reads take 2 us, or 0.1 ms with the slowest clocks. */
#define PAIRS		64
#define ROUNDS		5

/*
 * Measures the time between two reads, and the cost of two reads.  The median
 * and the minimum ignore interruptions.
 */
void
fast_clock_measure(ClockKind kind)
{
	uint64		windows[PAIRS];
	uint64		fastest = PG_UINT64_MAX;

	if (!fast_clocks[kind].stale)
		return;
	for (int round = 0; round < ROUNDS; round++)
	{
		uint64		start = clock_ordered(kind);
		uint64		end = start;

		for (int i = 0; i < 2 * PAIRS; i++)
			end = clock_ordered(kind);
		fastest = Min(fastest, end - start);
	}
	fast_clocks[kind].cost = (double) Max(fastest, 1) / PAIRS;

	for (int i = 0; i < PAIRS; i++)
	{
		uint64		before = clock_ordered(kind);
		uint64		window = clock_ordered(kind) - before;
		int			at = i;

		for (; at > 0 && windows[at - 1] > window; at--)
			windows[at] = windows[at - 1];
		windows[at] = window;
	}
	fast_clocks[kind].window = windows[PAIRS / 2];
	fast_clocks[kind].stale = false;
}
