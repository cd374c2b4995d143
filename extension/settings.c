/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  the settings of pg_fast_timing
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/guc.h"

#include "settings.h"
#include "tsc_share.h"

static const struct config_enum_entry method_options[] = {
	{"auto", METHOD_AUTO, false},
	{"off", METHOD_OFF, false},
	{"tsc", METHOD_TSC, false},
	{"sampling", METHOD_SAMPLING, false},
	{NULL, 0, false}
};

static const struct config_enum_entry count_calls_options[] = {
	{"off", COUNT_NONE, false},
	{"top", COUNT_TOP, false},
	{"all", COUNT_ALL, false},
	{NULL, 0, false}
};

int			fast_method = METHOD_AUTO;
int			fast_count_calls = COUNT_NONE;
int			fast_sample_rate = 0;

/* Returns the name of a method, as in the setting. */
const char *
fast_method_name(Method method)
{
	for (const struct config_enum_entry *option = method_options; option->name != NULL; option++)
	{
		if (option->val == (int) method)
			return option->name;
	}
	return "?";
}

void
fast_define_settings(void)
{
	DefineCustomEnumVariable("pg_fast_timing.method",
							 "Method that times plan nodes.",
							 "auto: exact while cheap, then sampled; off: by the server; "
							 "tsc: every call, with the CPU's counter; sampling: with a ticking clock.",
							 &fast_method, METHOD_AUTO, method_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_fast_timing.count_calls",
							 "Statements whose calls of plan nodes are counted.",
							 "off: those with EXPLAIN ANALYZE or auto_explain.log_analyze; top: those of clients; "
							 "all: also those within functions.",
							 &fast_count_calls, COUNT_NONE, count_calls_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_fast_timing.sample_rate",
							"Ticks per second of the sampling clock.",
							"0 selects the default rate.",
							&fast_sample_rate, 0, 0, 10000,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("pg_fast_timing.tsc_rate",
							   "Measured rate of the CPU's counter, for parallel workers.",
							   NULL,
							   &fast_tsc_shared, "",
							   PGC_SUSET,
							   GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   NULL, NULL, NULL);
	MarkGUCPrefixReserved("pg_fast_timing");
}
