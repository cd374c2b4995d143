/*-------------------------------------------------------------------------
 *
 * shared_memory.c
 *	  requests and finds the extension's shared memory
 *
 * Only a library in shared_preload_libraries can do that.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#include "shared_memory.h"
#include "statistics.h"
#include "ticker_shared.h"

static shmem_request_hook_type prev_shmem_request = NULL;
static shmem_startup_hook_type prev_shmem_startup = NULL;

static void
request_memory(void)
{
	if (prev_shmem_request)
		prev_shmem_request();
	RequestAddinShmemSpace(add_size(fast_statistics_size(), ticker_shared_size()));
}

static void
find_memory(void)
{
	if (prev_shmem_startup)
		prev_shmem_startup();
	fast_statistics_attach();
	ticker_shared_attach();
}

void
fast_shared_memory_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	prev_shmem_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	prev_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = find_memory;
}
