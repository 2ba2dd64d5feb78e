#include "store/db/schema.h"

#include "base/cleanup.h"
#include "store/db/db_file.h"
#include "store/db/driver.h"
#include "store/db/schema_tally.h"

enum { SCRIPT_MAX = 1 << 20 };

/*
 * A memory's place in time is (created_ms, seq). Lists walk one of the three indexes by time:
 * its owner's, its chat's (where nobody owns it; chat NULL: the common ones), or everybody's.
 * SQLite appends seq to each index by itself.
 *
 * An importer may set created_ms. stored_ms is when the memory reached us; repeated adds are
 * recognised by it.
 *
 * Columns that may be long come last: reading a column means reading everything before it.
 */
static const char first_tables[] =
	"CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT;"
	"INSERT INTO meta (key, value) VALUES ('clean', '1');"

	"CREATE TABLE memory ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	id TEXT NOT NULL UNIQUE,"
	"	content_hash INTEGER NOT NULL,"
	"	source TEXT NOT NULL,"
	"	category TEXT NOT NULL,"
	"	importance REAL NOT NULL,"
	"	owner TEXT,"
	"	chat TEXT,"
	"	shared INTEGER NOT NULL,"
	"	created_ms INTEGER NOT NULL,"
	"	updated_ms INTEGER NOT NULL,"
	"	stored_ms INTEGER NOT NULL,"
	"	expires_ms INTEGER,"
	"	subjects TEXT NOT NULL,"
	"	metadata TEXT NOT NULL,"
	"	content TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX memory_by_owner ON memory (owner, created_ms) WHERE owner IS NOT NULL;"
	"CREATE INDEX memory_by_chat ON memory (chat, created_ms) WHERE owner IS NULL;"
	"CREATE INDEX memory_by_time ON memory (created_ms);"
	"CREATE INDEX memory_by_content ON memory (content_hash, stored_ms);"
	"CREATE INDEX memory_by_expiry ON memory (expires_ms) WHERE expires_ms IS NOT NULL;";

/*
 * A memory has at most one vector, made by the model that was asked last. dim is how many
 * numbers it has. They are kept as one byte each, times scale, which searches load, and as
 * 32-bit floats, least significant byte first, of which few are read at a time. Both have
 * tables of their own: asking which memories have a vector touches all memories, and should
 * not mean reading all vectors.
 */
static const char vector_tables[] =
	"CREATE TABLE memory_vector ("
	"	seq INTEGER PRIMARY KEY REFERENCES memory (seq) ON DELETE CASCADE,"
	"	model TEXT NOT NULL,"
	"	dim INTEGER NOT NULL,"
	"	scale REAL NOT NULL"
	") STRICT;"
	"CREATE TABLE memory_vector_bytes ("
	"	seq INTEGER PRIMARY KEY REFERENCES memory_vector (seq) ON DELETE CASCADE,"
	"	bytes BLOB NOT NULL"
	") STRICT;"
	"CREATE TABLE memory_vector_floats ("
	"	seq INTEGER PRIMARY KEY REFERENCES memory_vector (seq) ON DELETE CASCADE,"
	"	floats BLOB NOT NULL"
	") STRICT;";

/*
 * A conversation that was ended stays, and its id may be used again. What is asked all the
 * time is kept in its row: how many messages it has, and whether one is an answer.
 *
 * Messages are ordered by turn, and within a turn by seq. All walks (a page, a few turns, the
 * newest ones) use one index, to which SQLite appends seq by itself. That is why a message
 * names its conversation, although its turn does so too.
 *
 * The states and roles are the numbers of store/chat.h; 0 is a running turn.
 */
