/*
 * Kept counts. A question for a number must not walk what is counted, so `tally` holds how many
 * there are of each kind:
 *
 *	kind		name	part	number	which
 *	project		project		state	tasks
 *	group		project	group	state	of these, those of a group
 *	personal				memories that have an owner
 *	in_chat					memories with a chat and no owner
 *	in_project				memories with a project, and neither owner nor chat
 *	common					memories with none of these
 *	owner		owner			an owner's memories
 *	open		owner			of these, those learnt in a chat known not to be private
 *	open_in		owner	chat		of these, those learnt in this chat
 *	closed_in	owner	chat		an owner's learnt in this chat that are not open
 *	chat		chat			a chat's memories that have no owner
 *	project_memory	project			a project's memories that have neither owner nor chat
 *	owners					owners
 *	talk					conversations that have not been ended
 *	said					messages in all of these
 *	child		parent			of these, those with this parent
 *	ended					conversations that have been ended
 *	ended_as	id			of these, those with this id
 *	call					calls of tools in messages
 *	folder		folder			sessions in a folder
 *
 * The vectors of memories are counted as their memories are, under their model, with their dim
 * as number.
 *
 * Adding a row costs nothing. A table's rows are counted up to its mark; those behind it are few,
 * and are counted when somebody asks. store/tally.h moves the mark now and then. Rows before the
 * mark that change or go are counted by triggers, whoever changes them, in the same transaction.
 * A tally that reaches 0 is deleted, so that tallies do not outlive what they count.
 */
#pragma once

/* clang-format off */

#define TALLY_MARK(table) "(SELECT seq FROM tally_mark WHERE name = '" table "')"

/* Adds rows of (kind, name, part, model, number, n). */
#define TALLY_ADD(rows)                                                                            \
	"INSERT INTO tally (kind, name, part, model, number, n) " rows                             \
	" ON CONFLICT (kind, name, part, model, number) DO UPDATE SET n = tally.n + excluded.n"

/* What rows count as. The source has the columns that matter; `by` is how many each stands for. */
#define TASK_KINDS(source, seq, by)                                                                \
	"SELECT " seq " AS seq, 'project' AS kind, project AS name, '' AS part, state AS number,"  \
	" " by " AS n FROM " source                                                                \
	" UNION ALL SELECT " seq ", 'group', project, group_name, state, " by " FROM " source      \
	" WHERE group_name IS NOT NULL"
#define MEMORY_KINDS(source, seq, by)                                                              \
	"SELECT " seq " AS seq, CASE WHEN owner IS NOT NULL THEN 'personal'"                       \
	" WHEN chat IS NOT NULL THEN 'in_chat' WHEN project IS NOT NULL THEN 'in_project'"         \
	" ELSE 'common' END AS kind, '' AS name, '' AS part, 0 AS number, " by " AS n"             \
	" FROM " source MEMORY_NAMED_KINDS(source, seq, by)                                        \
	" UNION ALL SELECT " seq ", 'project_memory', project, '', 0, " by " FROM " source         \
	" WHERE owner IS NULL AND chat IS NULL AND project IS NOT NULL"
/* Before there were projects: for the step of the schema that made the tallies. */
#define MEMORY_FIRST_KINDS(source, seq, by)                                                        \
	"SELECT " seq " AS seq, CASE WHEN owner IS NOT NULL THEN 'personal'"                       \
	" WHEN chat IS NOT NULL THEN 'in_chat' ELSE 'common' END AS kind, '' AS name, '' AS part," \
	" 0 AS number, " by " AS n FROM " source MEMORY_NAMED_KINDS(source, seq, by)
