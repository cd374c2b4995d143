/*-------------------------------------------------------------------------
 *
 * ticker.c
 *	  a clock in memory that moves about once per millisecond
 *
 * The background worker ticks for all sessions.  A session uses its own thread
 * if there is no worker, if the worker does not tick, or if it ticks at another
 * rate.  No statement waits for the worker.
 *
 * Only one process or thread writes a clock at any time: the state says which
 * one.  For the clock of a thread, it can also be the owner of the mutex.  Readers
 * need no lock, because they read one number.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/pmsignal.h"
#include "utils/wait_event.h"

/*
 * Waking the worker or the thread takes 0.1 ms or more.  So it continues to tick
 * for a while, for the next statement or FETCH.
 */
#define LINGER_NS		20000000

/*
 * On a busy machine a tick can be late by some ms, which does no harm: at random
 * times some calls get too much time, and others too little.  A later tick means
 * that the ticker was stopped, and its whole interval is uncertain.
 */
#define LATE_NS			10000000
#define LATE_PERIODS	2

/* A worker that has not ticked for this time is dead, stopped, or gets no CPU time. */
#define DEAD_NS			100000000
#define DEAD_PERIODS	4

/*
 * Writing the first tick takes 0.2 us.  A backend that sees another one do that
 * reads the state again, for some us.
 */
#define MAX_READS		1000

/* Sessions use their own threads until the worker starts again.  A worker that always fails does not fill the log. */
#define RESTART_SECONDS	5

/* A wait for the latch has a resolution of 1 ms, so the worker sleeps.  It notices a signal after this time at the latest. */
#define MAX_SLEEP_NS	10000000

/* Time until the next attempt, if the thread could not be created.  An attempt can take 0.1 ms. */
#define RETRY_NS		UINT64CONST(60000000000)

/* The mark of a run that started before the ticks. */
#define MARK_BEFORE_TICKS	PG_UINT64_MAX

/* Who may write a clock. */
typedef enum TickerState
{
	PARKED = 0,					/* nobody; the worker or the thread sleeps */
	STARTING,					/* a backend, which writes the first tick */
	TICKING						/* the worker or the thread */
} TickerState;

/* The clock of the worker, or of a thread. */
typedef struct TickerClock
{
	/* Backends read this cache line for each call of a node. */
	union
	{
		Ticker		ticker;
		char		padding[PG_CACHE_LINE_SIZE];
	};
	pg_atomic_uint32 state;		/* TickerState */
	pg_atomic_uint32 users;		/* backends that need ticks */
	pg_atomic_uint32 failed;	/* 1: the log says that a thread could not be created */
	Latch	   *volatile latch; /* wakes the worker; NULL: there is none */
} TickerClock;

static TickerClock own;			/* of the thread */

/* NULL if the library is not in shared_preload_libraries */
static TickerClock *shared = NULL;
static bool worker_registered = false;	/* when the server started */

static bool running = false;	/* a query of this session needs the ticks */
static uint64 stopped_before_ns;	/* pft_ticks->stopped_ns when the ticks started */
static bool is_user = false;	/* this backend is in the worker's `users` */

/* The thread holds the mutex except while it waits.  So the owner of the mutex may write its clock. */
static pthread_mutex_t mutex;
static pthread_cond_t changed;
static bool has_thread = false;
static uint64 retry_ns = 0;		/* no attempt to create the thread until then */
static int	create_error;		/* errno of the last attempt */

static pg_prng_state random_state;	/* of the worker, or of the thread */

extern PGDLLEXPORT void pg_fast_timing_ticker(Datum unused);

