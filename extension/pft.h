/*-------------------------------------------------------------------------
 *
 * pft.h
 *	  what the files of pg_fast_timing share
 *
 * The way of a query: ExecutorStart calls pft_install() (nodes.c), which replaces
 * the functions of its nodes.  Each call then goes through a wrapper (wrappers.c),
 * exact at first, and then with ticks.  begin_run() and note_run() surround a run
 * (pg_fast_timing.c).  After the last one, finish_query() corrects the times
 * (estimate.c), and EXPLAIN (explain.c) or the profile (profile.c) shows them.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PFT_H
#define PFT_H

#include "compat.h"

#include <math.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "access/parallel.h"
#include "fmgr.h"
#include "lib/ilist.h"
#include "port/atomics.h"
#include "utils/guc.h"

/* How the calls of plan nodes are timed. */
typedef enum Method
{
	METHOD_OFF = 0,				/* by the server */
	METHOD_AUTO,				/* exact while cheap, then estimated from ticks */
	METHOD_TSC,					/* exact, with the CPU's counter */
	METHOD_COUNT				/* not at all: the statement wants rows or buffers
								 * without times; not a value of the setting */
} Method;

/* Whose calls of plan nodes are counted, besides those of statements with instrumentation. */
typedef enum CountCalls
{
	COUNT_NONE,
	COUNT_TOP,					/* statements of clients */
	COUNT_ALL					/* also statements within functions */
} CountCalls;

/* Who writes the ticking clock. */
typedef enum TickerKind
{
	TICKER_WORKER,				/* the background worker, for all backends */
	TICKER_THREAD,				/* a thread of this backend */
	TICKER_NONE
} TickerKind;

/* The clock that times calls. */
typedef enum ClockKind
{
	KIND_SYSTEM,				/* the server's clock, in ns */
	KIND_TSC					/* the CPU's counter, in ticks */
} ClockKind;

/* How the calls of a node are timed now. */
typedef enum Phase
{
	PHASE_EXACT = 0,			/* each call, with two reads of a clock */
	PHASE_TICKS,				/* by the ticks that fall into calls */
	PHASE_UNTIMED				/* not at all */
} Phase;

typedef struct FastQuery FastQuery;
typedef struct FastInstr FastInstr;
typedef struct TreeNode TreeNode;

/* The instrumentation of a plan node: core's struct, followed by ours.  planstate->instrument points to it. */
struct FastInstr
{
	CoreInstr	core;			/* must be first */
	ExecProcNodeMtd wrapper;	/* times the calls; NULL before the first one */
	ExecProcNodeMtd entry;		/* NULL, or a function that calls the wrapper */
	PlanState  *node;
	FastQuery  *query;
	TreeNode   *tree_node;
	Phase		phase;
	int32		left;			/* exact calls until the next request for budget */
	uint64		granted;		/* exact calls that the budget has allowed */
	uint64		later_calls;	/* calls after the exact ones */
	CoreUsage	start;			/* not for each call: only if a counter had changed */
	uint32		fraction;		/* part of a ns not yet added, in units of 2^-32 */
	uint64		ticks;			/* that fell into calls */
	double		short_ns;		/* time by ticks of calls shorter than two periods */
	double		short_squares;	/* its squares, per call */
	double		variance;		/* of the other time, in ns^2 */
	bool		workers_untimed;	/* a parallel worker had no ticks */
};

/* More events than a statement usually waits for. */
#define WAIT_EVENTS		16

/* Stands for all other events, if there are more. */
#define PFT_OTHER_EVENTS	PG_UINT32_MAX

/* Time by wait event, in the order in which the events were met. */
typedef struct WaitTimes
{
	uint64		ns[WAIT_EVENTS];
	uint32		event[WAIT_EVENTS];	/* 0: none */
} WaitTimes;

/* The waits of this session that have been charged to nodes. */
typedef struct WaitMark
{
	uint64		tick_ns;		/* time of the last tick then */
	uint64		ns[WAIT_EVENTS];
} WaitMark;

