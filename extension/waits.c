/*-------------------------------------------------------------------------
 *
 * waits.c
 *	  what plan nodes wait for
 *
 * At each tick the worker also reads what each session waits for, and adds the
 * time since the last tick to this wait event of the session.  When a wrapper sees
 * that the clock has moved, it charges the new waits to a node: before its call to
 * the node that calls it, and after its call to its own.  So a wait counts for the
 * node whose code was running, and no call reads another clock.
 *
 * The worker writes a session's waits, and only the session reads them.  They only
 * grow, so no lock is needed.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"

#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/wait_event.h"

/* Reading the waits of all sessions takes at most this part of the time: 0.5% of a CPU. */
#define READING_PART	200

/* The class of waits for a buffer.  Its name changed in 17 and 19. */
#define WAIT_BUFFER		0x04000000U

/* Nodes of parallel workers whose leader has not yet read their waits. */
#define MAX_REPORTS		1024

/* What one session waits for. */
typedef struct SessionWaits
{
	volatile bool active;		/* a query of the session needs ticks */
	volatile bool reported;		/* there can be reports for this session */
	volatile bool incomplete;	/* a parallel worker could not report its waits */
	WaitTimes	times;
} SessionWaits;

/* The waits of a plan node in a parallel worker. */
typedef struct Report
{
	int			leader;			/* PGPROC of the session */
	uint64		queryid;
	int			node;			/* plan_node_id */
	WaitTimes	times;
} Report;

/* In shared memory. */
typedef struct Waits
{
	int			reports;		/* number of the first unused report */
	Report		report[MAX_REPORTS];
	SessionWaits sessions[FLEXIBLE_ARRAY_MEMBER];
} Waits;

static Waits *shared = NULL;
static LWLock *lock;			/* protects the reports */

/* The waits of this session that are charged to nodes, at the tick of that time. */
WaitMark	pft_charged;

Size
pft_waits_size(void)
{
	return offsetof(Waits, sessions) + MaxBackends * sizeof(SessionWaits);
}

/* Called while no backend runs, also after a crash. */
void
pft_waits_attach(void *memory, bool found)
{
	shared = memory;
	lock = &GetNamedLWLockTranche(PFT_TRANCHE)[LOCK_OF_REPORTS].lock;
	if (!found)
		memset(shared, 0, pft_waits_size());
}

/* Adds time to a wait event.  If there are too many events, the last one stands for all others. */
static void
add_wait(WaitTimes *times, uint32 event, uint64 ns)
{
	int			i = 0;

	while (times->event[i] != event && times->event[i] != 0 && i < WAIT_EVENTS - 1)
		i++;
	if (times->event[i] != event)
		times->event[i] = i < WAIT_EVENTS - 1 ? event : PFT_OTHER_EVENTS;
	times->ns[i] += ns;
}

/* Adds time to a wait event of a node, or of the query.  Most nodes never wait, and have no list. */
static void
charge(FastQuery *query, WaitTimes **charged, uint32 event, uint64 ns)
{
	if (*charged == NULL)
		*charged = MemoryContextAllocZero(query->estate->es_query_cxt, sizeof(WaitTimes));
	add_wait(*charged, event, ns);
}

/*
 * The worker: reads what the sessions wait for.  With many sessions, it does not do
 * that at each tick.
 */
void
pft_waits_read(uint64 interval_ns)
{
	static uint64 unread_ns = 0;
	static uint64 due_ns = 0;
	uint64		start = system_now();

	unread_ns += interval_ns;
	if (start < due_ns)
		return;
	for (int i = 0; i < MaxBackends; i++)
	{
		uint32		event;

		if (!shared->sessions[i].active)
			continue;
		event = *(volatile uint32 *) &ProcGlobal->allProcs[i].wait_event_info;
		if (event != 0)
			add_wait(&shared->sessions[i].times, event, unread_ns);
	}
	unread_ns = 0;
	due_ns = start + (system_now() - start) * READING_PART;
	/* A session that sees the tick also sees its waits. */
	pg_write_barrier();
}

static int
number_of(const PGPROC *session)
{
	return session - ProcGlobal->allProcs;
}

static SessionWaits *
of_session(void)
{
	return &shared->sessions[number_of(MyProc)];
}

void
pft_waits_stop(void)
{
	of_session()->active = false;
}

/* A run of a query begins.  Earlier waits are not those of its nodes.  Between ticks there are none. */
void
pft_waits_skip(void)
{
	if (pft_charged.tick_ns == pft_ticks->last_ns)
		return;
	pft_charged.tick_ns = pft_ticks->last_ns;
	pg_read_barrier();
	if (shared != NULL)
		memcpy(pft_charged.ns, of_session()->times.ns, sizeof(pft_charged.ns));
}

/* Charges all new waits. */
static void
charge_new(FastQuery *query, WaitTimes **charged)
{
	const WaitTimes *times = &of_session()->times;

	pft_charged.tick_ns = pft_ticks->last_ns;
	pg_read_barrier();
	for (int i = 0; i < WAIT_EVENTS; i++)
	{
		uint64		ns = times->ns[i] - pft_charged.ns[i];

		/* The worker can be writing the event. */
		if (times->event[i] == 0)
			continue;
		if (ns > 0)
			charge(query, charged, times->event[i], ns);
		pft_charged.ns[i] += ns;
	}
}

/*
 * Charges all new waits to a node, or to the node that calls it.  Called when the
 * clock has moved, and also by a query that does not show its waits.
 */