/* Returns the mean time between ticks that pg_fast_timing.sample_rate requests. */
static uint64
wanted_period_ns(void)
{
	return 1000000000 / pft_sample_rate;
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
 * Starts in the middle of an interval, as if the ticks had always been running.
 * An observer arriving at random is more likely to land in a long interval, and
 * lands at a random point of it.  If the clock always started with a full interval,
 * the first tick would add too much or too little time on average, which matters
 * for a short query.
 */
static void
first_tick(Ticker *self, pg_prng_state *random)
{
	uint64		now = system_now();
	uint64		interval;
	uint64		left;

	do
		interval = random_interval(self, random);
	while (pg_prng_uint64_range(random, 0, self->period_ns * 3 / 2) > interval);
	left = pg_prng_uint64_range(random, 0, interval);
	self->last_ns = now - (interval - left);
	self->next_ns = now + left;
}

static uint64
overdue_ns(const Ticker *self, uint64 now)
{
	uint64		next_ns = self->next_ns;

	return now > next_ns ? now - next_ns : 0;
}

/* Returns whether a tick is so late that the ticker was stopped. */
static bool
was_stopped(const Ticker *self, uint64 now)
{
	return overdue_ns(self, now) > LATE_NS + LATE_PERIODS * self->period_ns;
}

/* Writes a tick that is due, and chooses the time of the next one. */
static void
tick(Ticker *self, uint64 now, pg_prng_state *random)
{
	bool		stopped = was_stopped(self, now);

	if (stopped)
		self->stopped_ns += now - self->last_ns;
	if (self != &own.ticker)
		pft_waits_read(stopped ? 0 : now - self->last_ns);
	self->last_ns = now;
	self->next_ns = now + random_interval(self, random);
}

/* Changes the state before a sleep.  A backend may have read TICKING just before.  Then this tries to take the state back. */
static void
park(TickerClock *clock)
{
	uint32		state = TICKING;

	pg_atomic_compare_exchange_u32(&clock->state, &state, PARKED);
	if (pg_atomic_read_u32(&clock->users) == 0)
		return;
	state = PARKED;
	pg_atomic_compare_exchange_u32(&clock->state, &state, TICKING);
}

/*
 * Ticks, if it is time, while a backend needs it and LINGER_NS longer.  Then it
 * parks.  Called only if the state is TICKING.  Returns when to call it again.
 */
static uint64
tick_or_park(TickerClock *clock, uint64 *until_ns)
{
	uint64		now = system_now();

	if (pg_atomic_read_u32(&clock->users) > 0 || *until_ns == 0)
		*until_ns = now + LINGER_NS;
	if (now >= *until_ns)
	{
		park(clock);
		*until_ns = 0;
		return now;
	}
	if (now >= clock->ticker.next_ns)
		tick(&clock->ticker, now, &random_state);
	return clock->ticker.next_ns;
}

/* Without this, a sleep takes 50 us longer. */
static void
sleep_precisely(void)
{
#if defined(__linux__)
	prctl(PR_SET_TIMERSLACK, 1UL);
#endif
}

/* Also called after a fork: the child has no thread, and the mutex can be locked. */
static void
init_thread_state(void)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attributes);
	pthread_condattr_destroy(&attributes);
	has_thread = false;
	pg_atomic_init_u32(&own.state, PARKED);
	pg_atomic_init_u32(&own.users, 0);
}

/*
 * The background worker
 */

Size
pft_ticker_size(void)
{
	return sizeof(TickerClock);
}

/* Called while no backend runs, also after a crash. */
void
pft_ticker_attach(void *memory, bool found)
{
	shared = memory;
	if (found)
		return;
	memset(shared, 0, sizeof(*shared));
}

/* Registers the worker, if the postmaster loads the library.  Called once, after the settings are defined. */
void
pft_ticker_init(void)
{
	BackgroundWorker worker = {0};

	pft_ticks = &own.ticker;
	init_thread_state();
	pthread_atfork(NULL, NULL, init_thread_state);
	if (!process_shared_preload_libraries_in_progress || pft_ticker != TICKER_WORKER)
		return;
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = RESTART_SECONDS;
	snprintf(worker.bgw_name, sizeof(worker.bgw_name), "pg_fast_timing ticker");
	snprintf(worker.bgw_type, sizeof(worker.bgw_type), "pg_fast_timing ticker");
	snprintf(worker.bgw_library_name, sizeof(worker.bgw_library_name), "pg_fast_timing");
	snprintf(worker.bgw_function_name, sizeof(worker.bgw_function_name), "pg_fast_timing_ticker");
	/* Logs a message if max_worker_processes is too small. */
	RegisterBackgroundWorker(&worker);
	worker_registered = true;
}

static void
retire(int code, Datum unused)
{
	shared->latch = NULL;
}

static void
handle_signals(void)
{
	CHECK_FOR_INTERRUPTS();
	/* With the exit status 0 the postmaster would not restart the worker. */
	if (ShutdownRequestPending || !PostmasterIsAlive())
		proc_exit(1);
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
		shared->ticker.period_ns = wanted_period_ns();
	}
}

/* Writes the clock only if the state says so. */
static void
tick_or_sleep(uint64 *until_ns)
{
	uint64		next_ns;
	uint64		now;

	if (pg_atomic_read_u32(&shared->state) != TICKING)
	{
		WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, -1, PG_WAIT_EXTENSION);
		return;
	}
	next_ns = tick_or_park(shared, until_ns);
	now = system_now();
	if (now < next_ns)
		nanosleep(&(struct timespec) {0, (long) Min(next_ns - now, MAX_SLEEP_NS)}, NULL);
}