typedef enum WaitClass
{
	WAIT_IO,
	WAIT_LOCK,					/* locks of all kinds, and buffer pins */
	WAIT_CLIENT,
	WAIT_OTHER,
	WAIT_CLASSES
} WaitClass;

/* A node's waits of a class. */
typedef struct WaitPart
{
	double		ns;
	uint32		longest;		/* the event with the longest time */
	double		longest_ns;
} WaitPart;

/* A node's own time. */
typedef struct SelfTime
{
	double		cpu_ns;
	WaitPart	waits[WAIT_CLASSES];
} SelfTime;

/* A node of a query's plan. */
struct TreeNode
{
	PlanState  *node;
	int			parent;			/* index of the parent node; -1: the root of the
								 * plan or of a subplan */
	int			caller;			/* index of the parent, or of a node that calls the
								 * subplan; -1: none */
	Bitmapset  *readers;		/* of the root of a subplan: the nodes that call it */
	FastInstr  *fi;				/* our instrumentation, or NULL */
	WaitTimes  *waits;			/* of its own code; NULL: none */
	double		self_ns;		/* time without that of other nodes */
	double		self_variance;	/* in ns^2, caused by ticks; 0: exact */
	double		clock_ns;		/* reads of clocks within self_ns, at most */
	double		waits_of_ns;	/* the time that `waits` are a part of */
};

/* A query with our instrumentation. */
struct FastQuery
{
	dlist_node	link;
	const EState *estate;
	MemoryContextCallback release;
	TreeNode   *nodes;			/* each node once, a parent before its children */
	int			node_count;
	Method		method;			/* when the query started */
	ClockKind	clock;
	bool		server_tsc;		/* instr_time counts the CPU's ticks (19) */
	bool		has_run;
	bool		jumped;			/* a clock jumped, or the server changed its clock */
	bool		parallel;		/* workers were started whose times can be estimates */
	uint64		queryid;
	int			profiled;		/* executions that this one stands for in the profile; 0: none */
	bool		uncounted;		/* only the profile wants its calls */
	bool		wants_waits;	/* and self times */
	WaitTimes  *outside;		/* waits outside of the nodes; NULL: none */
	bool		with_waits;		/* the worker has ticked since the query started */
	bool		workers_exact;	/* their calls fit into the budget */
	PlanState  *gather;			/* its first call is running, and core initializes
								 * nodes again */

	/* the budget */
	bool		typed;			/* a person has typed EXPLAIN */
	double		spent_ns;		/* cost of the calls that were allowed */
	uint64		run_start;		/* of the current run, by the query's clock */
	double		elapsed_ns;		/* time of all finished runs; negative: unknown */
	double		known_ns;		/* the same and the current run until the last
								 * request for budget */
	uint64		refused_ns;		/* no request succeeds before the coarse clock moves */

	/* the ticks */
	int			sampled;		/* number of nodes that are not exact */
	double		period_ns;		/* mean time between ticks, in the run with the
								 * rarest ones */
	double		lost_ns;		/* time not attributed because the last tick was
								 * overdue when the run ended */
	double		tickless_ns;	/* time without a ticker, or while it was stopped */
	bool		tickless;		/* ticks are needed in this run, but cannot be started */
};

/* What the profile stores of a node, summed over its executions. */
typedef enum NodeValue
{
	EXECUTIONS,					/* of the statement */
	LOOPS,
	ROWS,
	CALLS,
	PLANNED_ROWS,				/* as the planner expected them, in all loops */
	TOTAL_NS,
	SELF_NS,
	SELF_VARIANCE,				/* in ns^2 */
	STARTUP_NS,
	CPU_NS,						/* parts of the self time */
	FIRST_WAIT_NS,
	LAST_WAIT_NS = FIRST_WAIT_NS + WAIT_CLASSES - 1,
	SHARED_HIT,					/* blocks */
	SHARED_READ,
	TEMP_BLOCKS,				/* read or written */
	PLAN_NS,					/* of the whole statement, stored with its first node */
	PLAN_CLIENT_NS,				/* waits for the client between the calls of the first node */
	CLOCK_NS,					/* reads of clocks within the self time, at most */
	SAMPLING_VARIANCE,			/* of the self time, in ns^2: not each execution is profiled */
	PROFILED,					/* executions that were profiled */
	NODE_VALUES
} NodeValue;

