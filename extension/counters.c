/*-------------------------------------------------------------------------
 *
 * counters.c
 *	  the counters of pg_stat_fast_timing
 *
 * With shared_preload_libraries, the counters are in shared memory, and all
 * sessions add to them.  Otherwise each session has its own.
 *
 * Many sessions that add to one counter at the same time would wait for its cache
 * line.  So there are several copies, each in its own cache line, and a session
 * uses one of them.  The result is their sum.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"
#include "row.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

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
static Statistics of_session;
static Statistics *statistics = &of_session;

Size
pft_counters_size(void)
{
	return sizeof(Statistics);
}

/* Sets all counters to zero. */
void
pft_counters_reset(void)
{
	memset(statistics, 0, sizeof(Statistics));
	pg_atomic_write_u64(&statistics->since, (uint64) GetCurrentTimestamp());
}

/* Called while no backend runs, also after a crash. */
void
pft_counters_attach(void *memory, bool found)
{
	statistics = memory;
	if (!found)
		pft_counters_reset();
}

/* Adds to a counter.  Takes no lock, and raises no error. */
void
pft_count(Counter counter, uint64 n)
{
	if (n > 0)
		pg_atomic_fetch_add_u64(&statistics->copies[MyProcPid % COPIES].counters[counter], (int64) n);
}

static uint64
sum_of(Counter counter)
{
	uint64		sum = 0;

	for (int copy = 0; copy < COPIES; copy++)
		sum += pg_atomic_read_u64(&statistics->copies[copy].counters[counter]);
	return sum;
}

/* Adds the counters before `after_last`, and what they are about. */
void
pft_counters_add_to(Row *row, Counter after_last)
{
	row_add_text(row, statistics != &of_session ? "server" : "session");
	row_add(row, TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&statistics->since)));
	for (int counter = 0; counter < after_last; counter++)
	{
		if (counter == TIMING_NS)
			row_add(row, Float8GetDatum(sum_of(TIMING_NS) / 1e6));
		else
			row_add(row, Int64GetDatum((int64) sum_of(counter)));
	}
}

PG_FUNCTION_INFO_V1(pg_fast_timing_counters);
PG_FUNCTION_INFO_V1(pg_fast_timing_reset);

Datum
pg_fast_timing_counters(PG_FUNCTION_ARGS)
{
	Row			row = {0};

	pft_counters_add_to(&row, COUNTERS);
	return row_result(fcinfo, &row);
}

/* What sessions add at the same time can be lost. */
Datum
pg_fast_timing_reset(PG_FUNCTION_ARGS)
{
	pft_counters_reset();
	PG_RETURN_VOID();
}