#define MEMORY_NAMED_KINDS(source, seq, by)                                                        \
	" UNION ALL SELECT " seq ", 'owner', owner, '', 0, " by " FROM " source                    \
	" WHERE owner IS NOT NULL"                                                                 \
	" UNION ALL SELECT " seq ", 'open', owner, '', 0, " by " FROM " source                     \
	" WHERE owner IS NOT NULL AND chat_type <> 'private'"                                      \
	" UNION ALL SELECT " seq ", CASE WHEN chat_type <> 'private' THEN 'open_in'"               \
	" ELSE 'closed_in' END, owner, chat, 0, " by " FROM " source                               \
	" WHERE owner IS NOT NULL AND chat IS NOT NULL"                                            \
	" UNION ALL SELECT " seq ", 'chat', chat, '', 0, " by " FROM " source                      \
	" WHERE owner IS NULL AND chat IS NOT NULL"
#define CONVERSATION_KINDS(source, seq, by)                                                        \
	"SELECT " seq " AS seq, CASE WHEN ended_ms IS NULL THEN 'talk' ELSE 'ended' END AS kind,"  \
	" '' AS name, '' AS part, 0 AS number, " by " AS n FROM " source                           \
	" UNION ALL SELECT " seq ", 'said', '', '', 0, n_messages FROM " source                    \
	" WHERE ended_ms IS NULL AND n_messages > 0"                                               \
	" UNION ALL SELECT " seq ", 'child', parent, '', 0, " by " FROM " source                   \
	" WHERE ended_ms IS NULL AND parent IS NOT NULL"                                           \
	" UNION ALL SELECT " seq ", 'ended_as', id, '', 0, " by " FROM " source                    \
	" WHERE ended_ms IS NOT NULL"
#define MESSAGE_CALL_KINDS(source, seq, by)                                                        \
	"SELECT " seq " AS seq, 'call' AS kind, '' AS name, '' AS part, 0 AS number,"              \
	" " by " AS n FROM " source
#define SESSION_KINDS(source, seq, by)                                                             \
	"SELECT " seq " AS seq, 'folder' AS kind, working_dir AS name, '' AS part, 0 AS number,"   \
	" " by " AS n FROM " source

/* ---- for the schema ---- */

#define TALLY_TABLES                                                                               \
	"CREATE TABLE tally_mark (name TEXT PRIMARY KEY NOT NULL, seq INTEGER NOT NULL)"           \
	" STRICT, WITHOUT ROWID;"                                                                  \
	"CREATE TABLE tally ("                                                                     \
	"	kind TEXT NOT NULL,"                                                                     \
	"	name TEXT NOT NULL,"                                                                     \
	"	part TEXT NOT NULL,"                                                                     \
	"	model TEXT NOT NULL,"                                                                    \
	"	number INTEGER NOT NULL,"                                                                \
	"	n INTEGER NOT NULL,"                                                                     \
	"	PRIMARY KEY (kind, name, part, model, number)"                                           \
	") STRICT, WITHOUT ROWID;"                                                                 \
	"CREATE TRIGGER tally_ended AFTER UPDATE OF n ON tally WHEN NEW.n = 0 BEGIN"               \
	" DELETE FROM tally WHERE kind = NEW.kind AND name = NEW.name AND part = NEW.part"         \
	" AND model = NEW.model AND number = NEW.number; END;"

/* Counts one row up or down, as the view says. */
#define TALLY_ROW(view, seq, model, number, sign)                                                  \
	TALLY_ADD("SELECT kind, name, part, " model ", " number ", " sign "n FROM " view           \
		  " WHERE seq = " seq) ";"

/* Rows that go: before they do, while they can be read. */
#define TALLY_OF(table, kinds)                                                                     \
	"INSERT INTO tally_mark (name, seq) VALUES ('" table "', 0);"                              \
	"CREATE VIEW " table "_kind AS " kinds(table, "seq", "1") ";"                              \
	"CREATE TRIGGER " table "_goes BEFORE DELETE ON " table                                    \
	" WHEN OLD.seq <= " TALLY_MARK(table) " BEGIN "                                            \
	TALLY_ROW(table "_kind", "OLD.seq", "''", "number", "-") "END;"

/* Rows that come to count as something else. `was` are the columns that matter, as they were:
 * a trigger before the update would make every update dearer. */
