/*-------------------------------------------------------------------------
 *
 * info.c
 *	  the SQL function that describes this session
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"
#include "row.h"

static void
add_session(Row *row)
{
	bool		usable = pft_tsc_usable(true);
	ClockKind	kind = usable ? KIND_TSC : KIND_SYSTEM;
	const char *ticker_reason;
	TickerKind	ticker = pft_ticker_now(&ticker_reason);

	pft_clock_measure(kind);
	row_add_text(row, pft_method_options[pft_method].name);
	row_add_text(row, usable ? "tsc" : "system");
	row_add(row, Float8GetDatum(pft_clocks[kind].cost * pft_clocks[kind].ns_per_tick));
	row_add_text(row, pft_tsc_reason);
	row->nulls[row->length] = !usable;
	row_add(row, Float8GetDatum(pft_tsc_khz));
	row->nulls[row->length] = !usable;
	row_add(row, Float8GetDatum(pft_tsc_ppm));
	row_add(row, Int32GetDatum(1000000000 / pft_ticker_period_ns()));
	row_add_text(row, pft_ticker_options[ticker].name);
	row_add_text(row, ticker_reason);
	row_add(row, Int32GetDatum(pft_last.nodes));
	row_add(row, Int32GetDatum(pft_last.estimated));
	row_add(row, Int64GetDatum(pft_last.samples));
	row_add(row, Float8GetDatum(pft_last.error_ns / 1e6));
}

PG_FUNCTION_INFO_V1(pg_fast_timing_info);
PG_FUNCTION_INFO_V1(pg_fast_timing_info_1_1);

/* Version 1.0 of the extension had the counters in this function. */
Datum
pg_fast_timing_info(PG_FUNCTION_ARGS)
{
	Row			row = {0};

	add_session(&row);
	pft_counters_add_to(&row, TIMING_NS);
	return row_result(fcinfo, &row);
}

Datum
pg_fast_timing_info_1_1(PG_FUNCTION_ARGS)
{
	Row			row = {0};

	add_session(&row);
	return row_result(fcinfo, &row);
}