#define SUBPLAN_LENGTH	32
#define KIND_LENGTH		48

/* What identifies a plan node in all executions. */
typedef struct NodeShape
{
	char		kind[KIND_LENGTH];	/* in the words of EXPLAIN: Hash Left Join */
	char		relation[NAMEDATALEN];
	char		index[NAMEDATALEN];
	char		subplan[SUBPLAN_LENGTH];	/* name of the subplan of which it is the root */
} NodeShape;

/* How a node's time was obtained. */
typedef enum Quality
{
	TIME_EXACT,
	TIME_ESTIMATED,
	TIME_NONE,					/* there were no ticks */
	TIME_WRONG					/* a clock jumped */
} Quality;

typedef struct Estimate
{
	Quality		quality;
	uint64		samples;		/* timed calls and ticks behind the estimate */
	double		error_ns;		/* 95% half-width for all loops together */
} Estimate;

/* The last timed statement. */
typedef struct LastStatement
{
	int			nodes;			/* nodes that we timed */
	int			estimated;		/* of these, nodes with estimated times */
	int			untimed;		/* and nodes without times */
	uint64		samples;
	double		error_ns;		/* largest error of a node */
	Method		method;
	ClockKind	clock;
	double		period_ns;		/* mean time between ticks */
	bool		jumped;			/* its times are wrong */
	bool		just_finished;	/* no other statement has finished since then */
} LastStatement;

/* The counters of pg_stat_fast_timing, in the order of its columns. */
typedef enum Counter
{
	STATEMENTS,					/* timed statements */
	EXACT_NODES,				/* plan nodes whose calls were all timed */
	ESTIMATED_NODES,
	NODE_CALLS,					/* calls of plan nodes, timed or counted */
	WITHOUT_TSC,				/* statements that the server timed, because the
								 * method tsc had no counter */
	WITHOUT_TICKS,				/* statements with nodes that have no time */
	TIMING_NS,					/* what reading clocks for calls cost */
	CLOCK_JUMPS,				/* statements whose times are wrong */
	COUNTERS
} Counter;

/* The CPU's counter and the kernel's raw clock at the same moment. */
typedef struct ClockPair
{
	uint64		tsc;
	uint64		ns;				/* 0: the counter is not readable */
	uint64		width;			/* ticks; the error of tsc is half of this */
	uint64		coarse_ns;		/* a cheap clock with steps of some ms */
} ClockPair;

/* Measured properties of a clock. */
typedef struct ClockFacts
{
	double		ns_per_tick;
	double		cost;			/* cost of timing a call, in ticks */
	bool		stale;			/* must be measured again */
} ClockFacts;

/* A clock in memory.  Only its owner writes it, and backends read it without a lock. */
typedef struct Ticker
{
	volatile uint64 last_ns;	/* time of the last tick */
	volatile uint64 next_ns;	/* time of the next tick */
	volatile uint64 stopped_ns; /* sum of the intervals whose tick came too late */
	volatile uint64 period_ns;	/* mean time between ticks */
} Ticker;

/* Our locks, in the order of the tranche. */
#define PFT_TRANCHE		"pg_fast_timing"
enum
{
	LOCK_OF_REPORTS,			/* waits of parallel workers */
	LOCK_OF_PROFILE,
	LOCKS
};

