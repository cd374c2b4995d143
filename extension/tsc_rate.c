/*-------------------------------------------------------------------------
 *
 * tsc_rate.c
 *	  how fast the CPU's counter counts, measured against the kernel's raw clock
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "clock.h"
#include "tsc.h"

/*
 * Brackets are some 30 ns wide: 3 ms apart they are sure to give the rate to
 * 10 ppm, and give it to 1 ppm as a rule.  It gets better with each statement.
 * What a forked backend takes over from the postmaster needs no more than a
 * look at whether it still holds.
 */
#define CALIBRATION_NS	3000000
#define CHECK_NS		200000
#define BRACKETS		100

/* Beyond that it is measured anew: the machine slept, or its clocks are slow. */
#define UNSURE_PPM		1000.0

/* It may be anything. */
#define NO_PPM			1e6

/* in place of a rate: the counter was caught at being wrong */
#define REFUSED			"refused"

/* only compiled, where there is no counter that we know */
#ifndef CLOCK_MONOTONIC_RAW
#define CLOCK_MONOTONIC_RAW CLOCK_MONOTONIC
#endif

uint64		fast_tsc_scale = 0;
char	   *fast_tsc_shared = NULL;

/* How fast the counter counts; it is sure to be within so many ppm. */
typedef struct Rate
{
	double		khz;			/* 0: not known */
	double		ppm;
} Rate;

static Rate known;
static Rate postmasters;		/* since its anchor; if nothing speaks against it */
static char rate_text[64];		/* what parallel workers are told */
static Bracket anchor;			/* what the rate is measured from */
static pid_t anchored_by = 0;

double
fast_tsc_khz(void)
{
	return known.khz;
}

double
fast_tsc_uncertainty_ppm(void)
{
	return known.ppm;
}

bool
fast_tsc_readable(void)
{
	return known.khz != 0;
}

/* Not CLOCK_MONOTONIC: NTP slews that by 500 ppm, and chrony by 8%. */
Bracket
fast_bracket(void)
{
	Bracket		look;
	struct timespec now;

	look.tsc = tsc_now();
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	look.width = tsc_ordered() - look.tsc;
	look.tsc += look.width / 2;
	look.ns = (uint64) now.tv_sec * 1000000000 + now.tv_nsec;
	return look;
}

static Bracket
narrowest_bracket(void)
{
	Bracket		best = fast_bracket();

	for (int i = 1; i < BRACKETS; i++)
	{
		Bracket		next = fast_bracket();

		if (next.width < best.width)
			best = next;
	}
	return best;
}

static void
set_rate(double khz, double ppm)
{
	known.khz = khz;
	known.ppm = ppm;
	snprintf(rate_text, sizeof(rate_text), "%.4f %.3f", khz, ppm);
	fast_tsc_scale = (uint64) (1e6 / khz * 4294967296.0 + 0.5);
	fast_clocks[KIND_TSC].ns_per_tick = 1e6 / khz;
}

/*
 * Between two looks; the longer apart, the better.  The ends of a bracket are
 * uncertain by half its width, a tick and a ns.  False if that is no rate that
 * a CPU has.
 */
static bool
rate_between(Bracket start, Bracket end, Rate *rate)
{
	double		ticks = (double) (end.tsc - start.tsc);
	double		ns = (double) (end.ns - start.ns);

	if (end.tsc <= start.tsc || end.ns <= start.ns)
		return false;
	rate->khz = ticks / ns * 1e6;
	rate->ppm = (((start.width + end.width) / 2.0 + 2) / ticks + 2 / ns) * 1e6;
	return rate->khz > 1e3 && rate->khz < 1e8;
}

static double
apart_ppm(Rate a, Rate b)
{
	return fabs(a.khz / b.khz - 1) * 1e6;
}

static bool
agree(Rate a, Rate b)
{
	return apart_ppm(a, b) <= a.ppm + b.ppm;
}

static void
anchor_at(Bracket look)
{
	anchor = look;
	anchored_by = MyProcPid;
}

/*
 * Takes a rate that was measured here; or the postmaster's, over hours, which
 * agrees with it.  How sure that is, is for the one from here to say: the
 * machine may have slept between the two.
 */
static void
settle(Rate here)
{
	if (postmasters.khz != 0 && postmasters.ppm < here.ppm)
		set_rate(postmasters.khz, apart_ppm(postmasters, here) + here.ppm);
	else
		set_rate(here.khz, here.ppm);
}

/* Whether a look tells the rate that is known. */
static bool
confirmed(Bracket now, Rate *here)
{
	return rate_between(anchor, now, here) && agree(*here, known) &&
		(postmasters.khz == 0 || agree(*here, postmasters));
}