static const char conversation_tables[] =
	"CREATE TABLE conversation ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	id TEXT NOT NULL,"
	"	agent TEXT,"
	"	created_ms INTEGER NOT NULL,"
	"	updated_ms INTEGER NOT NULL,"
	"	ended_ms INTEGER,"
	"	n_messages INTEGER NOT NULL,"
	"	answered INTEGER NOT NULL,"
	"	summary_tokens INTEGER NOT NULL,"
	"	summary_turn INTEGER NOT NULL,"
	"	system TEXT,"
	"	summary TEXT"
	") STRICT;"
	"CREATE UNIQUE INDEX conversation_by_id ON conversation (id) WHERE ended_ms IS NULL;"
	"CREATE INDEX conversation_by_time ON conversation (updated_ms) WHERE ended_ms IS NULL;"

	"CREATE TABLE turn ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	conversation INTEGER NOT NULL REFERENCES conversation (seq),"
	"	request_id TEXT NOT NULL,"
	"	agent TEXT NOT NULL,"
	"	state INTEGER NOT NULL,"
	"	started_ms INTEGER NOT NULL,"
	"	ended_ms INTEGER,"
	"	input_tokens INTEGER,"
	"	output_tokens INTEGER,"
	"	cache_read_tokens INTEGER,"
	"	cache_written_tokens INTEGER,"
	"	error TEXT"
	") STRICT;"
	"CREATE INDEX turn_running ON turn (conversation) WHERE state = 0;"

	"CREATE TABLE message ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	conversation INTEGER NOT NULL REFERENCES conversation (seq),"
	"	turn INTEGER NOT NULL REFERENCES turn (seq),"
	"	role INTEGER NOT NULL,"
	"	tokens INTEGER NOT NULL,"
	"	created_ms INTEGER NOT NULL,"
	"	failed INTEGER NOT NULL,"
	"	n_calls INTEGER NOT NULL,"
	"	call_id TEXT,"
	"	text TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX message_by_turn ON message (conversation, turn);"

	"CREATE TABLE message_call ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	message INTEGER NOT NULL REFERENCES message (seq),"
	"	id TEXT NOT NULL,"
	"	name TEXT NOT NULL,"
	"	arguments TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX message_call_by_message ON message_call (message);";

/*
 * Events are ordered by seq. The index by time, which a later step drops, is for queries since a
 * certain time, and for finding events that are too old. meta keeps the last number used, since
 * the rows may be deleted.
 *
 * A task's id is unique within its project. The project's next number is kept separately,
 * since tasks are deleted and ids are never reused. 0 and -1 stand for "none". States are
 * numbers, as in store/task.h: below 2 a task is open. Each kind of list has its own index, to
 * which SQLite appends seq by itself: everybody's, a project's, a group's.
 *
 * Claimed occurrences of a rule are ordered by when they were claimed: the clock may be wrong
 * for a while, and the latest claim must not be the first to be forgotten.
 */
static const char task_tables[] =
	"CREATE TABLE event ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	type TEXT NOT NULL,"
	"	time_ms INTEGER NOT NULL,"
	"	project TEXT,"
	"	session TEXT,"
	"	run TEXT,"
	"	data BLOB"
	") STRICT;"
	"CREATE INDEX event_by_time ON event (time_ms);"
	"INSERT INTO meta (key, value) VALUES ('event_last', '0');"

	"CREATE TABLE task_project (name TEXT PRIMARY KEY NOT NULL, next INTEGER NOT NULL) STRICT;"
	"CREATE TABLE task ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	project TEXT NOT NULL,"
	"	id TEXT NOT NULL,"
	"	state INTEGER NOT NULL,"
	"	priority REAL NOT NULL,"
	"	created_ms INTEGER NOT NULL,"
	"	started_ms INTEGER NOT NULL,"
	"	completed_ms INTEGER NOT NULL,"
	"	pid INTEGER NOT NULL,"
	"	pid_started INTEGER NOT NULL,"
	"	exit_status INTEGER NOT NULL,"
	"	signal INTEGER NOT NULL,"
	"	output_bytes INTEGER NOT NULL,"
	"	timeout_ms INTEGER NOT NULL,"
	"	attempts INTEGER NOT NULL,"
	"	max_attempts INTEGER NOT NULL,"
	"	retry_ms INTEGER NOT NULL,"
	"	not_before_ms INTEGER NOT NULL,"
	"	n_after INTEGER NOT NULL,"
	"	group_name TEXT,"
	"	agent TEXT,"
	"	runner TEXT,"
	"	mark TEXT,"
	"	cwd TEXT,"
	"	error TEXT,"
	"	env BLOB,"
	"	metadata BLOB,"
	"	result BLOB,"
	"	prompt TEXT NOT NULL"
	") STRICT;"
	"CREATE UNIQUE INDEX task_by_id ON task (id, project);"
	"CREATE INDEX task_by_project ON task (project);"
	"CREATE INDEX task_by_state ON task (project, state);"
	"CREATE INDEX task_open ON task (state) WHERE state < 2;"
	"CREATE INDEX task_by_group ON task (group_name) WHERE group_name IS NOT NULL;"
	"CREATE INDEX task_by_end ON task (completed_ms) WHERE state >= 2;"
	"CREATE TABLE task_after ("
	"	task INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,"
	"	place INTEGER NOT NULL,"
	"	id TEXT NOT NULL,"
	"	PRIMARY KEY (task, place)"
	") STRICT, WITHOUT ROWID;"

	"CREATE TABLE rule ("
	"	name TEXT PRIMARY KEY NOT NULL,"
	"	fired_ms INTEGER NOT NULL,"
	"	enabled INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE rule_claim ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	rule TEXT NOT NULL,"
	"	occurrence_ms INTEGER NOT NULL,"
	"	claimed_ms INTEGER NOT NULL,"
	"	UNIQUE (rule, occurrence_ms)"
	") STRICT;"
	"CREATE INDEX rule_claim_by_rule ON rule_claim (rule);";

