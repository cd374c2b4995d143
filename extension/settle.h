/*-------------------------------------------------------------------------
 *
 * settle.h
 *	  makes the times of a finished query consistent
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_SETTLE_H
#define FAST_SETTLE_H

#include "instr.h"

#pragma GCC visibility push(hidden)

/* Corrects impossible times, after the last call of a query. */
extern void fast_settle(FastQuery *query);

#pragma GCC visibility pop

#endif							/* FAST_SETTLE_H */
