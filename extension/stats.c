/*-------------------------------------------------------------------------
 *
 * stats.c
 *	  the counters, the shared memory, and the SQL functions
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

#include "access/htup_details.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
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

static shmem_request_hook_type prev_shmem_request = NULL;
static shmem_startup_hook_type prev_shmem_startup = NULL;

/* Sets all counters to zero. */
static void
reset(void)
{
	memset(statistics, 0, sizeof(Statistics));
	pg_atomic_write_u64(&statistics->since, (uint64) GetCurrentTimestamp());
}

static void
request_memory(void)
{
	if (prev_shmem_request)
		prev_shmem_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(Statistics)) + MAXALIGN(pft_ticker_size()) + MAXALIGN(pft_clock_size()) +
						   MAXALIGN(pft_waits_size()) + pft_profile_size());
	RequestNamedLWLockTranche(PFT_TRANCHE, 2);
}

static void
find_memory(void)
{
	bool		found;

	if (prev_shmem_startup)
		prev_shmem_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	statistics = ShmemInitStruct("pg_fast_timing", sizeof(Statistics), &found);
	if (!found)
		reset();
	pft_ticker_attach(ShmemInitStruct("pg_fast_timing ticker", pft_ticker_size(), &found), found);
	pft_clock_attach(ShmemInitStruct("pg_fast_timing clock", pft_clock_size(), &found), found);
	pft_waits_attach(ShmemInitStruct("pg_fast_timing waits", pft_waits_size(), &found), found);
	pft_profile_attach();
	LWLockRelease(AddinShmemInitLock);
}

/* Requests shared memory, if the library is in shared_preload_libraries. */
void
pft_stats_init(void)
{
	reset();
	if (!process_shared_preload_libraries_in_progress)
		return;
	prev_shmem_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	prev_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = find_memory;
}

/* Adds to a counter.  Takes no lock, and raises no error. */
void
pft_stats_add(Counter counter, uint64 n)
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

void
pft_add(Row *row, Datum value)
{
	row->values[row->length++] = value;
}

/* Adds a text, or null. */
void
pft_add_text(Row *row, const char *text)
{
	row->nulls[row->length] = text == NULL;
	pft_add(row, text != NULL ? CStringGetTextDatum(text) : (Datum) 0);
}

static void
add_session(Row *row)
{
	bool		usable = pft_tsc_usable(true);
	ClockKind	kind = usable ? KIND_TSC : KIND_SYSTEM;
	const char *ticker_reason;
	TickerKind	ticker = pft_ticker_now(&ticker_reason);

	pft_clock_measure(kind);
	pft_add_text(row, pft_method_options[pft_method].name);
	pft_add_text(row, usable ? "tsc" : "system");
	pft_add(row, Float8GetDatum(pft_clocks[kind].cost * pft_clocks[kind].ns_per_tick));
	pft_add_text(row, pft_tsc_reason);
	row->nulls[row->length] = !usable;
	pft_add(row, Float8GetDatum(pft_tsc_khz));
	row->nulls[row->length] = !usable;
	pft_add(row, Float8GetDatum(pft_tsc_ppm));
	pft_add(row, Int32GetDatum(1000000000 / pft_ticker_period_ns()));
	pft_add_text(row, pft_ticker_options[ticker].name);
	pft_add_text(row, ticker_reason);
	pft_add(row, Int32GetDatum(pft_last.nodes));
	pft_add(row, Int32GetDatum(pft_last.estimated));
	pft_add(row, Int64GetDatum(pft_last.samples));
	pft_add(row, Float8GetDatum(pft_last.error_ns / 1e6));
}

static void
add_counters(Row *row, Counter after_last)
{
	pft_add_text(row, statistics != &of_session ? "server" : "session");
	pft_add(row, TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&statistics->since)));
	for (int counter = 0; counter < after_last; counter++)
	{
		if (counter == TIMING_NS)
			pft_add(row, Float8GetDatum(sum_of(TIMING_NS) / 1e6));
		else
			pft_add(row, Int64GetDatum((int64) sum_of(counter)));
	}
}

/* Returns the row as the result of the function, which must have as many columns. */
Datum
pft_result(FunctionCallInfo fcinfo, Row *row)
{
	TupleDesc	tupdesc;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (tupdesc->natts != row->length)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the loaded library pg_fast_timing and its SQL function have different versions"),
				 errhint("Start a new session, or restart the server if the library is in shared_preload_libraries. "
						 "Then run: ALTER EXTENSION pg_fast_timing UPDATE;")));
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), row->values, row->nulls));
}

PG_FUNCTION_INFO_V1(pg_fast_timing_info);
PG_FUNCTION_INFO_V1(pg_fast_timing_info_1_1);
PG_FUNCTION_INFO_V1(pg_fast_timing_counters);
PG_FUNCTION_INFO_V1(pg_fast_timing_reset);

/* Version 1.0 of the extension had the counters in this function. */
Datum
pg_fast_timing_info(PG_FUNCTION_ARGS)
{
	Row			row = {0};

	add_session(&row);
	add_counters(&row, TIMING_NS);
	return pft_result(fcinfo, &row);
}

Datum
pg_fast_timing_info_1_1(PG_FUNCTION_ARGS)
{
	Row			row = {0};

	add_session(&row);
	return pft_result(fcinfo, &row);
}

Datum
pg_fast_timing_counters(PG_FUNCTION_ARGS)
{
	Row			row = {0};

	add_counters(&row, COUNTERS);
	return pft_result(fcinfo, &row);
}

/* What sessions add at the same time can be lost. */
Datum
pg_fast_timing_reset(PG_FUNCTION_ARGS)
{
	reset();
	PG_RETURN_VOID();
}
