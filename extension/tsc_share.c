/*-------------------------------------------------------------------------
 *
 * tsc_share.c
 *	  shares the rate of the CPU's counter with parallel workers
 *
 * A worker ends too soon to measure a rate, so it uses its leader's rate, which
 * comes as a setting.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "utils/guc.h"

#include "tsc_share.h"

/* Value of the setting instead of a rate: workers must not use the counter. */
#define REFUSED			"refused"

char	   *fast_tsc_shared = NULL;

/* what the setting shall contain; empty if no rate is known */
static char rate_text[64];

void
fast_share_rate(double khz, double ppm)
{
	snprintf(rate_text, sizeof(rate_text), "%.4f %.3f", khz, ppm);
}

void
fast_share_refusal(void)
{
	snprintf(rate_text, sizeof(rate_text), REFUSED);
}

void
fast_tsc_share(void)
{
	if (rate_text[0] == '\0' || IsInParallelMode() || IsParallelWorker())
		return;
	/* RESET ALL or a rollback can have reset it. */
	if (fast_tsc_shared == NULL || strcmp(rate_text, fast_tsc_shared) != 0)
		SetConfigOption("pg_fast_timing.tsc_rate", rate_text, PGC_SUSET, PGC_S_SESSION);
}

bool
fast_leaders_rate(double *khz, double *ppm)
{
	return IsParallelWorker() && fast_tsc_shared != NULL &&
		sscanf(fast_tsc_shared, "%lf %lf", khz, ppm) == 2;
}

bool
fast_leader_refuses(void)
{
	return IsParallelWorker() && fast_tsc_shared != NULL && strcmp(fast_tsc_shared, REFUSED) == 0;
}
