/*-------------------------------------------------------------------------
 *
 * tsc_rate.c
 *	  measures the rate of the CPU's counter against the kernel's raw clock
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"
#include "miscadmin.h"

#include "clock.h"
#include "tsc_rate.h"
#include "tsc_share.h"

/*
 * A pair of readings is about 30 ns wide.  Two pairs 3 ms apart give the rate
 * with a bound of 10 ppm and a usual error of 1 ppm.  Each statement improves
 * it.  A rate that a forked backend inherits from the postmaster only needs a
 * short check.
 */
#define CALIBRATION_NS	3000000
#define CHECK_NS		200000
#define PAIRS			100

/* With a larger uncertainty the rate is measured again: the machine slept, or its clocks are slow. */
#define MAX_UNCERTAINTY_PPM		1000.0

/* Uncertainty of an unknown rate. */
#define UNKNOWN_PPM			1e6

/* For platforms without a known counter.  This code is compiled there, but never runs. */
#ifndef CLOCK_MONOTONIC_RAW
#define CLOCK_MONOTONIC_RAW CLOCK_MONOTONIC
#endif

uint64		fast_tsc_scale = 0;

/* A rate with a bound on its error. */
typedef struct Rate
{
	double		khz;			/* 0: unknown */
	double		ppm;
} Rate;

static Rate known;
static Rate postmaster_rate;		/* rate since the postmaster's anchor; khz is 0 if
								 * it is not valid */
static ClockPair anchor;		/* start of the measurement */
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

/*
 * Reads both clocks.  CLOCK_MONOTONIC is not suitable: ntpd slews it by up to
 * 500 ppm, and chrony by up to 8%.
 */
ClockPair
fast_read_pair(void)
{
	ClockPair	pair;
	struct timespec now;

	pair.tsc = tsc_now();
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	pair.width = tsc_ordered() - pair.tsc;
	pair.tsc += pair.width / 2;
	pair.ns = (uint64) now.tv_sec * 1000000000 + now.tv_nsec;
	return pair;
}