/*
 * A session's row is rewritten whenever anything happens in it. What it was told may be long
 * and does not change, so it has a table of its own. 0, -1 and NULL stand for "none". States
 * are numbers, as in store/session.h: below 4 a session has not ended. Each kind of list has
 * its own index, by when the session was last active.
 *
 * Events are ordered by id. The newest event of an agent's session knows how many there are.
 * The last two indexes are for tool calls: the one that a result belongs to, and the one that
 * an approval may belong to.
 *
 * An approval outlives its session and its event, so neither reference is a foreign key. Few
 * are pending (0). Whenever a tool is called, the approvals not tied to an event are searched.
 *
 * Bytes that come from an agent, and may be anything, are BLOBs.
 */
static const char session_tables[] =
	"CREATE TABLE session ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	id TEXT NOT NULL UNIQUE,"
	"	run TEXT NOT NULL UNIQUE,"
	"	status INTEGER NOT NULL,"
	"	archived INTEGER NOT NULL,"
	"	created_ms INTEGER NOT NULL,"
	"	active_ms INTEGER NOT NULL,"
	"	ended_ms INTEGER NOT NULL,"
	"	cost_usd REAL NOT NULL,"
	"	input_tokens INTEGER NOT NULL,"
	"	output_tokens INTEGER NOT NULL,"
	"	duration_ms INTEGER NOT NULL,"
	"	turns INTEGER NOT NULL,"
	"	parent TEXT,"
	"	agent_session TEXT,"
	"	model TEXT,"
	"	runner TEXT NOT NULL,"
	"	mark TEXT,"
	"	working_dir TEXT NOT NULL,"
	"	title TEXT,"
	"	summary TEXT NOT NULL,"
	"	error BLOB,"
	"	result BLOB"
	") STRICT;"
	"CREATE INDEX session_by_active ON session (active_ms);"
	"CREATE INDEX session_by_archived ON session (archived, active_ms);"
	"CREATE INDEX session_by_status ON session (status, active_ms);"
	"CREATE INDEX session_by_parent ON session (parent, active_ms) WHERE parent IS NOT NULL;"
	"CREATE INDEX session_by_agent ON session (agent_session) WHERE agent_session IS NOT NULL;"
	"CREATE INDEX session_by_dir ON session (working_dir, active_ms);"
	"CREATE INDEX session_by_end ON session (ended_ms) WHERE ended_ms > 0;"
	"CREATE TABLE session_text ("
	"	seq INTEGER PRIMARY KEY REFERENCES session (seq) ON DELETE CASCADE,"
	"	config BLOB,"
	"	query BLOB NOT NULL"
	") STRICT;"

	"CREATE TABLE session_event ("
	"	id INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	session INTEGER NOT NULL REFERENCES session (seq),"
	"	sequence INTEGER NOT NULL,"
	"	type INTEGER NOT NULL,"
	"	created_ms INTEGER NOT NULL,"
	"	completed INTEGER NOT NULL,"
	"	approval INTEGER NOT NULL,"
	"	agent_session TEXT,"
	"	role TEXT,"
	"	tool_id TEXT,"
	"	tool_name TEXT,"
	"	approval_id TEXT,"
	"	tool_input BLOB,"
	"	content BLOB"
	") STRICT;"
	"CREATE INDEX session_event_by_session ON session_event (session);"
	"CREATE INDEX session_event_by_agent ON session_event (agent_session)"
	"	WHERE agent_session IS NOT NULL;"
	"CREATE INDEX session_event_by_call ON session_event (session, tool_id) WHERE type = 1;"
	"CREATE INDEX session_event_open ON session_event (session, tool_name, created_ms)"
	"	WHERE type = 1 AND completed = 0 AND approval = 0;"

	"CREATE TABLE approval ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	id TEXT NOT NULL UNIQUE,"
	"	kind INTEGER NOT NULL,"
	"	status INTEGER NOT NULL,"
	"	event_id INTEGER NOT NULL,"
	"	created_ms INTEGER NOT NULL,"
	"	deadline_ms INTEGER NOT NULL,"
	"	decided_ms INTEGER NOT NULL,"
	"	session TEXT,"
	"	run TEXT,"
	"	agent TEXT,"
	"	origin TEXT,"
	"	tool_use_id TEXT,"
	"	tool TEXT NOT NULL,"
	"	decided_by TEXT,"
	"	comment BLOB,"
	"	input BLOB"
	") STRICT;"
	"CREATE INDEX approval_by_status ON approval (status);"
	"CREATE INDEX approval_by_session ON approval (session) WHERE session IS NOT NULL;"
	"CREATE INDEX approval_by_run ON approval (run) WHERE run IS NOT NULL;"
	"CREATE INDEX approval_untied ON approval (tool, created_ms)"
	"	WHERE event_id = 0;"
	"CREATE INDEX approval_by_end ON approval (decided_ms) WHERE status > 0;"

	"CREATE TABLE approval_grant ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	id TEXT NOT NULL UNIQUE,"
	"	denies INTEGER NOT NULL,"
	"	created_ms INTEGER NOT NULL,"
	"	expires_ms INTEGER NOT NULL,"
	"	uses INTEGER NOT NULL,"
	"	session TEXT,"
	"	agent TEXT,"
	"	tool TEXT,"
	"	pattern TEXT,"
	"	comment BLOB"
	") STRICT;"
	"CREATE INDEX approval_grant_by_expiry ON approval_grant (expires_ms)"
	"	WHERE expires_ms > 0;";

