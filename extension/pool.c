/*-------------------------------------------------------------------------
 *
 * pool.c
 *	  memory for the instrumentation of plan nodes, in one range of addresses
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

#include <sys/mman.h>

/* The pool of instrumentation gets memory in steps of this size. */
#define POOL_STEP		(256 * 1024)

/* An unused element of the pool contains the address of the next one. */
typedef union PoolItem
{
	FastInstr	instr;
	union PoolItem *next;
} PoolItem;

/* No process has memory at this address. */
#define NO_POOL			((char *) (UINT64CONST(1) << 62))

char	   *pft_pool = NO_POOL;
static Size pool_used = 0;
static Size pool_ready = 0;		/* bytes that can be written */
static PoolItem *pool_free = NULL;

/* Makes more of the pool writable.  Until then it is only a range of addresses, and takes no memory. */
static bool
pool_grow(void)
{
	if (pft_pool == NO_POOL)
	{
		void	   *range = mmap(NULL, PFT_POOL_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (range == MAP_FAILED)
			return false;
		pft_pool = range;
	}
	if (pool_ready + POOL_STEP > PFT_POOL_SIZE ||
		mprotect(pft_pool + pool_ready, POOL_STEP, PROT_READ | PROT_WRITE) != 0)
		return false;
	pool_ready += POOL_STEP;
	return true;
}

/* Returns a new instrumentation, or NULL if there is no memory. */
FastInstr *
pft_pool_take(void)
{
	PoolItem   *item = pool_free;

	if (item != NULL)
		pool_free = item->next;
	else
	{
		if (pool_used + sizeof(PoolItem) > pool_ready && !pool_grow())
			return NULL;
		item = (PoolItem *) (pft_pool + pool_used);
		pool_used += sizeof(PoolItem);
	}
	memset(item, 0, sizeof(*item));
	return &item->instr;
}

void
pft_pool_return(FastInstr *fi)
{
	PoolItem   *item = (PoolItem *) fi;

	item->next = pool_free;
	pool_free = item;
}

FastInstr *
pft_instr_of(const PlanState *node)
{
	return pft_is_ours(node->instrument) ? (FastInstr *) node->instrument : NULL;
}
