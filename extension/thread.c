/*-------------------------------------------------------------------------
 *
 * thread.c
 *	  threads that do not disturb the backend, on each platform
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>
#include <signal.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "clock.h"
#include "thread.h"

/* The name of the thread, for example in /proc/PID/task/TID/comm.  Linux allows 15 bytes. */
#define THREAD_NAME		"pg_fast_timing"

void
fast_thread_init_locks(pthread_mutex_t *mutex, pthread_cond_t *changed)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(mutex, NULL);
	pthread_condattr_init(&attributes);
#if !defined(__APPLE__)
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
	pthread_cond_init(changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

int
fast_thread_create(void *(*function) (void *))
{
	pthread_attr_t attributes;
	pthread_t	thread;
	sigset_t	all;
	sigset_t	old;
	int			error = pthread_attr_init(&attributes);

	if (error != 0)
		return error;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, Max(64 * 1024, PTHREAD_STACK_MIN));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, &attributes, function, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	return error;
}

void
fast_thread_set_name(void)
{
#if defined(__linux__)
	prctl(PR_SET_NAME, THREAD_NAME);
#elif defined(__APPLE__)
	pthread_setname_np(THREAD_NAME);
#endif
}

void
fast_thread_sleep_precisely(void)
{
#if defined(__linux__)
	/* in ns; the default is as long as a short query */
	prctl(PR_SET_TIMERSLACK, 1UL);
#endif
}

void
fast_thread_wait(pthread_cond_t *changed, pthread_mutex_t *mutex, uint64 ns)
{
#if defined(__APPLE__)
	uint64		now = system_now();
	struct timespec left = {(ns - now) / 1000000000, (ns - now) % 1000000000};

	if (now < ns)
		pthread_cond_timedwait_relative_np(changed, mutex, &left);
#else
	struct timespec due = {ns / 1000000000, ns % 1000000000};

	pthread_cond_timedwait(changed, mutex, &due);
#endif
}
