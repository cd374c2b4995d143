/*-------------------------------------------------------------------------
 *
 * row.h
 *	  a row that an SQL function returns
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PFT_ROW_H
#define PFT_ROW_H

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"

struct Row
{
	int			length;
	Datum		values[48];
	bool		nulls[48];
};

static inline void
row_add(Row *row, Datum value)
{
	row->values[row->length++] = value;
}

/* Adds a text, or null. */
static inline void
row_add_text(Row *row, const char *text)
{
	row->nulls[row->length] = text == NULL;
	row_add(row, text != NULL ? CStringGetTextDatum(text) : (Datum) 0);
}

/* Returns the row as the result of the function, which must have as many columns. */
static inline Datum
row_result(FunctionCallInfo fcinfo, Row *row)
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

#endif							/* PFT_ROW_H */
