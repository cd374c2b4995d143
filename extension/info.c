/*-------------------------------------------------------------------------
 *
 * info.c
 *	  pg_fast_timing_info(): the clock of this session, and the last statement
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "estimate.h"
#include "settings.h"
#include "statistics.h"
#include "ticker.h"
#include "tsc.h"

PG_FUNCTION_INFO_V1(pg_fast_timing_info);

/* number of columns in pg_fast_timing--1.0.sql */
#define COLUMNS		21

Datum
pg_fast_timing_info(PG_FUNCTION_ARGS)
{
	bool		usable = fast_tsc_usable();
	ClockKind	kind = usable ? KIND_TSC : KIND_SYSTEM;
	const LastStatement *last = &fast_last_statement;
	TupleDesc	tupdesc;
	Datum		values[COLUMNS];
	bool		nulls[COLUMNS] = {false};
	const char *ticker_reason;
	TickerKind	ticker_kind = ticker_now(&ticker_reason);
	int			n = 0;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (tupdesc->natts != COLUMNS)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the loaded library pg_fast_timing and its SQL function have different versions"),
				 errhint("Start a new session, or restart the server if the library is in shared_preload_libraries. "
						 "Then run: DROP EXTENSION pg_fast_timing; CREATE EXTENSION pg_fast_timing;")));
	fast_clock_measure(kind);

	values[n++] = CStringGetTextDatum(fast_method_name(fast_method));
	values[n++] = CStringGetTextDatum(usable ? "tsc" : "system");
	values[n++] = Float8GetDatum(fast_clocks[kind].cost * fast_clocks[kind].ns_per_tick);
	nulls[n] = usable;
	values[n++] = usable ? (Datum) 0 : CStringGetTextDatum(fast_tsc_reason());
	nulls[n] = !usable;
	values[n++] = Float8GetDatum(fast_tsc_khz());
	nulls[n] = !usable;
	values[n++] = Float8GetDatum(fast_tsc_uncertainty_ppm());
	values[n++] = Int32GetDatum(1000000000 / ticker_period_ns());
	values[n++] = CStringGetTextDatum(fast_ticker_name(ticker_kind));
	nulls[n] = ticker_reason == NULL;
	values[n++] = ticker_reason == NULL ? (Datum) 0 : CStringGetTextDatum(ticker_reason);
	values[n++] = Int32GetDatum(last->nodes);
	values[n++] = Int32GetDatum(last->estimated);
	values[n++] = Int64GetDatum(last->samples);
	values[n++] = Float8GetDatum(last->error_ns / 1e6);
	values[n++] = CStringGetTextDatum(fast_statistics_are_shared() ? "server" : "session");
	values[n++] = TimestampTzGetDatum(fast_statistics_since());
	for (int counter = 0; counter < COUNTERS; counter++)
		values[n++] = Int64GetDatum((int64) fast_statistics_get(counter));
	Assert(n == COLUMNS);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values, nulls)));
}
