/*-------------------------------------------------------------------------
 *
 * log.c
 *	  marks estimated times in the log of auto_explain
 *
 * Other extensions cannot add to the output of auto_explain before 18.  With
 * pg_fast_timing.log_estimates, a line precedes each of its log entries that has
 * estimates.  The line is a separate log entry: programs that read logs do not expect
 * more lines in entries of auto_explain.  pgBadger, for example, takes a DETAIL
 * for a part of the statement.
 *
 * auto_explain logs a statement immediately after its ExecutorFinish.  So the last
 * statement that finished is the one in the log entry.
 *
 * Copyright (c) 2026, the pg_timing authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "estimate.h"
#include "log.h"
#include "settings.h"

/* The text before translation.  auto_explain has it in all versions. */
#define AUTO_EXPLAIN_MESSAGE	"duration: %.3f ms  plan:\n%s"

static emit_log_hook_type prev_emit_log = NULL;

/* Called before an entry is written to the server's log. */
static void
log_estimates(ErrorData *entry)
{
	const LastStatement *last = &fast_last_statement;

	if (fast_log_estimates && last->just_finished && last->estimated > 0 &&
		entry->message_id != NULL && strcmp(entry->message_id, AUTO_EXPLAIN_MESSAGE) == 0)
		ereport(LOG_SERVER_ONLY,
				(errmsg_internal("pg_fast_timing: in the next plan, %s", fast_describe_estimates()),
				 errhidestmt(true), errhidecontext(true)));
	if (prev_emit_log)
		prev_emit_log(entry);
}

void
fast_log_init(void)
{
	prev_emit_log = emit_log_hook;
	emit_log_hook = log_estimates;
}
