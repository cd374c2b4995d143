/*-------------------------------------------------------------------------
 *
 * profile.c
 *	  the times of plan nodes, summed over all executions
 *
 * Each profiled statement that has finished adds its nodes to a hash table in
 * shared memory.  An entry is one node of a plan.  The memory is fixed: if it is
 * full, the plans that were used least are removed, with all their nodes.
 *
 * The table's lock is taken in shared mode to add to nodes, and exclusively to
 * create or remove them.  Each node has a spinlock, as in pg_stat_statements.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pft.h"
#include "row.h"

#include <unistd.h>

#include "catalog/pg_authid.h"
#include "common/pg_prng.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/acl.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

/* At least this part of the memory is freed at a time, as in pg_stat_statements. */
#define REMOVED_PART	20

/* At each removal, earlier executions count less. */
#define USAGE_DECAY		0.99

#define PROFILE_FILE	PGSTAT_STAT_PERMANENT_DIRECTORY "/pg_fast_timing.profile"

/* The first number of the file.  It changes with the meaning of NodeEntry. */
#define FILE_VERSION	UINT64CONST(0x5046542d00000002)

typedef struct NodeKey
{
	uint64		queryid;
	uint64		planid;
	Oid			dbid;
	Oid			userid;
	int			node;			/* its number; 0: the root */
	uint32		unused;			/* 0; the table compares all bytes */
} NodeKey;

typedef struct NodeEntry
{
	NodeKey		key;			/* must be first */
	NodeShape	shape;
	int			parent;			/* node that calls it; -1: none */
	TimestampTz since;			/* the first execution */
	double		usage;			/* of node 0: executions, old ones count less */
	slock_t		mutex;			/* protects the values */
	double		values[NODE_VALUES];
} NodeEntry;

/* Columns of pg_fast_timing_profile_info() */
#define INFO_COLUMNS	8

/* In shared memory, besides the table. */
typedef struct Profile
{
	pg_atomic_uint64 removed;	/* plans, for lack of memory */
	pg_atomic_uint64 too_large; /* executions of plans with more nodes than there is memory */
	pg_atomic_uint64 untimed;	/* executions with nodes that have no time */
	pg_atomic_uint64 since;		/* TimestampTz */
	pg_atomic_uint64 without_queryid;	/* statements that were not profiled for this reason */
	pg_atomic_uint32 logged;	/* 1: the log says that compute_query_id is off */
} Profile;

static Profile *profile = NULL;	/* NULL: the library is not in shared_preload_libraries */
static HTAB *table;
static LWLock *lock;

Size
pft_profile_size(void)
{
	return add_size(MAXALIGN(sizeof(Profile)), hash_estimate_size(pft_profile_max_nodes, sizeof(NodeEntry)));
}

static void
reset_counters(void)
{
	pg_atomic_write_u64(&profile->removed, 0);
	pg_atomic_write_u64(&profile->too_large, 0);
	pg_atomic_write_u64(&profile->untimed, 0);
	pg_atomic_write_u64(&profile->without_queryid, 0);
	pg_atomic_write_u64(&profile->since, (uint64) GetCurrentTimestamp());
}

/*
 * The file
 */

/* The file: this header, the entries, and a checksum of both. */
typedef struct Header
{
	uint64		version;
	uint64		entry_size;
	uint64		entries;
} Header;

static pg_crc32c
checksum_of(const void *header, const void *entries, Size size)
{
	pg_crc32c	checksum;

	INIT_CRC32C(checksum);
	COMP_CRC32C(checksum, header, sizeof(Header));
	COMP_CRC32C(checksum, entries, size);
	return checksum;
}