/* Schedules that clients make. There are few, and they are read as a whole. */
static const char job_tables[] = "CREATE TABLE job ("
				 "	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
				 "	id TEXT NOT NULL UNIQUE,"
				 "	created_ms INTEGER NOT NULL,"
				 "	updated_ms INTEGER NOT NULL,"
				 "	data BLOB NOT NULL"
				 ") STRICT;";

/*
 * What a conversation was made with: its parent, where its programs run, what they may write
 * (one path per line; NULL: unspecified), and which tools it lacks. wants_end is what its
 * clients asked for.
 *
 * The indexes: ended conversations by their end; children; and the rows that point at a
 * conversation, which SQLite looks up whenever one is deleted.
 */
static const char conversation_bounds[] =
	"ALTER TABLE conversation ADD COLUMN parent TEXT;"
	"ALTER TABLE conversation ADD COLUMN cwd TEXT;"
	"ALTER TABLE conversation ADD COLUMN preset INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE conversation ADD COLUMN write_paths TEXT;"
	"ALTER TABLE conversation ADD COLUMN disabled_tools TEXT;"
	"ALTER TABLE conversation ADD COLUMN wants_end INTEGER NOT NULL DEFAULT 0;"
	"CREATE INDEX conversation_by_end ON conversation (ended_ms) WHERE ended_ms IS NOT NULL;"
	"CREATE INDEX conversation_by_parent ON conversation (parent) WHERE parent IS NOT NULL;"
	"CREATE INDEX turn_by_conversation ON turn (conversation);"
	"CREATE INDEX message_of_turn ON message (turn);";

/* In what kind of chat a memory was learnt, and under which tool a subagent spoke. */
static const char origin_columns[] = "ALTER TABLE memory ADD COLUMN chat_type TEXT;"
				     "ALTER TABLE session_event ADD COLUMN parent_tool TEXT;";

/* Tasks that somebody else has queued wait until they are released. A project's files act only
 * while they are as they were when they were trusted. */
static const char trust_tables[] = "ALTER TABLE task ADD COLUMN held INTEGER NOT NULL DEFAULT 0;"
				   "CREATE TABLE project_trust ("
				   "	folder TEXT PRIMARY KEY NOT NULL,"
				   "	digest TEXT NOT NULL,"
				   "	trusted_ms INTEGER NOT NULL"
				   ") STRICT;";

/* Which process asked for an approval, and which one decided it (uid -1: unknown). */
static const char decider_columns[] =
	"ALTER TABLE approval ADD COLUMN asker_pid INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE approval ADD COLUMN asker_started INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE approval ADD COLUMN decider_uid INTEGER NOT NULL DEFAULT -1;"
	"ALTER TABLE approval ADD COLUMN decider_pid INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE approval ADD COLUMN decider_program BLOB;"
	"ALTER TABLE approval ADD COLUMN decider_terminal TEXT;"
	"CREATE INDEX approval_by_asker ON approval (asker_pid, asker_started)"
	"	WHERE asker_pid > 0;";

/* How often a rule has fired, beside when it last did. Existing ones have fired at least once. */
static const char rule_counts[] = "ALTER TABLE rule ADD COLUMN n_fired INTEGER NOT NULL DEFAULT 0;"
				  "UPDATE rule SET n_fired = 1 WHERE fired_ms > 0;";

