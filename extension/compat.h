/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  everything that depends on the version of PostgreSQL, above all its
 *	  struct Instrumentation
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PFT_COMPAT_H
#define PFT_COMPAT_H

/*
 * The ticker writes 64-bit times, and a backend reads them without a lock.
 * Up to 15 the server counts the ns of a call in a long.
 */
#if __SIZEOF_POINTER__ < 8
#error "pg_fast_timing needs a 64-bit platform"
#endif

#include "postgres.h"

#include <float.h>

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 210000
#error "pg_fast_timing supports PostgreSQL 15 to 20"
#endif

#include "executor/execdesc.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "portability/instr_time.h"

/* 20 has another name for it. */
#ifndef pg_attribute_always_inline
#define pg_attribute_always_inline pg_always_inline
#endif

/* ExecutorRun has other arguments since 18. */
#if PG_VERSION_NUM >= 180000
#define RUN_PARAMETERS	QueryDesc *queryDesc, ScanDirection direction, uint64 count
#define RUN_ARGUMENTS	queryDesc, direction, count
#else
#define RUN_PARAMETERS	QueryDesc *queryDesc, ScanDirection direction, uint64 count, bool execute_once
#define RUN_ARGUMENTS	queryDesc, direction, count, execute_once
#endif

/* The name and the version of a module are visible to users since 18. */
#if PG_VERSION_NUM >= 180000
#define MODULE_MAGIC	PG_MODULE_MAGIC_EXT(.name = "pg_fast_timing", .version = PFT_VERSION)
#else
#define MODULE_MAGIC	PG_MODULE_MAGIC
#endif

/*
 * Core's instrumentation of a plan node.  Its times are in seconds, or since 19
 * in the unit of instr_time.
 */
#if PG_VERSION_NUM >= 190000
typedef NodeInstrumentation CoreInstr;
typedef WorkerNodeInstrumentation CoreWorkers;
typedef int64 CoreTime;
#define CORE_TIME_MAX			PG_INT64_MAX
#define CORE_USAGE(c)			(&(c)->instr)
#define CORE_TOTAL(c)			((c)->instr.total.ticks)
#define CORE_STARTUP(c)			((c)->startup.ticks)
#define CORE_COUNTER(c)			((c)->counter.ticks)
#else
typedef Instrumentation CoreInstr;
typedef WorkerInstrumentation CoreWorkers;
typedef double CoreTime;
#define CORE_TIME_MAX			DBL_MAX
#define CORE_USAGE(c)			(c)
#define CORE_TOTAL(c)			((c)->total)
#define CORE_STARTUP(c)			((c)->startup)
#define CORE_COUNTER(c)			INSTR_TIME_GET_DOUBLE((c)->counter)
#endif

/* Adds time to the current loop.  Up to 15 an instr_time is a timespec. */
static inline void
core_add_ns(CoreInstr *core, uint64 ns)
{
#if PG_VERSION_NUM >= 190000
	INSTR_TIME_ADD_NANOSEC(core->counter, (int64) ns);
#elif PG_VERSION_NUM >= 160000
	core->counter.ticks += (int64) ns;
#else
	core->counter.tv_nsec += (long) ns;
	if (unlikely(core->counter.tv_nsec >= 1000000000L))
	{
		core->counter.tv_sec += core->counter.tv_nsec / 1000000000L;
		core->counter.tv_nsec %= 1000000000L;
	}
#endif
}

/* Called after the first call of a loop. */
static inline void
core_start_loop(CoreInstr *core)
{
	core->running = true;
#if PG_VERSION_NUM >= 190000
	core->firsttuple = core->counter;
#else
	core->firsttuple = INSTR_TIME_GET_DOUBLE(core->counter);
#endif
}

static inline CoreTime
core_time_of_ns(double ns)
{
#if PG_VERSION_NUM >= 190000
	return ns < 0 ? -pg_ns_to_ticks((int64) -ns) : pg_ns_to_ticks((int64) ns);
#else
	return ns / 1e9;
#endif
}

static inline double
core_ns_of_time(CoreTime time)
{
#if PG_VERSION_NUM >= 190000
	return time < 0 ? -(double) pg_ticks_to_ns(-time) : (double) pg_ticks_to_ns(time);
#else
	return time * 1e9;
#endif
}

/* Returns the time of the finished loops and of the current loop. */
static inline CoreTime
core_total_so_far(const CoreInstr *core)
{
	return CORE_TOTAL(core) + CORE_COUNTER(core);
}

/* Returns whether instr_time counts the CPU's ticks. */
static inline bool
server_times_by_tsc(void)
{
#if PG_VERSION_NUM >= 190000
	return timing_tsc_enabled;
#else
	return false;
#endif
}

/*
 * Since 18 the server counts a read when it starts the read, and adds its time
 * when it waits for the read.  Returns the times that can change alone.
 */
static inline uint64
io_times(void)
{
#if PG_VERSION_NUM >= 180000
	return pgBufferUsage.shared_blk_read_time.ticks + pgBufferUsage.shared_blk_write_time.ticks +
		pgBufferUsage.local_blk_read_time.ticks + pgBufferUsage.local_blk_write_time.ticks;
#else
	return 0;
#endif
}

#endif							/* PFT_COMPAT_H */
