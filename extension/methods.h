/*-------------------------------------------------------------------------
 *
 * methods.h
 *	  the wrappers that time the calls of a node, one file per method
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_METHODS_H
#define FAST_METHODS_H

#include "instr.h"

#pragma GCC visibility push(hidden)

/* Each returns the wrapper for a node. */
extern ExecProcNodeMtd fast_tsc_wrapper(const FastInstr *fi);
extern ExecProcNodeMtd fast_sampling_wrapper(const FastInstr *fi);
extern ExecProcNodeMtd fast_auto_wrapper(const FastInstr *fi);
extern ExecProcNodeMtd fast_count_wrapper(const FastInstr *fi);

/* Adds the time of the last gap, after the last call of the query. */
extern void fast_auto_finish(FastInstr *fi);

#pragma GCC visibility pop

#endif							/* FAST_METHODS_H */
