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

#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_parameter_acl.h"
#include "miscadmin.h"
#include "utils/acl.h"
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

static const struct config_enum_entry ticker_options[] = {
	{"worker", TICKER_WORKER, false},
	{"thread", TICKER_THREAD, false},
	{"none", TICKER_NONE, false},
	{NULL, 0, false}
};

int			fast_method = METHOD_AUTO;
int			fast_count_calls = COUNT_NONE;
int			fast_ticker = TICKER_WORKER;
int			fast_sample_rate = 0;
bool		fast_log_estimates = false;

/* Ticks at 1 kHz take at most 0.5% of a core, if a tick takes 5 us. */
#define DEFAULT_RATE	1000

uint64
fast_tick_period_ns(void)
{
	return 1000000000 / (fast_sample_rate > 0 ? fast_sample_rate : DEFAULT_RATE);
}

static const char *
option_name(const struct config_enum_entry *options, int value)
{
	for (; options->name != NULL; options++)
	{
		if (options->val == value)
			return options->name;
	}
	return "?";
}

/* Returns the name of a method, as in the setting. */
const char *
fast_method_name(Method method)
{
	return option_name(method_options, (int) method);
}

/* Returns the name of a ticker, as in the setting. */
const char *
fast_ticker_name(int kind)
{
	return option_name(ticker_options, kind);
}

/* Returns whether a user may choose any method. */
static bool
may_choose(Oid user)
{
	return superuser_arg(user) || pg_parameter_aclcheck(METHOD_SETTING, user, ACL_SET) == ACLCHECK_OK;
}

/* The value is checked because the library is being loaded: it was set before. */
static bool set_before_loading = false;

/* Outside of a transaction, privileges cannot be read. */
static bool
may_set_method(void)
{
	if (!IsTransactionState())
		return strcmp(GetConfigOption("is_superuser", false, false), "on") == 0;
	return may_choose(GetUserId()) && (!set_before_loading || may_choose(GetSessionUserId()));
}

/*
 * Any user can turn the extension off for a session.  Other methods need the rights
 * of a superuser, or the privilege to set the parameter, as parameters do that only
 * superusers can set.
 *
 * Before the library is loaded, the server accepts any value from any user.  The user
 * whose call loads the library can be another one: the owner of a function with
 * SECURITY DEFINER.  So the session's user is checked, too.
 *
 * Values in the configuration come from the administrator, and ALTER has checked those
 * of databases and roles.
 */
static bool
check_method(int *method, void **extra, GucSource source)
{
	bool		by_user = source == PGC_S_CLIENT || source >= PGC_S_INTERACTIVE;

	if (*method == METHOD_OFF || !by_user || InitializingParallelWorker || may_set_method())
		return true;
	GUC_check_errcode(ERRCODE_INSUFFICIENT_PRIVILEGE);
	GUC_check_errmsg("permission denied to set parameter \"pg_fast_timing.method\" to \"%s\"",
					 fast_method_name(*method));
	GUC_check_errhint("Any user can set it to \"off\", and RESET it.");
	return false;
}

void
fast_define_settings(void)
{
	set_before_loading = true;
	DefineCustomEnumVariable(METHOD_SETTING,
							 "Method that times plan nodes.",
							 "auto: exact while cheap, then sampled; off: by the server; "
							 "tsc: every call, with the CPU's counter; sampling: with a ticking clock.",
							 &fast_method, METHOD_AUTO, method_options,
							 PGC_USERSET, 0, check_method, NULL, NULL);
	set_before_loading = false;
	DefineCustomEnumVariable("pg_fast_timing.count_calls",
							 "Selects the statements whose calls of plan nodes are counted.",
							 "off: only those with EXPLAIN ANALYZE or auto_explain.log_analyze; top: also those that clients send; "
							 "all: also those within functions.",
							 &fast_count_calls, COUNT_NONE, count_calls_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_fast_timing.ticker",
							 "Selects who writes the sampling clock.",
							 "worker: one background worker for all sessions, if the library is in shared_preload_libraries; "
							 "thread: a thread in each backend that needs it; none: no ticks.",
							 &fast_ticker, TICKER_WORKER, ticker_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_fast_timing.sample_rate",
							"Ticks per second of the sampling clock.",
							"0 selects the default rate.",
							&fast_sample_rate, 0, 0, 10000,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_fast_timing.log_estimates",
							 "Logs one line before each plan of auto_explain whose times are estimates.",
							 NULL,
							 &fast_log_estimates, false,
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
