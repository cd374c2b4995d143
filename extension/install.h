/*-------------------------------------------------------------------------
 *
 * install.h
 *	  replaces core's timing of a query by ours
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_INSTALL_H
#define FAST_INSTALL_H

#include "instr.h"

#pragma GCC visibility push(hidden)

/* Replaces the server's instrumentation in the nodes of an initialized query: times or only counts their calls. */
extern void fast_install(QueryDesc *queryDesc, Method method);
extern void fast_reinstall(FastQuery *query);
extern void fast_recheck(FastQuery *query);
extern void fast_finish(QueryDesc *queryDesc, FastQuery *query);

#pragma GCC visibility pop

#endif							/* FAST_INSTALL_H */