/* The worker's main function. */
void
pg_fast_timing_ticker(Datum unused)
{
	uint64		until_ns = 0;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	sleep_precisely();
	pg_prng_seed(&random_state, system_now());

	shared->ticker.period_ns = wanted_period_ns();
	before_shmem_exit(retire, 0);
	/* Backends set the latch from now on.  The state is read later. */
	shared->latch = MyLatch;
	pg_memory_barrier();
	for (;;)
	{
		ResetLatch(MyLatch);
		handle_signals();
		tick_or_sleep(&until_ns);
	}
}

/* Returns why this session cannot use the worker's clock, or NULL. */
static const char *
refusal(void)
{
	uint64		period_ns = wanted_period_ns();

	if (shared == NULL)
		return "the library is not in shared_preload_libraries";
	if (!worker_registered)
		return "pg_fast_timing.ticker had another value when the server started";
	if (shared->latch == NULL)
		return "the background worker is not running; max_worker_processes may be too small";
	if (shared->ticker.period_ns != period_ns)
		return "the background worker has another sample_rate than this session";
	if (pg_atomic_read_u32(&shared->state) == TICKING &&
		overdue_ns(&shared->ticker, coarse_now()) > DEAD_NS + DEAD_PERIODS * period_ns)
		return "the background worker does not tick";
	return NULL;
}

static void
leave_worker(void)
{
	is_user = false;
	pft_waits_stop();
	pg_atomic_fetch_sub_u32(&shared->users, 1);
}

/*
 * Called when the backend exits, also after a FATAL error.  A crash resets the
 * shared memory.  A child process of the backend is not a user.
 */
static void
forget_user(int code, Datum unused)
{
	if (is_user && MyProcPid == (int) getpid())
		leave_worker();
}

/* Writes the first tick, and wakes the worker. */
static void
wake_worker(void)
{
	Latch	   *latch;

	first_tick(&shared->ticker, &pg_global_prng_state);
	/* The worker stores its latch before it reads the state. */
	pg_atomic_exchange_u32(&shared->state, TICKING);
	latch = shared->latch;
	if (latch != NULL)
		SetLatch(latch);
}

/* Starts to use the worker's clock.  Returns false if that is not possible. */
static bool
use_worker(void)
{
	static bool registered = false;

	if (refusal() != NULL)
		return false;
	if (!registered)
		on_shmem_exit(forget_user, 0);
	registered = true;
	pft_waits_start();
	pg_atomic_fetch_add_u32(&shared->users, 1);
	is_user = true;
	for (int i = 0; i < MAX_READS; i++)
	{
		uint32		state = pg_atomic_read_u32(&shared->state);

		if (state == PARKED && pg_atomic_compare_exchange_u32(&shared->state, &state, STARTING))
			wake_worker();
		else if (state != TICKING)
			continue;
		return true;
	}
	leave_worker();
	return false;
}

/*
 * The thread
 */

static void
wait_until(uint64 ns)
{
	struct timespec due = {ns / 1000000000, ns % 1000000000};

	pthread_cond_timedwait(&changed, &mutex, &due);
}

/* The thread's function.  It calls no server function that can fail or raise an error. */
static void *
tick_or_wait(void *unused)
{
	uint64		until_ns = 0;

#if defined(__linux__)
	/* Linux allows 15 bytes. */
	prctl(PR_SET_NAME, "pg_fast_timing");
#endif
	sleep_precisely();
	pthread_mutex_lock(&mutex);
	for (;;)
	{
		if (pg_atomic_read_u32(&own.state) == TICKING)
			wait_until(tick_or_park(&own, &until_ns));
		else
			pthread_cond_wait(&changed, &mutex);
	}
	return NULL;
}

/* Creates a thread that receives no signal of the server.  Returns 0 or an error number. */
static int
create_thread(void)
{
	pthread_attr_t attributes;
	pthread_t	thread;
	sigset_t	all;
	sigset_t	old;
	int			error = pthread_attr_init(&attributes);

	if (error != 0)
		return error;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, Max(64 * 1024, PTHREAD_STACK_MIN));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, &attributes, tick_or_wait, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	return error;
}

/* Starts the thread's ticks, and the thread if it does not exist.  Returns false if that fails. */
static bool
start_thread(uint64 period_ns)
{
	uint64		now = system_now();

	pthread_mutex_lock(&mutex);
	if (!has_thread && now >= retry_ns)
	{
		pg_prng_seed(&random_state, now);
		create_error = create_thread();
		has_thread = create_error == 0;
		retry_ns = has_thread ? 0 : now + RETRY_NS;
	}
	if (has_thread)
	{
		own.ticker.period_ns = period_ns;
		first_tick(&own.ticker, &random_state);
		pg_atomic_write_u32(&own.state, TICKING);
		pthread_cond_signal(&changed);
	}
	pthread_mutex_unlock(&mutex);
	return has_thread;
}