/*
 * What keeps a question cheap however much is kept. Events are found by their type, too, in
 * order of seq, which SQLite appends to the index by itself; and by the project, session or run
 * that they are about, each together with the type. An event pays only for what it has. What was
 * said in a session is found without the lines that were not understood (4), of which there may
 * be any number.
 *
 * Times of events grow with seq, except where the clock was set back: event_clock has the events
 * at which it was. So a time is found by bisection, and needs no index.
 *
 * Tasks are listed by their state, and by group and state, too. A group is usually one project's,
 * so a list that names both walks the group. Ended conversations are found by their id, and the
 * highest number by which a conversation was named is the last of its length. What is counted is
 * not walked at all: it has tallies.
 */
static const char growth_indexes[] =
	"CREATE INDEX event_by_type ON event (type);"
	"CREATE INDEX event_by_project ON event (project, type) WHERE project IS NOT NULL;"
	"CREATE INDEX event_by_session ON event (session, type) WHERE session IS NOT NULL;"
	"CREATE INDEX event_by_run ON event (run, type) WHERE run IS NOT NULL;"
	"CREATE TABLE event_clock (seq INTEGER PRIMARY KEY) STRICT;"
	"INSERT INTO event_clock (seq) SELECT seq FROM (SELECT seq, time_ms,"
	"	lag(time_ms) OVER (ORDER BY seq) AS earlier_ms FROM event) AS e"
	"	WHERE time_ms < earlier_ms;"
	"DROP INDEX event_by_time;"
	"CREATE INDEX session_event_said ON session_event (session) WHERE type <> 4;"
	"CREATE INDEX session_event_said_by_agent ON session_event (agent_session)"
	"	WHERE agent_session IS NOT NULL AND type <> 4;"

	"DROP INDEX task_open;"
	"CREATE INDEX task_in_state ON task (state);"
	"CREATE INDEX task_by_group_state ON task (group_name, state)"
	"	WHERE group_name IS NOT NULL;"
	"CREATE INDEX conversation_ended_as ON conversation (id, ended_ms)"
	"	WHERE ended_ms IS NOT NULL;"
	"CREATE INDEX conversation_by_length ON conversation (length(id), id);"

	TALLIES;

/*
 * A memory may belong to a project. Those that nobody owns and no chat has are walked by their
 * project; NULL: the common ones.
 *
 * What a memory said before it was changed stays as a version. The memory itself says since when
 * (0: since it was created) and, if another one replaced it, until when its content is valid.
 * `whose` is "user:NAME", "chat:NAME", "project:NAME" or "common", so that the versions that
 * somebody may see are found without looking at those of others.
 */
static const char memory_history[] =
	"ALTER TABLE memory ADD COLUMN project TEXT;"
	"ALTER TABLE memory ADD COLUMN valid_from_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE memory ADD COLUMN valid_until_ms INTEGER;"
	"ALTER TABLE memory ADD COLUMN replaces TEXT;"
	"ALTER TABLE memory ADD COLUMN replaced_by TEXT;"
	"DROP INDEX memory_by_chat;"
	"CREATE INDEX memory_by_chat ON memory (chat, created_ms)"
	"	WHERE owner IS NULL AND chat IS NOT NULL;"
	"CREATE INDEX memory_by_project ON memory (project, created_ms)"
	"	WHERE owner IS NULL AND chat IS NULL;"
	"CREATE INDEX memory_replaced ON memory (replaced_by) WHERE replaced_by IS NOT NULL;"
	"DROP VIEW memory_kind;"
	"CREATE VIEW memory_kind AS " MEMORY_KINDS(
		"memory", "seq",
		"1") ";"

		     "CREATE TABLE memory_version ("
		     "	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
		     "	memory INTEGER NOT NULL REFERENCES memory (seq) ON DELETE CASCADE,"
		     "	whose TEXT NOT NULL,"
		     "	valid_from_ms INTEGER NOT NULL,"
		     "	valid_until_ms INTEGER NOT NULL,"
		     "	category TEXT NOT NULL,"
		     "	importance REAL NOT NULL,"
		     "	metadata TEXT NOT NULL,"
		     "	content TEXT NOT NULL"
		     ") STRICT;"
		     "CREATE INDEX memory_version_of ON memory_version (memory, valid_until_ms);"
		     "CREATE INDEX memory_version_by_scope ON memory_version (whose, "
		     "valid_until_ms);"
		     "CREATE INDEX memory_version_by_end ON memory_version (valid_until_ms);";

/*
 * Search indexes are kept in files beside the store: which file is whose, and up to where it follows
 * the store (store/index/kept.h). What was changed or deleted since is noted; the oldest notes go,
 * and with them the use of files that are older. Adding a memory notes nothing.
 */
