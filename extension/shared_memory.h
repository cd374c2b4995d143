/*-------------------------------------------------------------------------
 *
 * shared_memory.h
 *	  requests and finds the extension's shared memory
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_SHARED_MEMORY_H
#define FAST_SHARED_MEMORY_H

#pragma GCC visibility push(hidden)

/* Requests shared memory, if the library is loaded by shared_preload_libraries. */
extern void fast_shared_memory_init(void);

#pragma GCC visibility pop

#endif							/* FAST_SHARED_MEMORY_H */