/* Returns the narrowest of many pairs. */
static ClockPair
narrowest_pair(void)
{
	ClockPair	best = fast_read_pair();

	for (int i = 1; i < PAIRS; i++)
	{
		ClockPair	next = fast_read_pair();

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
	fast_share_rate(khz, ppm);
	fast_tsc_scale = (uint64) (1e6 / khz * 4294967296.0 + 0.5);
	fast_clocks[KIND_TSC].ns_per_tick = 1e6 / khz;
}

/* Returns whether a CPU can have this rate.  It is false if `khz` is not a number. */
static bool
possible_khz(double khz)
{
	return khz > 1e3 && khz < 1e8;
}

/*
 * Computes the rate between two pairs.  Each pair has an error of half its width,
 * a tick and a ns.  Returns false if no CPU has such a rate.
 */
static bool
rate_between(ClockPair start, ClockPair end, Rate *rate)
{
	double		ticks = (double) (end.tsc - start.tsc);
	double		ns = (double) (end.ns - start.ns);

	if (end.tsc <= start.tsc || end.ns <= start.ns)
		return false;
	rate->khz = ticks / ns * 1e6;
	rate->ppm = (((start.width + end.width) / 2.0 + 2) / ticks + 2 / ns) * 1e6;
	return possible_khz(rate->khz);
}

static double
difference_ppm(Rate a, Rate b)
{
	return fabs(a.khz / b.khz - 1) * 1e6;
}

static bool
agree(Rate a, Rate b)
{
	return difference_ppm(a, b) <= a.ppm + b.ppm;
}

static void
anchor_at(ClockPair pair)
{
	anchor = pair;
	anchored_by = MyProcPid;
}

/*
 * Stores the more precise of two rates: this process's and the postmaster's.  The
 * postmaster's rate gets their difference plus this process's uncertainty, because
 * the machine may have slept between the two measurements.
 */
static void
use_rate(Rate here)
{
	if (postmaster_rate.khz != 0 && postmaster_rate.ppm < here.ppm)
		set_rate(postmaster_rate.khz, difference_ppm(postmaster_rate, here) + here.ppm);
	else
		set_rate(here.khz, here.ppm);
}

/* Returns whether the rate since the anchor agrees with the known rate. */
static bool
confirms(ClockPair now, Rate *here)
{
	return rate_between(anchor, now, here) && agree(*here, known) &&
		(postmaster_rate.khz == 0 || agree(*here, postmaster_rate));
}

/* Improves the rate with one more pair, if possible. */
void
fast_rate_refine(ClockPair now)
{
	Rate		here;

	/* A parallel worker has its leader's rate, and the postmaster's anchor. */
	if (anchored_by != MyProcPid)
		return;
	/* A preempted pair is too wide to serve as an anchor; retry with the narrowest of 100. */
	if (!confirms(now, &here) && !confirms(now = narrowest_pair(), &here))
	{
		/* The machine slept or was migrated. */
		bool		valid = rate_between(anchor, now, &here);

		anchor_at(now);
		postmaster_rate.khz = 0;
		set_rate(known.khz, valid ? known.ppm + difference_ppm(here, known) + here.ppm : UNKNOWN_PPM);
	}
	/* use_rate() can triple here.ppm.  With this condition the uncertainty still gets smaller. */
	else if (here.ppm < known.ppm / 3)
		use_rate(here);
}

/*
 * Waits until `ns` have passed since `start`.  A signal can end a sleep early, so
 * it sleeps again.  Each sleep is at most `ns` long, even if the clock went back.
 */
static void
wait_since(ClockPair start, int64 ns)
{
	for (int sleeps = 0; sleeps < 10; sleeps++)
	{
		int64		left = Min(ns, ns - (int64) (fast_read_pair().ns - start.ns));

		if (left <= 0)
			break;
		pg_usleep(left / 1000 + 1);
	}
}

/*
 * Uses the rate since the postmaster's anchor, which is very precise.  A short
 * measurement checks that the machine did not sleep and was not migrated.  Returns
 * false if there is no such rate, or if the check fails.
 */
static bool
take_postmasters_rate(ClockPair start)
{
	Rate		here;

	postmaster_rate.khz = 0;
	if (anchored_by == 0 || anchored_by == MyProcPid || !rate_between(anchor, start, &postmaster_rate))
		return false;
	wait_since(start, CHECK_NS);
	if (!rate_between(start, narrowest_pair(), &here) || !agree(postmaster_rate, here))
	{
		postmaster_rate.khz = 0;
		return false;
	}
	use_rate(here);
	return true;
}

/* Measures the rate, in a few ms at most.  Returns false if that fails. */
static bool
calibrate(void)
{
	Rate		rate;

	if (anchored_by != MyProcPid)
	{
		ClockPair	start = narrowest_pair();
		bool		taken = take_postmasters_rate(start);

		anchor_at(start);
		if (taken)
			return true;
	}
	wait_since(anchor, CALIBRATION_NS);
	if (!rate_between(anchor, narrowest_pair(), &rate))
	{
		/* The next calibration starts again. */
		anchored_by = 0;
		return false;
	}
	if (known.khz == 0 || rate.ppm < known.ppm)
		use_rate(rate);
	return true;
}

/* In a parallel worker, uses the leader's rate.  Returns false if there is none. */
static bool
take_leaders_rate(void)
{
	double		khz;
	double		ppm;

	if (!fast_leaders_rate(&khz, &ppm) || !possible_khz(khz))
		return false;
	set_rate(khz, ppm);
	return true;
}

/* Returns whether the rate is precise enough. */
bool
fast_rate_certain(void)
{
	return known.ppm <= MAX_UNCERTAINTY_PPM;
}

/* Takes the first pair, so that a later measurement needs no waiting. */
void
fast_rate_init(void)
{
	anchor_at(narrowest_pair());
}

/* Measures or improves the rate.  Returns false if there is none. */
bool
fast_rate_measure(void)
{
	if (known.khz == 0)
		return take_leaders_rate() || calibrate();
	fast_rate_refine(narrowest_pair());
	/* A worker ends too soon to calibrate, so it keeps its leader's rate. */
	return fast_rate_certain() || IsParallelWorker() || calibrate();
}
