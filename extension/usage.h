/*-------------------------------------------------------------------------
 *
 * usage.h
 *	  BUFFERS and WAL of a plan node, exact, for next to nothing
 *
 * Core copies all counters as a node is entered and adds up all differences
 * as it is left.  But the counters only grow: as long as their sum is the
 * same, so is each of them.  So we keep the copy of the last time that the
 * sum had changed, and most calls cost no more than adding ten numbers.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_USAGE_H
#define FAST_USAGE_H

#include "pg_fast_timing.h"

#pragma GCC visibility push(hidden)

/* Which counters a node is asked for. */
typedef enum UsageKind
{
	USAGE_NONE,
	USAGE_BUFFERS,
	USAGE_ALL					/* buffers, WAL, and what reads and writes take */
} UsageKind;

static inline UsageKind
usage_kind(const FastInstr *fi)
{
	if (CORE_WANTS_WAL(&fi->core))
		return USAGE_ALL;
	if (!CORE_WANTS_BUFFERS(&fi->core))
		return USAGE_NONE;
	return IO_TIMES_COME_LATER && track_io_timing ? USAGE_ALL : USAGE_BUFFERS;
}

/* Two counters at a time: the first ten members of BufferUsage are int64. */
typedef uint64 Pair __attribute__((vector_size(16), aligned(8), may_alias));

StaticAssertDecl(offsetof(BufferUsage, temp_blks_written) == 9 * sizeof(int64),
				 "BufferUsage begins with ten counters");

/*
 * Times of reads and writes grow with the counts, and need no place in the sum;
 * unless the server counts what it begins to read, and waits for it later.
 */
static pg_attribute_always_inline uint64
usage_sum(UsageKind kind)
{
	const Pair *counts = (const Pair *) &pgBufferUsage;
	Pair		two = (counts[0] + counts[1]) + (counts[2] + counts[3]) + counts[4];
	uint64		sum = two[0] + two[1];

	if (kind == USAGE_ALL)
		sum += pgWalUsage.wal_records + pgWalUsage.wal_fpi + pgWalUsage.wal_bytes + io_times();
	return sum;
}

/* The counters have changed: from here on. */
extern void usage_copy(FastInstr *fi, UsageKind kind, uint64 sum);

/* The counters have changed in a call: gives it the difference. */
extern void usage_add(FastInstr *fi, UsageKind kind, uint64 sum);

static pg_attribute_always_inline void
usage_enter(FastInstr *fi, UsageKind kind)
{
	uint64		sum = usage_sum(kind);

	if (unlikely(sum != fi->usage_sum))
		usage_copy(fi, kind, sum);
}

static pg_attribute_always_inline void
usage_leave(FastInstr *fi, UsageKind kind)
{
	uint64		sum = usage_sum(kind);

	if (unlikely(sum != fi->usage_sum))
		usage_add(fi, kind, sum);
}

#pragma GCC visibility pop

#endif							/* FAST_USAGE_H */
