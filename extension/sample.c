/*-------------------------------------------------------------------------
 *
 * sample.c
 *	  which executions of a short statement are profiled
 *
 * The profile of an execution takes microseconds, and a short statement is not much
 * longer.  So a session divides the executions of each statement into blocks, and
 * profiles one of each block, which counts for all of them.  The size of a block
 * is known before it begins, and each of its executions is chosen with the same
 * probability.  So the choice causes no bias, whatever the times are.  But what a
 * profiled execution takes longer because of its profile counts for the block, too.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

#include "common/pg_prng.h"

/* The profile of an execution with some nodes, and the part of the statements' time that it may take. */
#define COST_NS(nodes)	(4000.0 + 500.0 * (nodes))
#define COST_SHARE		0.01

/* The largest block.  The error of the sums grows with its square root. */
#define MOST_EXECUTIONS	100

/* The statements of a session.  Two that need the same place replace each other, and each begins with a block of one. */
#define PLACES		1024

typedef struct Block
{
	uint64		queryid;
	uint64		planid;			/* of the last block of several executions; 0: none */
	double		longest_ns;		/* of the profiled executions, earlier ones count less */
	uint32		size;			/* number of executions */
	uint32		next_size;		/* of the next block */
	uint32		left;			/* executions that are still to come */
	uint32		chosen;			/* the execution with this many left is profiled */
} Block;

static Block blocks[PLACES];

/* Returns how many executions the one that starts now stands for; 0: it is not profiled. */
int
pft_sample(uint64 queryid)
{
	Block	   *block = &blocks[queryid % PLACES];

	if (block->queryid != queryid)
		*block = (Block) {.queryid = queryid, .next_size = 1};
	if (block->left == 0)
	{
		block->size = block->left = block->next_size;
		block->chosen = (uint32) pg_prng_uint64_range(&pg_global_prng_state, 1, block->size);
	}
	return block->left-- == block->chosen ? block->size : 0;
}

/*
 * Notes a profiled execution.  Returns whether the block before had the same plan.
 * If not, the number of executions with this plan is an estimate, too.
 */
bool
pft_sample_note(const FastQuery *query, uint64 planid)
{
	Block	   *block = &blocks[query->queryid % PLACES];
	bool		same = block->queryid == query->queryid && block->planid == planid;

	if (block->queryid != query->queryid)
		return false;
	/* In the first block, no plan is known: the last block may be unfinished. */
	block->planid = query->profiled > 1 ? planid : 0;
	/* After a long execution, more of them are profiled for a while. */
	block->longest_ns = Max(query->elapsed_ns, block->longest_ns / 2);
	if (block->longest_ns > 0)
		block->next_size = (uint32) Max(Min(ceil(COST_NS(query->node_count) / (COST_SHARE * block->longest_ns)), MOST_EXECUTIONS), 1);
	return same;
}