void
pft_waits_charge(FastInstr *fi, bool to_caller)
{
	FastQuery  *query = fi->query;
	TreeNode   *node = fi->tree_node;

	if (!query->with_waits)
		pft_waits_skip();
	else if (!to_caller)
		charge_new(query, &node->waits);
	else if (node->caller >= 0)
		charge_new(query, &query->nodes[node->caller].waits);
	else
		charge_new(query, &query->outside);
}

/* A run of a query ends.  The executor waits for a client after the last call of a node. */
void
pft_waits_charge_outside(FastQuery *query)
{
	if (query->with_waits && pft_charged.tick_ns != pft_ticks->last_ns)
		charge_new(query, &query->outside);
}

/*
 * Parallel workers
 */

/* A parallel worker reports the waits of its nodes. */
void
pft_waits_report(const FastQuery *query)
{
	int			leader;

	if (shared == NULL || MyProc->lockGroupLeader == NULL)
		return;
	leader = number_of(MyProc->lockGroupLeader);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	shared->sessions[leader].reported = true;
	if (!query->with_waits)
		shared->sessions[leader].incomplete = true;
	for (int i = 0; query->with_waits && i < query->node_count; i++)
	{
		const TreeNode *node = &query->nodes[i];

		if (node->waits == NULL)
			continue;
		if (shared->reports < MAX_REPORTS)
			shared->report[shared->reports++] = (Report) {leader, query->queryid, node->node->plan->plan_node_id, *node->waits};
		else
			shared->sessions[leader].incomplete = true;
	}
	LWLockRelease(lock);
}

/*
 * The leader adds what its workers have reported to the nodes of a query, and
 * removes it.  `query` is NULL before a statement: one that failed has left reports.
 */
void
pft_waits_collect(FastQuery *query)
{
	int			leader = number_of(MyProc);
	SessionWaits *own = &shared->sessions[leader];
	int			kept = 0;

	if (!own->reported)
		return;
	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (int r = 0; r < shared->reports; r++)
	{
		Report	   *report = &shared->report[r];

		/* Another query of this session can be in the middle of its execution.  A session that does not use ticks any more never reads its reports. */
		if (report->leader != leader ? shared->sessions[report->leader].active : query != NULL && report->queryid != query->queryid)
			shared->report[kept++] = *report;
		for (int i = 0; query != NULL && report->leader == leader && report->queryid == query->queryid && i < query->node_count; i++)
		{
			TreeNode   *node = &query->nodes[i];

			if (node->node->plan->plan_node_id != report->node)
				continue;
			for (int e = 0; e < WAIT_EVENTS; e++)
				if (report->times.ns[e] > 0)
					charge(query, &node->waits, report->times.event[e], report->times.ns[e]);
		}
	}
	shared->reports = kept;
	if (query != NULL && own->incomplete)
		query->with_waits = false;
	own->incomplete = false;
	own->reported = kept > 0 && query != NULL;
	LWLockRelease(lock);
}

/* This session starts to use the worker's ticks. */
void
pft_waits_start(void)
{
	SessionWaits *own = of_session();

	/* The events that an earlier statement waited for can fill the list. */
	if (own->times.event[WAIT_EVENTS - 1] != 0)
		memset(own->times.event, 0, sizeof(own->times.event));
	pft_waits_collect(NULL);
	own->active = true;
}

/* Returns the class of a wait event. */
static WaitClass
class_of(uint32 event)
{
	switch (event & 0xFF000000)
	{
		case PG_WAIT_IO:
			return WAIT_IO;
		case PG_WAIT_LWLOCK:
		case PG_WAIT_LOCK:
		case WAIT_BUFFER:
			return WAIT_LOCK;
		case PG_WAIT_CLIENT:
			return WAIT_CLIENT;
		default:
			return WAIT_OTHER;
	}
}

/*
 * Divides time into time on the CPU and waits.  A whole interval between ticks is
 * charged at once, so the waits of a node can exceed its time.  Then they are
 * reduced.
 */
SelfTime
pft_waits_divide(const WaitTimes *times, double self_ns)
{
	SelfTime	self = {.cpu_ns = self_ns};

	for (int i = 0; times != NULL && i < WAIT_EVENTS && times->ns[i] > 0; i++)
	{
		WaitPart   *part = &self.waits[class_of(times->event[i])];

		part->ns += times->ns[i];
		if (times->ns[i] > part->longest_ns)
		{
			part->longest_ns = times->ns[i];
			part->longest = times->event[i];
		}
	}
	pft_waits_limit(&self);
	return self;
}

/* Makes the waits parts of `cpu_ns`, the whole time until then. */
void
pft_waits_limit(SelfTime *self)
{
	double		sum = 0;
	double		factor;

	for (int c = 0; c < WAIT_CLASSES; c++)
		sum += self->waits[c].ns;
	factor = sum > self->cpu_ns ? self->cpu_ns / sum : 1;
	for (int c = 0; c < WAIT_CLASSES; c++)
	{
		self->waits[c].ns *= factor;
		self->waits[c].longest_ns *= factor;
	}
	self->cpu_ns = Max(self->cpu_ns - sum * factor, 0);
}

/* Returns the time of a class of waits. */
double
pft_waits_of_class(const WaitTimes *times, WaitClass class)
{
	double		ns = 0;

	for (int i = 0; times != NULL && i < WAIT_EVENTS; i++)
		if (times->ns[i] > 0 && class_of(times->event[i]) == class)
			ns += times->ns[i];
	return ns;
}

const char *
pft_waits_name(uint32 event)
{
	return event == PFT_OTHER_EVENTS ? "other events" : pgstat_get_wait_event(event);
}
