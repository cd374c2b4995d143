/*-------------------------------------------------------------------------
 *
 * clock.c
 *	  what timing a call costs
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "clock.h"

ClockFacts	fast_clocks[2] = {{.ns_per_tick = 1.0, .stale = true}, {.stale = true}};

/* 64 pairs take 2 us, or 0.1 ms with the slowest clocks. */
#define PAIRS		64
#define ROUNDS		5

/*
 * What two reads leave between them, and what they cost together.  The median
 * of many, and the least of some: a few are interrupted.
 */
void
fast_clock_measure(ClockKind kind)
{
	uint64		windows[PAIRS];
	uint64		least = PG_UINT64_MAX;

	if (!fast_clocks[kind].stale)
		return;
	for (int round = 0; round < ROUNDS; round++)
	{
		uint64		start = clock_ordered(kind);
		uint64		end = start;

		for (int i = 0; i < 2 * PAIRS; i++)
			end = clock_ordered(kind);
		least = Min(least, end - start);
	}
	fast_clocks[kind].cost = (double) Max(least, 1) / PAIRS;

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