/* Makes the rate better by one more look, if it can. */
void
fast_rate_refine(Bracket now)
{
	Rate		here;

	/* a parallel worker has its leader's rate, and an anchor of the postmaster's */
	if (anchored_by != MyProcPid)
		return;
	/* an interrupted look has seen little, and is nothing to begin anew from */
	if (!confirmed(now, &here) && !confirmed(now = narrowest_bracket(), &here))
	{
		/* the machine slept or was moved: before it was known, or since then */
		bool		rate = rate_between(anchor, now, &here);

		anchor_at(now);
		postmasters.khz = 0;
		set_rate(known.khz, rate ? known.ppm + apart_ppm(here, known) + here.ppm : NO_PPM);
	}
	/* it never gets worse by that: apart by no more than both */
	else if (here.ppm < known.ppm / 3)
		settle(here);
}

/*
 * A signal ends a sleep.  None is longer than asked for: a clock that has gone
 * back meanwhile would make it hours.
 */
static void
wait_since(Bracket start, int64 ns)
{
	for (int sleeps = 0; sleeps < 10; sleeps++)
	{
		int64		left = Min(ns, ns - (int64) (fast_bracket().ns - start.ns));

		if (left <= 0)
			break;
		pg_usleep(left / 1000 + 1);
	}
}

/*
 * The postmaster's anchor gives the rate at once, to next to nothing; unless
 * the machine slept or was moved since then.  A short look tells.
 */
static bool
take_postmasters_rate(Bracket start)
{
	Rate		here;

	postmasters.khz = 0;
	if (anchored_by == 0 || anchored_by == MyProcPid || !rate_between(anchor, start, &postmasters))
		return false;
	wait_since(start, CHECK_NS);
	if (!rate_between(start, narrowest_bracket(), &here) || !agree(postmasters, here))
	{
		postmasters.khz = 0;
		return false;
	}
	settle(here);
	return true;
}

static bool
calibrate(void)
{
	Rate		rate;

	if (anchored_by != MyProcPid)
	{
		Bracket		start = narrowest_bracket();
		bool		taken = take_postmasters_rate(start);

		anchor_at(start);
		if (taken)
			return true;
	}
	wait_since(anchor, CALIBRATION_NS);
	if (!rate_between(anchor, narrowest_bracket(), &rate))
	{
		/* the next time it begins anew */
		anchored_by = 0;
		return false;
	}
	if (known.khz == 0 || rate.ppm < known.ppm)
		settle(rate);
	return true;
}

/*
 * A parallel worker lives for milliseconds: it takes its leader's rate, which
 * reaches it as a setting.
 */
static bool
take_leaders_rate(void)
{
	double		its_khz;
	double		its_ppm;

	if (!IsParallelWorker() || fast_tsc_shared == NULL ||
		sscanf(fast_tsc_shared, "%lf %lf", &its_khz, &its_ppm) != 2 ||
		!(its_khz > 1e3 && its_khz < 1e8))
		return false;
	set_rate(its_khz, its_ppm);
	return true;
}

void
fast_tsc_share(void)
{
	if (known.khz == 0 || IsInParallelMode() || IsParallelWorker())
		return;
	/* RESET ALL or a rollback takes it back */
	if (fast_tsc_shared == NULL || strcmp(rate_text, fast_tsc_shared) != 0)
		SetConfigOption("pg_fast_timing.tsc_rate", rate_text, PGC_SUSET, PGC_S_SESSION);
}

/* Nor are parallel workers to use it. */
void
fast_rate_refuse(void)
{
	snprintf(rate_text, sizeof(rate_text), REFUSED);
}

bool
fast_rate_refused(void)
{
	return IsParallelWorker() && fast_tsc_shared != NULL && strcmp(fast_tsc_shared, REFUSED) == 0;
}

/* Whether it is known as well as it needs to be. */
bool
fast_rate_sure(void)
{
	return known.ppm <= UNSURE_PPM;
}

/* The first look: by the time that the rate is wanted, nobody needs to wait for it. */
void
fast_rate_anchor(void)
{
	anchor_at(narrowest_bracket());
}

/* Has a rate, as good as can be had now.  False if there is none. */
bool
fast_rate_measure(void)
{
	if (known.khz == 0)
		return take_leaders_rate() || calibrate();
	fast_rate_refine(narrowest_bracket());
	/* a worker lives for too short a time, and has its leader's word */
	return fast_rate_sure() || IsParallelWorker() || calibrate();
}
