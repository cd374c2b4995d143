/*-------------------------------------------------------------------------
 *
 * usage.h
 *	  exact BUFFERS and WAL of a plan node, at low cost
 *
 * Core copies all counters before each call, and adds all differences after it.
 * But counters only grow, so if their sum is unchanged, no counter has changed.  We
 * copy the counters only after their sum has changed.  Most calls then cost only
 * the addition of ten numbers.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_USAGE_H
#define FAST_USAGE_H

#include "instr.h"

#pragma GCC visibility push(hidden)

/* The counters that a node must maintain. */
typedef enum UsageKind
{
	USAGE_NONE,
	USAGE_BUFFERS,
	USAGE_ALL					/* buffers, WAL, and times of reads and writes */
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

/* Two counters are added at once: the first ten members of BufferUsage are int64. */
typedef uint64 Pair __attribute__((vector_size(16), aligned(8), may_alias));

StaticAssertDecl(offsetof(BufferUsage, temp_blks_written) == 9 * sizeof(int64),
				 "BufferUsage begins with ten counters");

/*
 * Returns the sum of the counters.  Times of reads and writes change only together
 * with the counts, so they are not in the sum.  The exception is a server that
 * counts a read at its start and waits for it later.
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

/* Copies the counters before a call. */
extern void usage_copy(FastInstr *fi, UsageKind kind, uint64 sum);

/* Adds the difference of the counters after a call. */
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
