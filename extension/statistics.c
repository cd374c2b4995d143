/*-------------------------------------------------------------------------
 *
 * statistics.c
 *	  what pg_fast_timing has done, for pg_fast_timing_info()
 *
 * With shared_preload_libraries, the counters are in shared memory, and all sessions
 * add to them.  Otherwise each session has its own counters.
 *
 * Many sessions that add to one counter at the same time would wait for its cache
 * line.  So there are several copies, each in its own cache line, and a session uses
 * one of them.  The result is their sum.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "statistics.h"

/* About the number of CPUs of a large host.  All copies together take 8 kB. */
#define COPIES			64

typedef union Copy
{
	pg_atomic_uint64 counters[COUNTERS];
	char		padding[PG_CACHE_LINE_SIZE];
} Copy;

StaticAssertDecl(sizeof(((Copy *) NULL)->counters) <= PG_CACHE_LINE_SIZE,
				 "the counters of a session are in one cache line");

typedef struct Statistics
{
	pg_atomic_uint64 since;		/* TimestampTz */
	Copy		copies[COPIES];
} Statistics;

/* The counters of this session, until the shared ones are found. */
static Statistics session_statistics;
static Statistics *statistics = NULL;

static void
initialize(Statistics *new)
{
	pg_atomic_init_u64(&new->since, (uint64) GetCurrentTimestamp());
	for (int copy = 0; copy < COPIES; copy++)
	{
		for (int counter = 0; counter < COUNTERS; counter++)
			pg_atomic_init_u64(&new->copies[copy].counters[counter], 0);
	}
}

Size
fast_statistics_size(void)
{
	return sizeof(Statistics);
}

void
fast_statistics_attach(void)
{
	bool		found;

	statistics = ShmemInitStruct("pg_fast_timing", sizeof(Statistics), &found);
	if (!found)
		initialize(statistics);
}

void
fast_statistics_init(void)
{
	if (process_shared_preload_libraries_in_progress)
		return;
	statistics = &session_statistics;
	initialize(statistics);
}

bool
fast_statistics_are_shared(void)
{
	return statistics != &session_statistics;
}

void
fast_statistics_add(Counter counter, uint64 n)
{
	if (n > 0)
		pg_atomic_fetch_add_u64(&statistics->copies[MyProcPid % COPIES].counters[counter], (int64) n);
}

uint64
fast_statistics_get(Counter counter)
{
	uint64		sum = 0;

	for (int copy = 0; copy < COPIES; copy++)
		sum += pg_atomic_read_u64(&statistics->copies[copy].counters[counter]);
	return sum;
}

TimestampTz
fast_statistics_since(void)
{
	return (TimestampTz) pg_atomic_read_u64(&statistics->since);
}

PG_FUNCTION_INFO_V1(pg_fast_timing_reset);

/* Sets all counters to zero.  What sessions add at the same time can be lost. */
Datum
pg_fast_timing_reset(PG_FUNCTION_ARGS)
{
	for (int copy = 0; copy < COPIES; copy++)
	{
		for (int counter = 0; counter < COUNTERS; counter++)
			pg_atomic_write_u64(&statistics->copies[copy].counters[counter], 0);
	}
	pg_atomic_write_u64(&statistics->since, (uint64) GetCurrentTimestamp());
	PG_RETURN_VOID();
}
