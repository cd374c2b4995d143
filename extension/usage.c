/*-------------------------------------------------------------------------
 *
 * usage.c
 *	  BUFFERS and WAL of a plan node: the case that a counter has changed
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "usage.h"

void
usage_copy(FastInstr *fi, UsageKind kind, uint64 sum)
{
	fi->buffers_start = pgBufferUsage;
	if (kind == USAGE_ALL)
		fi->wal_start = pgWalUsage;
	fi->usage_sum = sum;
}

void
usage_add(FastInstr *fi, UsageKind kind, uint64 sum)
{
	if (CORE_WANTS_BUFFERS(&fi->core))
		BufferUsageAccumDiff(&CORE_BUFFERS(&fi->core), &pgBufferUsage, &fi->buffers_start);
	if (CORE_WANTS_WAL(&fi->core))
		WalUsageAccumDiff(&CORE_WAL(&fi->core), &pgWalUsage, &fi->wal_start);
	usage_copy(fi, kind, sum);
}