static const char index_tables[] =
	"CREATE TABLE memory_index ("
	"	kind TEXT NOT NULL,"
	"	name TEXT NOT NULL,"
	"	token TEXT NOT NULL,"
	"	seq INTEGER NOT NULL,"
	"	change INTEGER NOT NULL,"
	"	memories INTEGER NOT NULL,"
	"	bytes INTEGER NOT NULL,"
	"	written_ms INTEGER NOT NULL,"
	"	PRIMARY KEY (kind, name)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE memory_change (number INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;"
	"CREATE TRIGGER memory_changed AFTER UPDATE ON memory"
	" BEGIN INSERT INTO memory_change (seq) VALUES (OLD.seq); END;"
	"CREATE TRIGGER memory_gone AFTER DELETE ON memory"
	" BEGIN INSERT INTO memory_change (seq) VALUES (OLD.seq); END;"
	"CREATE TRIGGER memory_change_old AFTER INSERT ON memory_change"
	" BEGIN DELETE FROM memory_change WHERE number <= NEW.number - 65536; END;";

/*
 * Facts that an agent drew from what was said: where a memory comes from, and whether somebody has
 * to look at it (1; 2: before it is found). A turn says who asked, and so whose its facts are. How
 * far what was said has been read is in store/history/extract.h.
 */
