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

extern void fast_install(QueryDesc *queryDesc, Method wanted);
extern void fast_reinstall(QueryDesc *queryDesc);
extern void fast_finish(QueryDesc *queryDesc, const FastQuery *query);

#pragma GCC visibility pop

#endif							/* FAST_INSTALL_H */