/* settings.c */
#define MOST_NODES		10000000
extern int	pft_method;
extern int	pft_count_calls;
extern int	pft_ticker;
extern int	pft_sample_rate;
extern bool pft_log_estimates;
extern bool pft_profile;
extern double pft_profile_sample_rate;
extern int	pft_profile_max_nodes;
extern const struct config_enum_entry pft_method_options[];	/* in the order of Method */
extern const struct config_enum_entry pft_ticker_options[];
extern void pft_define_settings(void);

/* clock.c */
extern ClockFacts pft_clocks[2];
extern uint64 pft_tsc_scale;	/* ns per tick, in units of 2^-32 */
extern const Ticker *pft_ticks;	/* the clock in memory.  It changes only while no query needs ticks. */
extern Size pft_clock_size(void);
extern void pft_clock_attach(void *memory, bool found);
extern void pft_clock_init(void);
extern void pft_clock_measure(ClockKind kind);
extern double pft_tsc_khz;		/* rate; 0: unknown */
extern double pft_tsc_ppm;		/* bound of its error */
extern const char *pft_tsc_reason;	/* why it is not used; NULL: it is */
extern bool pft_tsc_usable(bool may_wait);
extern ClockPair pft_read_pair(void);
extern ClockPair pft_recent_pair(uint64 now);
extern bool pft_clocks_agree(ClockPair start, uint64 now);

/* counters.c */
typedef struct Row Row;
extern Size pft_counters_size(void);
extern void pft_counters_attach(void *memory, bool found);
extern void pft_counters_reset(void);
extern void pft_counters_add_to(Row *row, Counter after_last);
extern void pft_count(Counter counter, uint64 n);

/* pool.c */
#define PFT_POOL_SIZE	(UINT64CONST(1) << 26)
extern char *pft_pool;
extern FastInstr *pft_pool_take(void);
extern void pft_pool_return(FastInstr *fi);
extern FastInstr *pft_instr_of(const PlanState *node);

/* nodes.c */
extern bool pft_returns_all_at_once(const PlanState *node);
extern FastQuery *pft_query_of(const QueryDesc *queryDesc);
extern const TreeNode *pft_tree_node_of(const PlanState *node);
extern void pft_install(QueryDesc *queryDesc, FastQuery *query);
extern void pft_reinstall(FastQuery *query);

/* wrappers.c */
extern ExecProcNodeMtd pft_wrapper(const FastInstr *fi);
extern void pft_request_calls(FastInstr *fi);
extern double pft_calls(const FastInstr *fi);
extern double pft_call_cost_ns(ClockKind kind);
extern double pft_most_cost_ns(const FastQuery *query, double calls, bool ours);
extern bool pft_fits_budget(const FastQuery *query, double calls);

/* estimate.c */
extern LastStatement pft_last;
extern Estimate pft_estimate(const FastInstr *fi);
extern double pft_error_of_sum(const double *sums);
extern void pft_node_values(const FastQuery *query, int i, double *values);
extern double pft_calls_without_wrapper(const PlanState *node);
extern void pft_read_workers(FastQuery *query);
extern void pft_make_consistent(FastQuery *query);
extern void pft_find_self_times(FastQuery *query);
extern bool pft_all_timed(const FastQuery *query);
extern LastStatement pft_note_statement(const FastQuery *query);
extern char *pft_describe_last(void);

/* waits.c */
extern WaitMark pft_charged;
extern Size pft_waits_size(void);
extern void pft_waits_attach(void *memory, bool found);
extern void pft_waits_read(uint64 interval_ns);
extern void pft_waits_start(void);
extern void pft_waits_stop(void);
extern void pft_waits_skip(void);
extern void pft_waits_charge(FastInstr *fi, bool to_caller);
extern void pft_waits_charge_outside(FastQuery *query);
extern void pft_waits_report(const FastQuery *query);
extern void pft_waits_collect(FastQuery *query);
extern SelfTime pft_waits_divide(const WaitTimes *times, double self_ns);
extern void pft_waits_limit(SelfTime *self);
extern double pft_waits_of_class(const WaitTimes *times, WaitClass class);
extern const char *pft_waits_name(uint32 event);

