/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  what several files need that depends on the version of PostgreSQL, above all
 *	  its struct Instrumentation
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
#if PG_VERSION_NUM >= 160000
#include "nodes/queryjumble.h"
#else
#include "utils/queryjumble.h"
#endif

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

/* Whether a plan node chooses some of its children when it starts or runs. */
#if PG_VERSION_NUM >= 180000
#define PRUNES(type, plan)	(((const type *) (plan))->part_prune_index >= 0)
#else
#define PRUNES(type, plan)	(((const type *) (plan))->part_prune_info != NULL)
#endif
#define CHOOSES_PARTITIONS(plan) \
	((IsA(plan, Append) && PRUNES(Append, plan)) || (IsA(plan, MergeAppend) && PRUNES(MergeAppend, plan)))

/* What EXPLAIN prints before the name of a subplan.  Until 18, it is part of the name. */
#if PG_VERSION_NUM >= 190000
#define SUBPLAN_KIND(subplan) \
	((subplan)->subLinkType == CTE_SUBLINK ? "CTE " : (subplan)->isInitPlan ? "InitPlan " : "SubPlan ")
#else
#define SUBPLAN_KIND(subplan)	""
#endif

/* Creates a hash table in shared memory. */
#if PG_VERSION_NUM >= 190000
#define SHARED_HASH(name, elements, control)	ShmemInitHash(name, elements, control, HASH_ELEM | HASH_BLOBS)
#else
#define SHARED_HASH(name, elements, control)	ShmemInitHash(name, elements, elements, control, HASH_ELEM | HASH_BLOBS)
#endif

/* The name and the version of a module are visible to users since 18. */
#if PG_VERSION_NUM >= 180000
#define MODULE_MAGIC	PG_MODULE_MAGIC_EXT(.name = "pg_fast_timing", .version = "1.2")
#else
#define MODULE_MAGIC	PG_MODULE_MAGIC
#endif

/*
 * Since 18 the server counts a read when it starts the read, and adds its time
 * when it waits for the read.  These are the times that can change alone.
 */
#if PG_VERSION_NUM >= 180000
#define IO_TIMES \
	(pgBufferUsage.shared_blk_read_time.ticks + pgBufferUsage.shared_blk_write_time.ticks + \
	 pgBufferUsage.local_blk_read_time.ticks + pgBufferUsage.local_blk_write_time.ticks)
#else
#define IO_TIMES				0
#endif

/*
 * Core's instrumentation of a plan node.  Its times are in seconds, or since 19
 * in the unit of instr_time, which can be the CPU's ticks.
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
#define CORE_FIRST_TUPLE(c)		((c)->counter)
#define CORE_TIME_OF_NS(ns)		pg_ns_to_ticks((int64) (ns))
#define CORE_NS_OF_TIME(time)	((double) pg_ticks_to_ns(time))
#define SERVER_TIMES_BY_TSC		timing_tsc_enabled
#else
typedef Instrumentation CoreInstr;
typedef WorkerInstrumentation CoreWorkers;
typedef double CoreTime;
#define CORE_TIME_MAX			DBL_MAX
#define CORE_USAGE(c)			(c)
#define CORE_TOTAL(c)			((c)->total)
#define CORE_STARTUP(c)			((c)->startup)
#define CORE_COUNTER(c)			INSTR_TIME_GET_DOUBLE((c)->counter)
#define CORE_FIRST_TUPLE(c)		CORE_COUNTER(c)
#define CORE_TIME_OF_NS(ns)		((ns) / 1e9)
#define CORE_NS_OF_TIME(time)	((time) * 1e9)
#define SERVER_TIMES_BY_TSC		false
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
	core->firsttuple = CORE_FIRST_TUPLE(core);
}

/* Returns the time of the finished loops and of the current loop. */
static inline CoreTime
core_total_so_far(const CoreInstr *core)
{
	return CORE_TOTAL(core) + CORE_COUNTER(core);
}

/* The counters of buffers and WAL at the start of a call. */
typedef struct CoreUsage
{
	uint64		sum;			/* of the counters */
	BufferUsage buffers;
	WalUsage	wal;
} CoreUsage;

/* Two counters are added at once: the first ten members of BufferUsage are int64. */
typedef uint64 Pair __attribute__((vector_size(16), aligned(8), may_alias));

StaticAssertDecl(offsetof(BufferUsage, temp_blks_written) == 9 * sizeof(int64),
				 "BufferUsage begins with ten counters");

/*
 * Returns the sum of the counters of buffers, or of all counters.  Core copies all
 * counters before each call, and adds all differences after it.  But counters only
 * grow, so if their sum is unchanged, no counter has changed.  Most calls then cost
 * only this addition.  Times of reads and writes change only together with the
 * counts, so they are not in the sum.  The exception is IO_TIMES.
 */
static pg_attribute_always_inline uint64
core_usage_sum(bool all)
{
	const Pair *counts = (const Pair *) &pgBufferUsage;
	Pair		two = (counts[0] + counts[1]) + (counts[2] + counts[3]) + counts[4];
	uint64		sum = two[0] + two[1];

	if (all)
		sum += pgWalUsage.wal_records + pgWalUsage.wal_fpi + pgWalUsage.wal_bytes + IO_TIMES;
	return sum;
}

static inline void
core_usage_start(CoreUsage *start, uint64 sum)
{
	start->buffers = pgBufferUsage;
	start->wal = pgWalUsage;
	start->sum = sum;
}

/* Adds what the counters have grown since the start. */
static inline void
core_usage_add(CoreInstr *core, const CoreUsage *start)
{
	if (CORE_USAGE(core)->need_bufusage)
		BufferUsageAccumDiff(&CORE_USAGE(core)->bufusage, &pgBufferUsage, &start->buffers);
	if (CORE_USAGE(core)->need_walusage)
		WalUsageAccumDiff(&CORE_USAGE(core)->walusage, &pgWalUsage, &start->wal);
}

#endif							/* PFT_COMPAT_H */
