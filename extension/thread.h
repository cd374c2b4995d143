/*-------------------------------------------------------------------------
 *
 * thread.h
 *	  threads that do not disturb the backend, on each platform
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAST_THREAD_H
#define FAST_THREAD_H

#include <pthread.h>

#pragma GCC visibility push(hidden)

/* Initializes a mutex and a condition for fast_thread_wait(). */
extern void fast_thread_init_locks(pthread_mutex_t *mutex, pthread_cond_t *changed);

/* Creates a detached thread that blocks all signals.  Returns 0, or an errno. */
extern int	fast_thread_create(void *(*function) (void *));

/* Sets the name of this thread. */
extern void fast_thread_set_name(void);

/* Lets this thread, or a process with one thread, sleep precisely. */
extern void fast_thread_sleep_precisely(void);

/* Waits for the condition, until system_now() is `ns` at the latest. */
extern void fast_thread_wait(pthread_cond_t *changed, pthread_mutex_t *mutex, uint64 ns);

#pragma GCC visibility pop

#endif							/* FAST_THREAD_H */
