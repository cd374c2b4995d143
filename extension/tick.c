/*-------------------------------------------------------------------------
 *
 * tick.c
 *	  writes the ticks of a ticking clock
 *
 * Threads call these functions, so they call no server function that can raise an
 * error.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "tick.h"

/*
 * On a busy machine a tick can be late by some ms, which does no harm: at random
 * times some calls get too much time, and others too little.  A later tick means that
 * the ticker was stopped, and its whole interval is uncertain.
 */
#define LATE_NS			10000000
#define LATE_PERIODS	2

/* Readers without a lock check that the version is even and unchanged. */
static void
write_tick(Ticker *self, uint64 ns)
{
	self->version++;
	pg_write_barrier();
	self->prev_ns = self->last_ns;
	self->last_ns = ns;
	self->last_tsc = self->with_tsc ? tsc_now() : 0;
	pg_write_barrier();
	self->version++;
}

/*
 * Returns a random interval around the period.  Regular ticks could coincide with
 * a rhythm of the query, and then always fall into the same node.
 */
static uint64
random_interval(const Ticker *self, pg_prng_state *random)
{
	return self->period_ns / 2 + pg_prng_uint64_range(random, 0, self->period_ns);
}

/*
 * An observer arriving at random is more likely to land in a long interval, and
 * lands at a random point of it.  Otherwise the first tick would account for too
 * much or too little time on average, which matters for a short query.
 */
void
tick_start(Ticker *self, pg_prng_state *random)
{
	uint64		now = system_now();
	uint64		interval;
	uint64		left;

	do
		interval = random_interval(self, random);
	while (pg_prng_uint64_range(random, 0, self->period_ns * 3 / 2) > interval);
	left = pg_prng_uint64_range(random, 0, interval);
	write_tick(self, now - (interval - left));
	self->next_ns = now + left;
}

void
tick_now(Ticker *self, uint64 now, pg_prng_state *random)
{
	if (tick_was_stopped(self, tick_overdue_ns(self, now)))
		self->stopped_ns += now - self->last_ns;
	write_tick(self, now);
	self->next_ns = now + random_interval(self, random);
}

uint64
tick_overdue_ns(const Ticker *self, uint64 now)
{
	uint64		next_ns = self->next_ns;

	return now > next_ns ? now - next_ns : 0;
}

bool
tick_was_stopped(const Ticker *self, uint64 overdue_ns)
{
	return overdue_ns > LATE_NS + LATE_PERIODS * self->period_ns;
}