/* Logs once that the thread could not be created. */
static void
log_failure(void)
{
	TickerClock *clock = shared != NULL ? shared : &own;

	if (pg_atomic_exchange_u32(&clock->failed, 1) != 0)
		return;
	errno = create_error;
	ereport(LOG_SERVER_ONLY,
			(errmsg("could not create thread for pg_fast_timing: %m"),
			 errdetail("Plan nodes have no times after the budget of their statement is spent."),
			 errhidestmt(true), errhidecontext(true)));
}

/* Starts to use the thread's clock.  Returns false if that is not possible. */
static bool
use_thread(void)
{
	uint64		period_ns = wanted_period_ns();

	/* After this, the thread does not park, or its state is already PARKED. */
	pg_atomic_exchange_u32(&own.users, 1);
	if ((pg_atomic_read_u32(&own.state) == TICKING && own.ticker.period_ns == period_ns) || start_thread(period_ns))
		return true;
	pg_atomic_write_u32(&own.users, 0);
	log_failure();
	return false;
}

/*
 * The clock of this session
 */

/* Returns the mean time between ticks. */
uint64
pft_ticker_period_ns(void)
{
	return running ? pft_ticks->period_ns : wanted_period_ns();
}

/* Stores the mean time between ticks in a query. */
void
pft_ticker_note_period(FastQuery *query)
{
	query->period_ns = Max(query->period_ns, (double) pft_ticker_period_ns());
}

static void
note_start(const Ticker *ticks)
{
	pft_ticks = ticks;
	running = true;
	stopped_before_ns = ticks->stopped_ns;
	pft_waits_skip();
}

/* Starts the ticks of the worker, if they are stopped.  Returns whether this session uses them. */
bool
pft_ticker_start_worker(void)
{
	if (!running && pft_ticker == TICKER_WORKER && use_worker())
		note_start(&shared->ticker);
	return is_user;
}

/* Starts the ticks, if they are stopped.  Returns false if that fails. */
bool
pft_ticker_start(void)
{
	if (running || pft_ticker_start_worker())
		return true;
	if (pft_ticker == TICKER_NONE || !use_thread())
		return false;
	note_start(&own.ticker);
	return true;
}

/* Stops the ticks. */
void
pft_ticker_stop(void)
{
	if (!running)
		return;
	if (is_user)
		leave_worker();
	else
		pg_atomic_write_u32(&own.users, 0);
	running = false;
}

/* Returns a mark for pft_ticker_note_loss(), at the start of a run. */
uint64
pft_ticker_mark(void)
{
	return running ? pft_ticks->stopped_ns : MARK_BEFORE_TICKS;
}

/*
 * Adds the time for which ticks are missing since the mark, in a run of `ns`, to a
 * query.  Called before the ticks are stopped.
 *
 * On a busy machine the worker or the thread may not run until the backend sleeps.
 * A late tick in a long run does no harm.  But a tick that is overdue at the end
 * of the run is lost, and so is the time that it would have accounted for.
 */
void
pft_ticker_note_loss(FastQuery *query, uint64 mark, double ns)
{
	/* Most statements need no ticks for their times, but only for waits. */
	uint64		now = query->sampled > 0 || query->parallel ? system_now() : coarse_now();
	uint64		last_ns = Min(pft_ticks->last_ns, now);	/* a tick can come between these reads */
	uint64		stopped_ns = pft_ticks->stopped_ns - (mark == MARK_BEFORE_TICKS ? stopped_before_ns : mark);

	if (query->tickless)
		stopped_ns = PG_UINT64_MAX;	/* a nested statement can have started ticks */
	else if (!running)
		stopped_ns = 0;
	else if (was_stopped(pft_ticks, now))
		stopped_ns += now - last_ns;
	else if (overdue_ns(pft_ticks, now) > 0)
		query->lost_ns += now - last_ns;
	query->tickless_ns += Min((double) stopped_ns, ns);
	/* The worker can have read another rate from the configuration. */
	pft_ticker_note_period(query);
}

/*
 * Returns what a statement would use that started now.  `reason` is NULL, or why
 * that is not what the setting requests.
 */
TickerKind
pft_ticker_now(const char **reason)
{
	*reason = NULL;
	if (pft_ticker == TICKER_NONE)
		return TICKER_NONE;
	if (pft_ticker == TICKER_WORKER && (*reason = refusal()) == NULL)
		return TICKER_WORKER;
	if (retry_ns == 0 || system_now() >= retry_ns)
		return TICKER_THREAD;
	*reason = psprintf("could not create a thread: %s", strerror(create_error));
	return TICKER_NONE;
}
