/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  the settings
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

#include "miscadmin.h"

const struct config_enum_entry pft_method_options[] = {
	{"off", METHOD_OFF, false},
	{"auto", METHOD_AUTO, false},
	{"tsc", METHOD_TSC, false},
	{NULL, 0, false}
};

static const struct config_enum_entry count_calls_options[] = {
	{"off", COUNT_NONE, false},
	{"top", COUNT_TOP, false},
	{"all", COUNT_ALL, false},
	{NULL, 0, false}
};

const struct config_enum_entry pft_ticker_options[] = {
	{"worker", TICKER_WORKER, false},
	{"thread", TICKER_THREAD, false},
	{"none", TICKER_NONE, false},
	{NULL, 0, false}
};

int			pft_method = METHOD_AUTO;
int			pft_count_calls = COUNT_NONE;
int			pft_ticker = TICKER_WORKER;
int			pft_sample_rate = 1000;	/* a tick takes 25 us on a virtual machine */
bool		pft_log_estimates = false;
bool		pft_profile = false;
double		pft_profile_sample_rate = -1;
int			pft_profile_max_nodes = 20000;

/* With compute_query_id = auto, the server computes identifiers if an extension needs them. */
static void
enable_queryid(bool profile, void *unused)
{
	if (profile)
		EnableQueryId();
}

void
pft_define_settings(void)
{
	DefineCustomEnumVariable("pg_fast_timing.method",
							 "Method that times plan nodes.",
							 "\"auto\" is exact while that is cheap, and then estimates.  \"off\" leaves it to the server.  \"tsc\" times every call with the CPU's counter.",
							 &pft_method, METHOD_AUTO, pft_method_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_fast_timing.count_calls",
							 "Selects the statements whose calls of plan nodes are counted.",
							 "\"off\" selects only those with EXPLAIN ANALYZE or auto_explain.log_analyze.  \"top\" adds those that clients send, "
							 "and \"all\" also those within functions.",
							 &pft_count_calls, COUNT_NONE, count_calls_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_fast_timing.ticker",
							 "Selects who writes the ticking clock.",
							 "\"worker\" is one background worker for all sessions, if the library is in shared_preload_libraries.  "
							 "\"thread\" is a thread in each backend that needs it.",
							 &pft_ticker, TICKER_WORKER, pft_ticker_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_fast_timing.sample_rate",
							"Ticks per second of the ticking clock.",
							NULL,
							&pft_sample_rate, 1000, 1, 10000,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_fast_timing.log_estimates",
							 "Logs one line before each plan of auto_explain whose times are estimates.",
							 NULL,
							 &pft_log_estimates, false,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_fast_timing.profile",
							 "Adds the plan nodes of each statement to pg_stat_plan_nodes.",
							 "The library must be in shared_preload_libraries.",
							 &pft_profile, false,
							 PGC_SUSET, 0, NULL, enable_queryid, NULL);
	DefineCustomRealVariable("pg_fast_timing.profile_sample_rate",
							 "Share of the statements that are profiled.",
							 "-1 profiles all long statements, and of short ones as many as take 1% of their time; each counts for several executions.",
							 &pft_profile_sample_rate, -1, -1, 1,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	/* Without shared memory, it has no effect, and cannot have the first context. */
	DefineCustomIntVariable("pg_fast_timing.profile_max_nodes",
							"Number of plan nodes for which the profile has memory.",
							NULL,
							&pft_profile_max_nodes, 20000, 100, MOST_NODES,
							process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_SIGHUP,
							0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("pg_fast_timing");
}