#define TALLY_CHANGES(table, kinds, was, columns, when)                                            \
	"CREATE TRIGGER " table "_changes AFTER UPDATE OF " columns " ON " table                   \
	" WHEN " when " AND OLD.seq <= " TALLY_MARK(table) " BEGIN "                               \
	TALLY_ADD("SELECT kind, name, part, '', number, -n FROM ("                                 \
		  kinds("(SELECT " was ")", "0", "1") ") WHERE true") ";"                          \
	TALLY_ROW(table "_kind", "OLD.seq", "''", "number", "") "END;"

#define TASK_WAS "OLD.project AS project, OLD.group_name AS group_name, OLD.state AS state"
#define CONVERSATION_WAS                                                                           \
	"OLD.id AS id, OLD.parent AS parent, OLD.ended_ms AS ended_ms,"                            \
	" OLD.n_messages AS n_messages"

/* An owner comes with the first memory and goes with the last. */
#define TALLY_OWNERS                                                                               \
	"CREATE TRIGGER tally_owner_came AFTER INSERT ON tally"                                    \
	" WHEN NEW.kind = 'owner' AND NEW.number = 0 BEGIN "                                       \
	TALLY_ADD("VALUES ('owners', '', '', '', 0, 1)") "; END;"                                  \
	"CREATE TRIGGER tally_owner_went AFTER DELETE ON tally"                                    \
	" WHEN OLD.kind = 'owner' AND OLD.number = 0 BEGIN"                                        \
	" UPDATE tally SET n = n - 1 WHERE kind = 'owners'; END;"

#define TALLY_VECTOR(v, sign) TALLY_ROW("memory_kind", v ".seq", v ".model", v ".dim", sign)

/* A memory's vector goes before it: it is counted as the memory is. */
#define TALLY_VECTORS                                                                              \
	TALLY_ADD("SELECT kind, name, part, model, dim, sum(n)"                                    \
		  " FROM memory_kind JOIN memory_vector USING (seq)"                               \
		  " GROUP BY kind, name, part, model, dim") ";"                                    \
	"CREATE TRIGGER memory_vector_first BEFORE DELETE ON memory"                               \
	" BEGIN DELETE FROM memory_vector WHERE seq = OLD.seq; END;"                               \
	"CREATE TRIGGER memory_vector_comes AFTER INSERT ON memory_vector"                         \
	" BEGIN " TALLY_VECTOR("NEW", "") "END;"                                                   \
	"CREATE TRIGGER memory_vector_changes AFTER UPDATE OF model, dim ON memory_vector"         \
	" WHEN OLD.model <> NEW.model OR OLD.dim <> NEW.dim"                                       \
	" BEGIN " TALLY_VECTOR("OLD", "-") TALLY_VECTOR("NEW", "") "END;"                          \
	"CREATE TRIGGER memory_vector_goes AFTER DELETE ON memory_vector"                          \
	" BEGIN " TALLY_VECTOR("OLD", "-") "END;"

/* What is said in a conversation is counted as it is said. */
#define TALLY_SAID                                                                                 \
	"CREATE TRIGGER conversation_said AFTER UPDATE OF n_messages ON conversation"              \
	" WHEN NEW.ended_ms IS NULL AND NEW.seq <= " TALLY_MARK("conversation") " BEGIN "          \
	TALLY_ADD("VALUES ('said', '', '', '', 0, NEW.n_messages - OLD.n_messages)") "; END;"

#define TALLIES                                                                                    \
	TALLY_TABLES TALLY_OWNERS                                                                  \
	TALLY_OF("task", TASK_KINDS)                                                               \
	TALLY_CHANGES("task", TASK_KINDS, TASK_WAS, "state", "OLD.state <> NEW.state")             \
	TALLY_OF("memory", MEMORY_FIRST_KINDS) TALLY_VECTORS                                             \
	TALLY_OF("conversation", CONVERSATION_KINDS)                                               \
	TALLY_CHANGES("conversation", CONVERSATION_KINDS, CONVERSATION_WAS, "ended_ms", "true")    \
	TALLY_SAID                                                                                 \
	TALLY_OF("message_call", MESSAGE_CALL_KINDS)                                               \
	TALLY_OF("session", SESSION_KINDS)
