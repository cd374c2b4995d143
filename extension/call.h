/*-------------------------------------------------------------------------
 *
 * call.h
 *	  adds a timed call to a node's instrumentation
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_CALL_H
#define FAST_CALL_H

#include "clock.h"
#include "instr.h"
#include "tsc.h"

/*
 * Adds ticks of a clock to a node's time.  A call can be shorter than a ns, so
 * the fraction is kept for the next call.
 */
static pg_attribute_always_inline void
add_ticks(FastInstr *fi, ClockKind kind, uint64 ticks)
{
#ifdef HAVE_TSC
	if (kind == KIND_TSC)
	{
		unsigned __int128 ns;

		/* The counter went back: a virtual machine was migrated. */
		if (unlikely((int64) ticks < 0))
			return;

#if PG_VERSION_NUM >= 190000
		if (fi->query->server_tsc)
		{
			fi->core.counter.ticks += ticks;
			return;
		}
#endif
		ns = (unsigned __int128) ticks * fast_tsc_scale + fi->fraction;
		fi->fraction = (uint32) ns;
		core_add_ns(&fi->core, (uint64) (ns >> 32));
		return;
	}
#endif
	core_add_ns(&fi->core, ticks);
}

/* Counts a call that has returned. */
static pg_attribute_always_inline void
count_call(FastInstr *fi, TupleTableSlot *slot)
{
	if (unlikely(!fi->core.running))
	{
		core_start_loop(&fi->core);
		fi->loops++;
	}
	if (TupIsNull(slot))
		fi->ends++;
	else
		fi->core.tuplecount += 1.0;
}

#endif							/* FAST_CALL_H */