/* shape.c */
extern NodeShape pft_shape_of(const PlanState *node);
extern uint64 pft_plan_id(const FastQuery *query);

/* sample.c */
extern int	pft_sample(uint64 queryid);
extern bool pft_sample_note(const FastQuery *query, uint64 planid);

/* profile.c */
extern Size pft_profile_size(void);
extern void pft_profile_attach(void);
extern int	pft_profile_weight(const QueryDesc *queryDesc);
extern void pft_profile_add(const QueryDesc *queryDesc, const FastQuery *query, bool timed);

/* ticker.c */
extern Size pft_ticker_size(void);
extern void pft_ticker_attach(void *memory, bool found);
extern void pft_ticker_init(void);
extern uint64 pft_ticker_period_ns(void);
extern void pft_ticker_note_period(FastQuery *query);
extern bool pft_ticker_start(void);
extern bool pft_ticker_start_worker(void);
extern void pft_ticker_stop(void);
extern uint64 pft_ticker_mark(void);
extern void pft_ticker_note_loss(FastQuery *query, uint64 mark, double ns);
extern TickerKind pft_ticker_now(const char **reason);

/* explain.c */
extern void pft_explain_init(void);

/*
 * Returns whether a node's instrumentation is one of ours.  Another extension
 * can replace it at any time, and we do not know how it allocates memory.  So
 * all of ours are in one range of addresses.
 */
static pg_attribute_always_inline bool
pft_is_ours(const void *instrument)
{
	return (uintptr_t) instrument - (uintptr_t) pft_pool < PFT_POOL_SIZE;
}

/* Elsewhere the counter is 0 and is never used, so that no code needs a second version. */
static pg_attribute_always_inline uint64
tsc_now(void)
{
#if defined(__x86_64__) && defined(__linux__)
	return __rdtsc();
#elif defined(__aarch64__) && defined(__linux__)
	uint64		ticks;

	__asm__ __volatile__("mrs %0, cntvct_el0":"=r"(ticks));
	return ticks;
#else
	return 0;
#endif
}

/*
 * Reads the counter after all earlier instructions.  Without this order, a CPU
 * that waits for memory reads its counter too early, and a call gets a part of
 * its caller's time.  System clocks are also read in order.
 */
static pg_attribute_always_inline uint64
tsc_ordered(void)
{
#if defined(__x86_64__)
	_mm_lfence();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb":::"memory");
#endif
	return tsc_now();
}

/* For platforms without a known counter.  This code is compiled there, but never runs. */
#ifndef CLOCK_MONOTONIC_RAW
#define CLOCK_MONOTONIC_RAW CLOCK_MONOTONIC
#endif

/* A cheap clock that moves in steps of 1 to 10 ms. */
#ifndef CLOCK_MONOTONIC_COARSE
#define CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC
#endif

static pg_attribute_always_inline uint64
ns_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64) now.tv_sec * 1000000000 + now.tv_nsec;
}

static pg_attribute_always_inline uint64
system_now(void)
{
	return ns_of(CLOCK_MONOTONIC);
}

static pg_attribute_always_inline uint64
coarse_now(void)
{
	return ns_of(CLOCK_MONOTONIC_COARSE);
}

static pg_attribute_always_inline uint64
clock_ordered(ClockKind kind)
{
	return kind == KIND_TSC ? tsc_ordered() : system_now();
}

/* For times between which more than a call lies. */
static pg_attribute_always_inline uint64
clock_now(ClockKind kind)
{
	return kind == KIND_TSC ? tsc_now() : system_now();
}

/* Returns the ns between two readings of a clock, negative if it went back. */
static inline double
ns_between(ClockKind kind, uint64 start, uint64 end)
{
	return (double) (int64) (end - start) * pft_clocks[kind].ns_per_tick;
}

#endif							/* PFT_H */
