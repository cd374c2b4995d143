/*-------------------------------------------------------------------------
 *
 * version.h
 *	  differences between the versions of PostgreSQL
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_VERSION_H
#define FAST_VERSION_H

/*
 * The ticker writes 64-bit times, and a backend reads them without a lock.
 * Up to 15 the server counts the ns of a call in a long.
 */
#if __SIZEOF_POINTER__ < 8
#error "pg_fast_timing needs a 64-bit platform"
#endif

#include "postgres.h"

#include <float.h>

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "pg_fast_timing supports PostgreSQL 15 to 19"
#endif

#include "executor/execdesc.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"

#if PG_VERSION_NUM >= 190000
typedef NodeInstrumentation CoreInstr;
typedef WorkerNodeInstrumentation CoreWorkers;
#define CORE_WANTS_TIMER(c)		((c)->instr.need_timer)
#define CORE_WANTS_BUFFERS(c)	((c)->instr.need_bufusage)
#define CORE_WANTS_WAL(c)		((c)->instr.need_walusage)
#define CORE_BUFFERS(c)			((c)->instr.bufusage)
#define CORE_WAL(c)				((c)->instr.walusage)
#else
typedef Instrumentation CoreInstr;
typedef WorkerInstrumentation CoreWorkers;
#define CORE_WANTS_TIMER(c)		((c)->need_timer)
#define CORE_WANTS_BUFFERS(c)	((c)->need_bufusage)
#define CORE_WANTS_WAL(c)		((c)->need_walusage)
#define CORE_BUFFERS(c)			((c)->bufusage)
#define CORE_WAL(c)				((c)->walusage)
#endif

/*
 * Adds time to the current loop.  Up to 15 an instr_time is a timespec, and since
 * 19 its unit can be the CPU's tick.
 */
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

#if PG_VERSION_NUM >= 190000
static inline int64
signed_ticks(double ns)
{
	return ns < 0 ? -pg_ns_to_ticks((int64) -ns) : pg_ns_to_ticks((int64) ns);
}
#endif

/* Since 18 the server counts a read when it starts the read, and adds its time when it waits for the read. */
#if PG_VERSION_NUM >= 180000
#define IO_TIMES_COME_LATER		true
#else
#define IO_TIMES_COME_LATER		false
#endif

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

/* Adds time to the finished loops, and to their startup time. */
static inline void
core_add_total_ns(CoreInstr *core, double ns, double startup_ns)
{
#if PG_VERSION_NUM >= 190000
	core->instr.total.ticks += signed_ticks(ns);
	core->startup.ticks += signed_ticks(startup_ns);
#else
	core->total += ns / 1e9;
	core->startup += startup_ns / 1e9;
#endif
}

/* The time of finished loops: in seconds, or since 19 in the unit of instr_time. */
#if PG_VERSION_NUM >= 190000
typedef int64 CoreTime;
#define CORE_TIME_MAX			PG_INT64_MAX
#define CORE_TOTAL(c)			((c)->instr.total.ticks)
#define CORE_STARTUP(c)			((c)->startup.ticks)
#else
typedef double CoreTime;
#define CORE_TIME_MAX			DBL_MAX
#define CORE_TOTAL(c)			((c)->total)
#define CORE_STARTUP(c)			((c)->startup)
#endif

static inline CoreTime
core_time_of_ns(double ns)
{
#if PG_VERSION_NUM >= 190000
	return signed_ticks(ns);
#else
	return ns / 1e9;
#endif
}

/* Returns the time of the finished loops and of the current loop. */
static inline CoreTime
core_total_so_far(const CoreInstr *core)
{
#if PG_VERSION_NUM >= 190000
	return core->instr.total.ticks + core->counter.ticks;
#else
	return core->total + INSTR_TIME_GET_DOUBLE(core->counter);
#endif
}

/* Returns the time of the finished loops, in ns. */
static inline double
core_total_ns(const CoreInstr *core)
{
#if PG_VERSION_NUM >= 190000
	return (double) INSTR_TIME_GET_NANOSEC(core->instr.total);
#else
	return core->total * 1e9;
#endif
}

/* Returns the time of the finished loops and of the current loop, in ns. */
static inline double
core_time_so_far_ns(const CoreInstr *core)
{
	return core_total_ns(core) + INSTR_TIME_GET_DOUBLE(core->counter) * 1e9;
}

/* Returns the startup time of all started loops, in ns. */
static inline double
core_startup_so_far_ns(const CoreInstr *core)
{
#if PG_VERSION_NUM >= 190000
	return INSTR_TIME_GET_DOUBLE(core->startup) * 1e9 +
		(core->running ? INSTR_TIME_GET_DOUBLE(core->firsttuple) * 1e9 : 0);
#else
	return core->startup * 1e9 + (core->running ? core->firsttuple * 1e9 : 0);
#endif
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

#endif							/* FAST_VERSION_H */