/* Returns memory for all entries, or NULL. */
static NodeEntry *
memory_for(uint64 entries)
{
	return palloc_extended(Max(entries, 1) * sizeof(NodeEntry), MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

/* Stores the entries of a file.  Returns NULL, or why it cannot. */
static const char *
read_entries(FILE *file)
{
	Header		header;
	pg_crc32c	checksum;
	NodeEntry  *entries;
	bool		complete;

	if (fread(&header, sizeof(header), 1, file) != 1 || header.version != FILE_VERSION || header.entry_size != sizeof(NodeEntry))
		return "it is damaged or has another version";
	/* Not a part of them: a plan without some of its nodes would be wrong. */
	if (header.entries > pft_profile_max_nodes)
		return "it has more nodes than pg_fast_timing.profile_max_nodes allows";
	entries = memory_for(header.entries);
	if (entries == NULL)
		return "there is not enough memory";
	complete = fread(entries, sizeof(NodeEntry), header.entries, file) == header.entries &&
		fread(&checksum, sizeof(checksum), 1, file) == 1 &&
		EQ_CRC32C(checksum, checksum_of(&header, entries, header.entries * sizeof(NodeEntry)));
	for (uint64 i = 0; complete && i < header.entries; i++)
	{
		NodeEntry  *created = hash_search(table, &entries[i].key, HASH_ENTER, NULL);

		*created = entries[i];
		SpinLockInit(&created->mutex);
	}
	pfree(entries);
	return complete ? NULL : "it is damaged";
}

/* Reads the profile that the last shutdown has written, and removes it: after a crash it would be too old. */
static void
read_file(void)
{
	FILE	   *file = AllocateFile(PROFILE_FILE, PG_BINARY_R);
	const char *why;

	if (file == NULL)
	{
		if (errno != ENOENT)
			ereport(LOG, (errcode_for_file_access(), errmsg("could not read file \"%s\": %m", PROFILE_FILE)));
		return;
	}
	why = read_entries(file);
	if (why != NULL)
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("ignoring file \"%s\", because %s", PROFILE_FILE, why),
				 errdetail("The profile of pg_fast_timing starts empty.")));
	FreeFile(file);
	unlink(PROFILE_FILE);
}

/* Writes all entries.  Called when no backend runs any more; one that was killed may have left the table inconsistent. */
static bool
write_entries(FILE *file)
{
	Header		header = {FILE_VERSION, sizeof(NodeEntry), 0};
	uint64		most = hash_get_num_entries(table);
	NodeEntry  *entries = memory_for(most);
	pg_crc32c	checksum;
	HASH_SEQ_STATUS all;
	NodeEntry  *entry;

	errno = ENOMEM;
	if (entries == NULL)
		return false;
	hash_seq_init(&all, table);
	while ((entry = hash_seq_search(&all)) != NULL)
		if (header.entries < most)
			entries[header.entries++] = *entry;
	checksum = checksum_of(&header, entries, header.entries * sizeof(NodeEntry));
	return fwrite(&header, sizeof(header), 1, file) == 1 &&
		fwrite(entries, sizeof(NodeEntry), header.entries, file) == header.entries &&
		fwrite(&checksum, sizeof(checksum), 1, file) == 1;
}