static const char extract_tables[] =
	"ALTER TABLE memory ADD COLUMN origin TEXT;"
	"ALTER TABLE memory ADD COLUMN review INTEGER NOT NULL DEFAULT 0;"
	"CREATE INDEX memory_to_review ON memory (review) WHERE review > 0;"
	"ALTER TABLE turn ADD COLUMN asker_user TEXT;"
	"ALTER TABLE turn ADD COLUMN asker_chat TEXT;"
	"ALTER TABLE turn ADD COLUMN asker_chat_type TEXT;"
	"CREATE TABLE extract_cursor ("
	"	kind TEXT PRIMARY KEY NOT NULL,"
	"	since_ms INTEGER NOT NULL,"
	"	ms INTEGER NOT NULL,"
	"	seq INTEGER NOT NULL"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE extract_mark ("
	"	kind TEXT NOT NULL,"
	"	source INTEGER NOT NULL,"
	"	place INTEGER NOT NULL,"
	"	PRIMARY KEY (kind, source)"
	") STRICT, WITHOUT ROWID;";

/*
 * A task may have a short name of its user's, and be kept back by its user. While all tasks are
 * paused, or those of a group, none of them starts; '' stands for all.
 */
static const char task_stash[] =
	"ALTER TABLE task ADD COLUMN label TEXT;"
	"ALTER TABLE task ADD COLUMN stashed INTEGER NOT NULL DEFAULT 0;"
	"CREATE INDEX task_by_label ON task (label) WHERE label IS NOT NULL;"
	"CREATE TABLE task_pause ("
	"	group_name TEXT PRIMARY KEY NOT NULL,"
	"	since_ms INTEGER NOT NULL"
	") STRICT, WITHOUT ROWID;";

/* The browsers that were let in; unused since their sessions end when koined stops. */
static const char page_session_tables[] = "CREATE TABLE visitor ("
					  "	id TEXT NOT NULL PRIMARY KEY,"
					  "	digest TEXT NOT NULL UNIQUE,"
					  "	uid INTEGER NOT NULL,"
					  "	program TEXT NOT NULL,"
					  "	behind INTEGER NOT NULL,"
					  "	entered_ms INTEGER NOT NULL"
					  ");";

/* A task may be a command: its words, packed. */
static const char task_command[] = "ALTER TABLE task ADD COLUMN command BLOB;";

/*
 * Events are numbered from one row, whose lock orders those who write to the same database. It also has
 * the time of the last event, and of the last one before those that were numbered with it.
 */
static const char event_counter[] =
	"CREATE TABLE event_counter ("
	"	id INTEGER PRIMARY KEY,"
	"	last_seq INTEGER NOT NULL,"
	"	last_ms INTEGER NOT NULL,"
	"	was_ms INTEGER NOT NULL"
	") STRICT;"
	"INSERT INTO event_counter (id, last_seq, last_ms, was_ms) SELECT 1, max("
	"	coalesce((SELECT max(seq) FROM event), 0),"
	"	coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'event_last'), 0)),"
	"	coalesce((SELECT time_ms FROM event ORDER BY seq DESC LIMIT 1), 0), 0;"
	"DELETE FROM meta WHERE key = 'event_last';";

/*
 * Hosts that share a store (model/host.h); a file has none. A task, a session and an event name the
 * host that it is of. The epoch of a running one is that of the life which runs it, and only that life
 * may write about it. `version` counts the changes of a task, so that nobody changes what somebody else
 * has changed meanwhile. A task waits for the host on_host, and for one with the label on_label;
 * `cancel` is somebody's wish to a host that runs it.
 */
static const char host_tables[] = "CREATE TABLE host ("
				  "	name TEXT PRIMARY KEY NOT NULL,"
				  "	epoch INTEGER NOT NULL,"
				  "	state INTEGER NOT NULL,"
				  "	boot TEXT NOT NULL,"
				  "	labels TEXT NOT NULL,"
				  "	version TEXT NOT NULL,"
				  "	since_ms INTEGER NOT NULL,"
				  "	seen_ms INTEGER NOT NULL,"
				  "	lease_ms INTEGER NOT NULL,"
				  "	running INTEGER NOT NULL,"
				  "	parallel INTEGER NOT NULL"
				  ") STRICT, WITHOUT ROWID;"
				  "INSERT INTO meta (key, value) VALUES ('host_epoch', '0');"
				  "ALTER TABLE event ADD COLUMN host TEXT;"
				  "ALTER TABLE task ADD COLUMN version INTEGER NOT NULL DEFAULT 0;"
				  "ALTER TABLE task ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;"
				  "ALTER TABLE task ADD COLUMN cancel INTEGER NOT NULL DEFAULT 0;"
				  "ALTER TABLE task ADD COLUMN host TEXT;"
				  "ALTER TABLE task ADD COLUMN on_host TEXT;"
				  "ALTER TABLE task ADD COLUMN on_label TEXT;"
				  "ALTER TABLE session ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;"
				  "ALTER TABLE session ADD COLUMN host TEXT;";

/*
 * What hosts need to know of each other's work. Where an approval was asked, since a pid means something
 * there only. A wish to the host that runs a session (`wish`: to interrupt it). Who has the turn of a
 * conversation (epoch, and its host's name). Which machine's user a page session's uid is of.
 */
static const char host_work[] =
	"ALTER TABLE approval ADD COLUMN host TEXT;"
	"ALTER TABLE session ADD COLUMN wish INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE conversation ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE conversation ADD COLUMN host TEXT;"
	"ALTER TABLE visitor ADD COLUMN host TEXT;";

/* The end of what a task prints, for other hosts. */
static const char task_chunks[] =
	"CREATE TABLE task_chunk ("
	"	task INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,"
	"	place INTEGER NOT NULL,"
	"	bytes BLOB NOT NULL,"
	"	PRIMARY KEY (task, place)"
	") STRICT, WITHOUT ROWID;";

/* Who writes to a server, and how many transactions each has committed; in a file nobody. */
static const char writer_table[] = "CREATE TABLE writer ("
				   "	id INTEGER PRIMARY KEY AUTOINCREMENT,"
				   "	batch INTEGER NOT NULL"
				   ") STRICT;";

/*
 * Why a task failed without a run: the dependency that did not complete. A retry of that one finds
 * its dependents by the index.
 */
static const char task_skips[] =
	"ALTER TABLE task ADD COLUMN skipped TEXT;"
	"CREATE INDEX task_after_by_id ON task_after (id);"
	"UPDATE task SET skipped = substr(error, 1, instr(error, ', which it comes after, is ') - "
	"1)"
	" WHERE state = 3 AND error LIKE 'task-%, which it comes after, is %';";

/*
 * What a pending approval ends with (`bond`), and the process that waits for it. Sessions of agents that
 * koined did not start, as their hooks report them; there are few, and `observed_by_active` finds the
 * silent ones.
 */
static const char askers[] =
	"ALTER TABLE approval ADD COLUMN bond INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE approval ADD COLUMN waiter_pid INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE approval ADD COLUMN waiter_started INTEGER NOT NULL DEFAULT 0;"
	"CREATE TABLE observed ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	id TEXT NOT NULL UNIQUE,"
	"	agent TEXT NOT NULL,"
	"	folder TEXT NOT NULL,"
	"	project TEXT,"
	"	query TEXT NOT NULL,"
	"	host TEXT,"
	"	pid INTEGER NOT NULL,"
	"	started INTEGER NOT NULL,"
	"	created_ms INTEGER NOT NULL,"
	"	active_ms INTEGER NOT NULL,"
	"	ended_ms INTEGER NOT NULL,"
	"	reason TEXT"
	") STRICT;"
	"CREATE INDEX observed_by_active ON observed (active_ms);"
	"CREATE INDEX observed_open ON observed (active_ms) WHERE ended_ms = 0;";

/* How many attempts were ended by our own stops: they do not count. */
static const char task_stops[] = "ALTER TABLE task ADD COLUMN stops INTEGER NOT NULL DEFAULT 0;";

/*
 * Deleted memories, until they are restored or their time is over. They have a table of their own, so
 * that no query about memories can see them. `root` is the id of the memory that was deleted: those
 * that it had replaced go and return with it.
 */
static const char deleted_tables[] =
	"CREATE TABLE memory_deleted ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	id TEXT NOT NULL UNIQUE,"
	"	root TEXT NOT NULL,"
	"	deleted_ms INTEGER NOT NULL,"
	"	source TEXT NOT NULL,"
	"	category TEXT NOT NULL,"
	"	importance REAL NOT NULL,"
	"	owner TEXT,"
	"	chat TEXT,"
	"	chat_type TEXT,"
	"	project TEXT,"
	"	shared INTEGER NOT NULL,"
	"	created_ms INTEGER NOT NULL,"
	"	updated_ms INTEGER NOT NULL,"
	"	stored_ms INTEGER NOT NULL,"
	"	expires_ms INTEGER,"
	"	valid_from_ms INTEGER NOT NULL,"
	"	valid_until_ms INTEGER,"
	"	replaces TEXT,"
	"	replaced_by TEXT,"
	"	origin TEXT,"
	"	review INTEGER NOT NULL,"
	"	subjects TEXT NOT NULL,"
	"	metadata TEXT NOT NULL,"
	"	content TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX memory_deleted_by_root ON memory_deleted (root);"
	"CREATE INDEX memory_deleted_by_time ON memory_deleted (deleted_ms);"
	"CREATE TABLE memory_deleted_version ("
	"	seq INTEGER PRIMARY KEY AUTOINCREMENT,"
	"	id TEXT NOT NULL REFERENCES memory_deleted (id) ON DELETE CASCADE,"
	"	whose TEXT NOT NULL,"
	"	valid_from_ms INTEGER NOT NULL,"
	"	valid_until_ms INTEGER NOT NULL,"
	"	category TEXT NOT NULL,"
	"	importance REAL NOT NULL,"
	"	metadata TEXT NOT NULL,"
	"	content TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX memory_deleted_version_of ON memory_deleted_version (id);";

/* Version n is the result of the first n steps. A released step never changes. */
const char *const sqlite_steps[] = {
	first_tables, vector_tables,       conversation_tables, task_tables,   session_tables,
	job_tables,   conversation_bounds, origin_columns,      trust_tables,  decider_columns,
	rule_counts,  growth_indexes,      memory_history,      index_tables,  extract_tables,
	task_stash,   page_session_tables, task_command,        event_counter, host_tables,
	host_work,    task_chunks,         writer_table,        task_skips,    askers,
	task_stops,   deleted_tables,
};

const int sqlite_n_steps = sizeof(sqlite_steps) / sizeof(sqlite_steps[0]);

int schema_check(struct connection *c, const char *path, struct error *error)
{
	int version, r;

	r = c->ops->version(c->db, &version);
	if (r != 0)
		return r;
	if (version > *c->ops->n_steps)
		return refuse(error, REFUSE_CONFLICT,
			      "%s was written by a newer koine (schema %d; this version supports "
			      "up to %d)",
			      db_file_tail(path), version, *c->ops->n_steps);
	if (version < 0)
		return refuse(error, REFUSE_CONFLICT, "%s has an unknown schema (%d)",
			      db_file_tail(path), version);
	return 0;
}

/* In one transaction: the file is of this version then. A fault is left to the end of the connection, because a
 * rollback would replace the database's words for it. */
static int run_script(struct connection *c, const char *script, int version)
{
	QUERY commit = {"COMMIT"};

	return query_do(c, &c->ops->begin)
		       ?: c->ops->exec(c->db, script)
		       ?: c->ops->set_version(c->db, version)
		       ?: query_do(c, &commit);
}

static int make_all(struct connection *c)
{
	CLEANUP(buf_donep) struct buf script;
	int r;

	buf_init(&script, SCRIPT_MAX);
	r = schema_at_once(c->ops->steps, *c->ops->n_steps, &script);
	return r != 0 ? r : run_script(c, script.data, *c->ops->n_steps);
}

int schema_migrate(struct connection *c)
{
	int version, r;

	r = c->ops->version(c->db, &version);
	if (r == 0 && version == 0 && c->ops->at_once)
		return make_all(c);
	for (; r == 0 && version < *c->ops->n_steps; version++)
		r = run_script(c, c->ops->steps[version], version + 1);
	return r;
}
