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

/* Which counters a node is asked for. */
typedef enum UsageKind
{
	USAGE_NONE,
	USAGE_BUFFERS,
	USAGE_WAL					/* and perhaps buffers */
} UsageKind;

static inline UsageKind
usage_kind(const FastInstr *fi)
{
	if (CORE_WANTS_WAL(&fi->core))
		return USAGE_WAL;
	return CORE_WANTS_BUFFERS(&fi->core) ? USAGE_BUFFERS : USAGE_NONE;
}

/* Times of reads and writes need no place in it: they grow with the counts. */
static pg_attribute_always_inline uint64
usage_sum(UsageKind kind)
{
	const BufferUsage *b = &pgBufferUsage;
	uint64		sum;

	sum = b->shared_blks_hit + b->shared_blks_read +
		b->shared_blks_dirtied + b->shared_blks_written +
		b->local_blks_hit + b->local_blks_read +
		b->local_blks_dirtied + b->local_blks_written +
		b->temp_blks_read + b->temp_blks_written;
	if (kind == USAGE_WAL)
		sum += pgWalUsage.wal_records + pgWalUsage.wal_fpi + pgWalUsage.wal_bytes;
	return sum;
}

static inline void
usage_copy(FastInstr *fi, UsageKind kind, uint64 sum)
{
	fi->buffers_start = pgBufferUsage;
	if (kind == USAGE_WAL)
		fi->wal_start = pgWalUsage;
	fi->usage_sum = sum;
}

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

	if (likely(sum == fi->usage_sum))
		return;
	if (CORE_WANTS_BUFFERS(&fi->core))
		BufferUsageAccumDiff(&CORE_BUFFERS(&fi->core), &pgBufferUsage, &fi->buffers_start);
	if (kind == USAGE_WAL)
		WalUsageAccumDiff(&CORE_WAL(&fi->core), &pgWalUsage, &fi->wal_start);
	usage_copy(fi, kind, sum);
}

#endif							/* FAST_USAGE_H */