/* Called in the postmaster.  `code` is 0 at a clean shutdown. */
static void
write_file(int code, Datum unused)
{
	FILE	   *file;
	bool		written;

	if (code != 0)
		return;
	file = AllocateFile(PROFILE_FILE ".tmp", PG_BINARY_W);
	written = file != NULL && write_entries(file);
	if (file != NULL && FreeFile(file) != 0)
		written = false;
	if (written)
		durable_rename(PROFILE_FILE ".tmp", PROFILE_FILE, LOG);
	else
	{
		ereport(LOG, (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", PROFILE_FILE ".tmp")));
		unlink(PROFILE_FILE ".tmp");
	}
}

/* Called while no backend runs, also after a crash. */
void
pft_profile_attach(void)
{
	HASHCTL		control = {.keysize = sizeof(NodeKey), .entrysize = sizeof(NodeEntry)};
	bool		found;

	profile = ShmemInitStruct("pg_fast_timing profile", sizeof(Profile), &found);
	table = SHARED_HASH("pg_fast_timing nodes", pft_profile_max_nodes, &control);
	lock = &GetNamedLWLockTranche(PFT_TRANCHE)[LOCK_OF_PROFILE].lock;
	if (found)
		return;
	reset_counters();
	pg_atomic_init_u32(&profile->logged, 0);
	if (IsUnderPostmaster)
		return;
	on_shmem_exit(write_file, 0);
	read_file();
}

/*
 * Statements
 */

/* Returns how many executions the one that starts now stands for; 0: it is not profiled. */
int
pft_profile_weight(const QueryDesc *queryDesc)
{
	if (!pft_profile || profile == NULL)
		return 0;
	if (queryDesc->plannedstmt->queryId == 0)
	{
		pg_atomic_fetch_add_u64(&profile->without_queryid, 1);
		if (!IsQueryIdEnabled() && pg_atomic_exchange_u32(&profile->logged, 1) == 0)
			ereport(LOG_SERVER_ONLY,
					(errmsg("pg_fast_timing.profile ignores statements without a query identifier"),
					 errhint("Set compute_query_id to auto or on."),
					 errhidestmt(true), errhidecontext(true)));
		return 0;
	}
	if (pft_profile_sample_rate < 0)
		return pft_sample(queryDesc->plannedstmt->queryId);
	return pft_profile_sample_rate >= 1 || pg_prng_double(&pg_global_prng_state) < pft_profile_sample_rate;
}

/* The plan that was used least comes first; of two, the older one. */
static int
compare_usage(const void *a, const void *b)
{
	const NodeEntry *first = *(NodeEntry *const *) a;
	const NodeEntry *second = *(NodeEntry *const *) b;

	if (first->usage != second->usage)
		return first->usage > second->usage ? 1 : -1;
	return (first->since > second->since) - (first->since < second->since);
}

static void
remove_entry(NodeEntry *entry)
{
	hash_search(table, &entry->key, HASH_REMOVE, NULL);
}

/* Returns the first node of an entry's plan, or NULL. */
static NodeEntry *
root_of(const NodeEntry *entry)
{
	NodeKey		key = entry->key;

	key.node = 0;
	return hash_search(table, &key, HASH_FIND, NULL);
}

/* Removes the plans that were used least.  The caller has locked the table exclusively. */
static void
remove_plans(void)
{
	NodeEntry **roots = palloc((hash_get_num_entries(table) + 1) * sizeof(NodeEntry *));
	int			count = 0;
	int			most;
	HASH_SEQ_STATUS all;
	NodeEntry  *entry;

	hash_seq_init(&all, table);
	while ((entry = hash_seq_search(&all)) != NULL)
		if (entry->key.node == 0)
		{
			entry->usage *= USAGE_DECAY;
			roots[count++] = entry;
		}
	qsort(roots, count, sizeof(NodeEntry *), compare_usage);
	most = Min(count, count / REMOVED_PART + 1);
	for (int i = 0; i < most; i++)
		roots[i]->usage = -1;
	hash_seq_init(&all, table);
	while ((entry = hash_seq_search(&all)) != NULL)
	{
		NodeEntry  *root = entry->key.node != 0 ? root_of(entry) : entry;

		if (entry != root && (root == NULL || root->usage < 0))
			remove_entry(entry);
	}
	for (int i = 0; i < most; i++)
		remove_entry(roots[i]);
	pg_atomic_fetch_add_u64(&profile->removed, most);
	pfree(roots);
}

/* The nodes of a statement that has finished. */
typedef struct Execution
{
	const FastQuery *query;
	NodeKey		key;			/* of node 0 */
	NodeEntry **entries;		/* one for each node; NULL: not found */
} Execution;

/* Returns the number of a node.  The planner numbers nodes in preorder, but it can remove those above the root. */
static int
number_of(const FastQuery *query, int i)
{
	return query->nodes[i].node->plan->plan_node_id - query->nodes[0].node->plan->plan_node_id;
}

static NodeKey
key_of(const Execution *execution, int i)
{
	NodeKey		key = execution->key;

	key.node = number_of(execution->query, i);
	return key;
}

/* Finds the entries of all nodes.  Returns how many are missing. */
static int
find_entries(const Execution *execution)
{
	int			missing = 0;

	for (int i = 0; i < execution->query->node_count; i++)
	{
		NodeKey		key = key_of(execution, i);

		execution->entries[i] = hash_search(table, &key, HASH_FIND, NULL);
		missing += execution->entries[i] == NULL;
	}
	return missing;
}

/* Returns the subplan with this root, or NULL. */
static const SubPlan *
subplan_of(const FastQuery *query, const PlanState *root)
{
	for (int i = 0; i < query->node_count; i++)
	{
		const PlanState *owner = query->nodes[i].node;
		ListCell   *cell;

		foreach(cell, owner->initPlan)
			if (lfirst_node(SubPlanState, cell)->planstate == root)
				return lfirst_node(SubPlanState, cell)->subplan;
		foreach(cell, owner->subPlan)
			if (lfirst_node(SubPlanState, cell)->planstate == root)
				return lfirst_node(SubPlanState, cell)->subplan;
	}
	return NULL;
}

/* Copies the beginning of a name, up to a whole character. */
static void
copy_name(char *copy, const char *name, Size size)
{
	int			length = pg_mbcliplen(name, strlen(name), size - 1);

	memcpy(copy, name, length);
	copy[length] = '\0';
}

/* Creates the entries that are missing.  The caller has locked the table exclusively. */
static void
create_entries(const Execution *execution)
{
	const FastQuery *query = execution->query;

	for (int i = 0; i < query->node_count; i++)
	{
		NodeKey		key = key_of(execution, i);
		NodeEntry  *entry;
		const SubPlan *subplan = NULL;
		bool		found;

		if (execution->entries[i] != NULL)
			continue;
		entry = hash_search(table, &key, HASH_ENTER, &found);
		execution->entries[i] = entry;
		/* A custom scan can give several nodes the same id. */
		if (found)
			continue;
		memset((char *) entry + sizeof(NodeKey), 0, sizeof(NodeEntry) - sizeof(NodeKey));
		entry->shape = pft_shape_of(query->nodes[i].node);
		if (query->nodes[i].readers != NULL)
			subplan = subplan_of(query, query->nodes[i].node);
		if (subplan != NULL)
			copy_name(entry->shape.subplan, psprintf("%s%s", SUBPLAN_KIND(subplan), subplan->plan_name), SUBPLAN_LENGTH);
		entry->parent = query->nodes[i].caller >= 0 ? number_of(query, query->nodes[i].caller) : -1;
		entry->since = GetCurrentTimestamp();
		SpinLockInit(&entry->mutex);
	}
}

/* Locks the table, and finds or creates the entries of a statement.  Returns false if they need more than the memory. */
static bool
lock_entries(const Execution *execution)
{
	int			missing;

	if (execution->query->node_count > pft_profile_max_nodes)
		return false;
	LWLockAcquire(lock, LW_SHARED);
	if (find_entries(execution) == 0)
		return true;
	LWLockRelease(lock);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	while ((missing = find_entries(execution)) > pft_profile_max_nodes - hash_get_num_entries(table))
		remove_plans();
	create_entries(execution);
	return true;
}

/*
 * Adds the values of an execution that stands for `weight` ones to their sums.
 * `steady`: it is known that all of them had this plan.
 */
static void
add_values(double *sums, const double *values, double weight, bool steady)
{
	double		mean = steady && sums[EXECUTIONS] > 0 ? sums[SELF_NS] / sums[EXECUTIONS] : 0;

	if (weight > 1)
		sums[SAMPLING_VARIANCE] += pow(weight * (values[SELF_NS] - mean), 2);
	sums[SELF_VARIANCE] += weight * (weight - 1) * values[SELF_VARIANCE];
	for (int v = 0; v <= CLOCK_NS; v++)
		sums[v] += weight * values[v];
	sums[PROFILED] += 1;
}

/* Adds a finished statement to the profile.  `timed`: all its nodes have times, and no clock jumped. */
void
pft_profile_add(const QueryDesc *queryDesc, const FastQuery *query, bool timed)
{
	double		values[NODE_VALUES];
	Execution	execution = {
		.query = query,
		.key = {
			.queryid = queryDesc->plannedstmt->queryId,
			.planid = pft_plan_id(query),
			.dbid = MyDatabaseId,
			.userid = GetUserId()
		}
	};
	bool		steady = pft_sample_note(query, execution.key.planid);

	if (!timed)
	{
		pg_atomic_fetch_add_u64(&profile->untimed, query->profiled);
		return;
	}
	execution.entries = palloc(query->node_count * sizeof(NodeEntry *));
	if (!lock_entries(&execution))
	{
		pg_atomic_fetch_add_u64(&profile->too_large, query->profiled);
		pfree(execution.entries);
		return;
	}
	for (int i = 0; i < query->node_count; i++)
	{
		NodeEntry  *entry = execution.entries[i];

		pft_node_values(query, i, values);
		SpinLockAcquire(&entry->mutex);
		entry->usage += query->profiled;
		add_values(entry->values, values, query->profiled, steady);
		SpinLockRelease(&entry->mutex);
	}
	LWLockRelease(lock);
	pfree(execution.entries);
}

/*
 * SQL functions
 */

/* Says why the profile is empty. */
static bool
is_available(void)
{
	if (profile == NULL)
		ereport(WARNING,
				(errmsg("pg_fast_timing has no profile, because it is not in shared_preload_libraries"),
				 errhint("Add it to shared_preload_libraries, and restart the server.")));
	return profile != NULL;
}

/* Adds a name, or null.  Another database can have another encoding. */
static void
add_name(Row *row, const char *name)
{
	if (!pg_verifymbstr(name, strlen(name), true))
		name = "?";
	row_add_text(row, name[0] != '\0' ? name : NULL);
}

/* Limits sums to what is possible, and returns whether the waits are known.  A single execution can be wrong by chance, but not its part of a sum. */
static bool
limit_values(double *values)
{
	SelfTime	self = {.cpu_ns = Max(values[CPU_NS], 0)};
	bool		known = self.cpu_ns > 0 || values[SELF_NS] <= 0;

	values[TOTAL_NS] = Max(values[TOTAL_NS], 0);
	values[SELF_NS] = Max(values[SELF_NS], 0);
	values[SELF_VARIANCE] = pft_error_of_sum(values);
	for (int c = 0; c < WAIT_CLASSES; c++)
		self.waits[c].ns = values[FIRST_WAIT_NS + c];
	pft_waits_limit(&self);
	values[CPU_NS] = self.cpu_ns;
	for (int c = 0; c < WAIT_CLASSES; c++)
		values[FIRST_WAIT_NS + c] = self.waits[c].ns;
	values[PLAN_CLIENT_NS] = Min(values[PLAN_CLIENT_NS], values[PLAN_NS]);
	return known;
}

static bool
is_wait(int value)
{
	return (value >= CPU_NS && value <= LAST_WAIT_NS) || value == PLAN_CLIENT_NS;
}

PG_FUNCTION_INFO_V1(pg_fast_timing_profile);
PG_FUNCTION_INFO_V1(pg_fast_timing_profile_info);
PG_FUNCTION_INFO_V1(pg_fast_timing_profile_reset);

/* Returns all nodes that the user may see. */
Datum
pg_fast_timing_profile(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		sees_all = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	HASH_SEQ_STATUS all;
	NodeEntry  *entry;

	InitMaterializedSRF(fcinfo, 0);
	if (!is_available())
		return (Datum) 0;
	LWLockAcquire(lock, LW_SHARED);
	hash_seq_init(&all, table);
	while ((entry = hash_seq_search(&all)) != NULL)
	{
		Row			row = {0};
		double		values[NODE_VALUES];
		double		raw_self_ns;
		bool		waits_known;

		if (!sees_all && entry->key.userid != GetUserId())
			continue;
		row_add(&row, ObjectIdGetDatum(entry->key.dbid));
		row_add(&row, ObjectIdGetDatum(entry->key.userid));
		row_add(&row, Int64GetDatum((int64) entry->key.queryid));
		row_add(&row, Int64GetDatum((int64) entry->key.planid));
		row_add(&row, Int32GetDatum(entry->key.node));
		row.nulls[row.length] = entry->parent < 0;
		row_add(&row, Int32GetDatum(entry->parent));
		add_name(&row, entry->shape.subplan);
		add_name(&row, entry->shape.kind);
		add_name(&row, entry->shape.relation);
		add_name(&row, entry->shape.index);
		row_add(&row, TimestampTzGetDatum(entry->since));
		SpinLockAcquire(&entry->mutex);
		memcpy(values, entry->values, sizeof(values));
		SpinLockRelease(&entry->mutex);
		raw_self_ns = values[SELF_NS];
		waits_known = limit_values(values);
		for (int v = 0; v <= PLAN_CLIENT_NS; v++)
		{
			row.nulls[row.length] = is_wait(v) && !waits_known;
			row_add(&row, Float8GetDatum(values[v]));
		}
		row_add(&row, Float8GetDatum(raw_self_ns));
		row_add(&row, Float8GetDatum(values[PROFILED]));
		tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
	}
	LWLockRelease(lock);
	return (Datum) 0;
}

static void
add_count(Row *row, pg_atomic_uint64 *count)
{
	row_add(row, Int64GetDatum((int64) pg_atomic_read_u64(count)));
}

/* Returns one row about the profile itself. */
Datum
pg_fast_timing_profile_info(PG_FUNCTION_ARGS)
{
	Row			row = {0};

	if (profile == NULL)
	{
		row_add_text(&row, "not available: the library is not in shared_preload_libraries");
		memset(row.nulls + 1, true, INFO_COLUMNS - 1);
		row.length = INFO_COLUMNS;
		return row_result(fcinfo, &row);
	}
	row_add_text(&row, !pft_profile ? "off" : IsQueryIdEnabled() ? "on" : "on, but compute_query_id is off");
	LWLockAcquire(lock, LW_SHARED);
	row_add(&row, Int64GetDatum(hash_get_num_entries(table)));
	LWLockRelease(lock);
	row_add(&row, Int64GetDatum(pft_profile_max_nodes));
	add_count(&row, &profile->removed);
	add_count(&row, &profile->too_large);
	add_count(&row, &profile->untimed);
	add_count(&row, &profile->without_queryid);
	row_add(&row, TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&profile->since)));
	return row_result(fcinfo, &row);
}

/* Removes the plans of a statement, or one plan of it, or all plans if both arguments are null. */
Datum
pg_fast_timing_profile_reset(PG_FUNCTION_ARGS)
{
	HASH_SEQ_STATUS all;
	NodeEntry  *entry;

	if (!is_available())
		PG_RETURN_VOID();
	LWLockAcquire(lock, LW_EXCLUSIVE);
	hash_seq_init(&all, table);
	while ((entry = hash_seq_search(&all)) != NULL)
		if ((PG_ARGISNULL(0) || entry->key.queryid == (uint64) PG_GETARG_INT64(0)) &&
			(PG_ARGISNULL(1) || entry->key.planid == (uint64) PG_GETARG_INT64(1)))
			remove_entry(entry);
	if (PG_ARGISNULL(0) && PG_ARGISNULL(1))
		reset_counters();
	LWLockRelease(lock);
	PG_RETURN_VOID();
}
