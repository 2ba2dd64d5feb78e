/* Every setting that does not belong to a dialect: a table for each section, in the order in which
 * they are shown. */
#include "daemon/settings/tables.h"

#include "engine/memory/embedding.h"

#define AT(member)      offsetof(struct settings, member)
#define LIMIT(member)   offsetof(struct settings, limits.member)
#define TEXT_AT(member) SETTING_TEXT(struct settings, member)

static const char *const places[] = {[PLACES_ORIGINAL] = "original", [PLACES_OWN] = "own", NULL};

static const struct setting daemon_rows[] = {
	{"daemon", "log_level", SET_LEVEL, AT(log_level), 0, 0, "err, warn, info or debug"},
	{"daemon", "debug_methods", SET_BOOL, AT(debug_methods), 0, 0,
	 "offer debug.echo and debug.sleep"},
	{"daemon", "log_messages", SET_BOOL, AT(log_messages), 0, 0,
	 "log every message both ways, at debug"},
	{"daemon", "log_file", SET_PATH, TEXT_AT(log_file),
	 "a file for the log in place of stderr; empty for none"},
	{"daemon", "places", SET_WORD, AT(places), 0, 0,
	 "original: dialects listen where their clients look; own: in the runtime folder",
	 .words = places},
	{"daemon", "programs", SET_BOOL, AT(programs), 0, 0,
	 "start programs: tasks, sessions, agents, tools and rules that are commands"},
};

static const struct setting koine_rows[] = {
	{"koine", "token_file", SET_PATH, TEXT_AT(token_file),
	 "a file (0600) with the token that HTTP calls must carry"},
};

static const struct setting store_rows[] = {
	{"store", "url", SET_PATH, TEXT_AT(store),
	 "sqlite:PATH or postgresql://…, where everything is kept; empty for the default place"},
};

static const struct setting host_rows[] = {
	{"host", "name", SET_TEXT, TEXT_AT(host_name),
	 "this host's name among those that share a PostgreSQL store; empty for the machine's"},
	{"host", "labels", SET_TEXT, TEXT_AT(host_labels),
	 "words that tasks may ask for (--on), with spaces between them"},
	{"host", "lease", SET_SECONDS, AT(host_lease_ms), 3, 3600,
	 "seconds without a sign of life after which others take over what it runs"},
};

static const char *const extract_reviews[] = {
	[EXTRACT_AFTER] = "after", [EXTRACT_BEFORE] = "before", NULL};

static const struct setting memory_rows[] = {
	{"memory", "enabled", SET_BOOL, AT(memory_enabled), 0, 0, "remember and find at all"},
	{"memory", "index_bytes", SET_SIZE, AT(index_bytes), 1 << 20, 1LL << 40,
	 "memory for all search indexes together"},
	{"memory", "index_file_bytes", SET_SIZE, AT(index_file_bytes), 0, 1LL << 40,
	 "room on disk for the search indexes that are kept in files; 0: none are"},
	{"memory", "keep_deleted", SET_UNSIGNED, AT(keep_deleted_days), 0, 3650,
	 "days for which deleted memories can be restored; 0 deletes at once"},
	{"memory", "words", SET_PATH, TEXT_AT(words),
	 "a table of word vectors, or off; empty for the default places"},
	{"memory", "embedding_url", SET_URL, TEXT_AT(embedding_url),
	 "an OpenAI-compatible /v1/embeddings, for searches by meaning; empty for none",
	 .check = embedding_check},
	{"memory", "embedding_model", SET_PATH, TEXT_AT(embedding_model),
	 "the model to ask it for"},
	{"memory", "embedding_key_file", SET_PATH, TEXT_AT(embedding_key_file),
	 "a file (0600) with the key it wants; empty for none"},
	{"memory", "embedding_timeout", SET_UNSIGNED, AT(embedding_timeout_ms), 1, 60000,
	 "milliseconds that a search waits for it"},
	{"memory", "extract", SET_TEXT, TEXT_AT(extract),
	 "the agent that draws facts from conversations and sessions; empty for none"},
	{"memory", "extract_idle", SET_UNSIGNED, AT(extract_idle_s), 1, 86400,
	 "seconds without a word after which it does"},
	{"memory", "extract_review", SET_WORD, AT(extract_review), 0, 0,
	 "after: its facts are found before somebody has reviewed them; before: they are not",
	 .words = extract_reviews},
};

static const struct setting chat_rows[] = {
	{"chat", "agent", SET_TEXT, TEXT_AT(chat_agent),
	 "who answers: recall, the name of an [agent NAME] section, or none"},
	{"chat", "system", SET_TEXT, TEXT_AT(chat_system), "the system prompt; empty for none"},
	{"chat", "system_file", SET_PATH, TEXT_AT(chat_system_file),
	 "a file with the system prompt, instead"},
	{"chat", "budget", SET_UNSIGNED, AT(chat_budget), 100, 100000000,
	 "tokens that a conversation may have when it is sent to its agent"},
	{"chat", "reserve", SET_UNSIGNED, AT(chat_reserve), 0, 100000000,
	 "of these, kept free for the answer"},
	{"chat", "keep_days", SET_UNSIGNED, AT(chat_keep_days), 0, 36500,
	 "days that a conversation is kept after it was ended; 0 for ever"},
};

static const struct setting events_rows[] = {
	{"events", "keep_days", SET_UNSIGNED, AT(events_keep_days), 0, 36500,
	 "days that an event is kept; 0 for ever"},
	{"events", "keep", SET_UNSIGNED, AT(events_keep), 0, 1000000000,
	 "events that are kept; 0 for any number"},
};

static const struct setting tasks_rows[] = {
	{"tasks", "parallel", SET_UNSIGNED, AT(tasks.parallel), 1, 10000,
	 "tasks that run side by side, in all"},
	{"tasks", "project_parallel", SET_UNSIGNED, AT(tasks.project_parallel), 1, 10000,
	 "tasks of one project that do"},
	{"tasks", "queue", SET_UNSIGNED, AT(tasks.queue), 1, 1000000,
	 "tasks that wait, in all; more are refused"},
	{"tasks", "timeout", SET_SECONDS, AT(tasks.timeout_ms), 1, 2592000,
	 "seconds that one attempt may take"},
	{"tasks", "output_bytes", SET_SIZE, AT(tasks.output_bytes), 4096, 1LL << 40,
	 "output of one task in its file, and as much again in the one before"},
	{"tasks", "keep_days", SET_UNSIGNED, AT(tasks.keep_days), 0, 36500,
	 "days that a task is kept after its end; 0 for ever"},
	{"tasks", "interrupt_time", SET_SECONDS, AT(tasks.interrupt_ms), 0, 3600,
	 "seconds from SIGTERM to SIGKILL when a task is ended"},
	{"tasks", "runner", SET_TEXT, TEXT_AT(tasks.runner),
	 "who works on those that name nobody: an agent, or claude; empty: claude, else "
	 "chat.agent"},
	{"tasks", "environment", SET_VARIABLES, TEXT_AT(tasks.environment),
	 "what claude gets beside our own environment: NAME, NAME* or NAME=VALUE each"},
};

static const struct setting session_rows[] = {
	{"session", "program", SET_TEXT, TEXT_AT(sessions.program),
	 "words of the program that runs a session; it prints stream-json as claude does"},
	{"session", "parallel", SET_UNSIGNED, AT(sessions.parallel), 1, 10000,
	 "sessions that run side by side; more are refused"},
	{"session", "interrupt_time", SET_SECONDS, AT(sessions.interrupt_ms), 0, 3600,
	 "seconds from SIGINT to SIGTERM when a session is interrupted"},
	{"session", "terminate_time", SET_SECONDS, AT(sessions.terminate_ms), 0, 3600,
	 "seconds from SIGTERM to SIGKILL after that"},
	{"session", "silence_time", SET_SECONDS, AT(sessions.silence_ms), 0, 2592000,
	 "seconds without an event after which an observed session has ended; 0: it does not"},
	{"session", "keep_bytes", SET_SIZE, AT(sessions.keep_bytes), 4096, 1LL << 40,
	 "of what one session says; what it says further is not kept"},
	{"session", "keep_days", SET_UNSIGNED, AT(sessions.keep_days), 0, 36500,
	 "days that a session is kept after its end; 0 for ever"},
	{"session", "runner", SET_TEXT, TEXT_AT(sessions.runner),
	 "who runs those that name nobody: an agent, or claude; empty: the program, else "
	 "chat.agent"},
	{"session", "environment", SET_VARIABLES, TEXT_AT(sessions.environment),
	 "what its program gets beside our own environment: NAME, NAME* or NAME=VALUE each"},
};

static const struct setting approval_rows[] = {
	{"approval", "timeout", SET_SECONDS, AT(approvals.timeout_ms), 0, 2592000,
	 "seconds that one waits for a human where who asks does not say; 0 for ever"},
	{"approval", "pending", SET_UNSIGNED, AT(approvals.pending), 1, 100000,
	 "that may wait for a human; more are refused"},
	{"approval", "keep_days", SET_UNSIGNED, AT(approvals.keep_days), 0, 36500,
	 "days that one is kept after it was decided; 0 for ever"},
	{"approval", "agents_decide", SET_BOOL, AT(approvals.agents_decide), 0, 0,
	 "let agents decide what they ask themselves"},
};

static const struct setting limits_rows[] = {
	{"limits", "connections", SET_UNSIGNED, LIMIT(connections), 1, 1000000,
	 "connections in all; more wait"},
	{"limits", "connections_per_uid", SET_UNSIGNED, LIMIT(connections_per_uid), 1, 1000000,
	 "connections of one other user who may connect; more are closed"},
	{"limits", "calls", SET_UNSIGNED, LIMIT(calls), 1, 1000000,
	 "calls in flight; more are refused"},
	{"limits", "waiting", SET_UNSIGNED, LIMIT(waiting), 1, 10000,
	 "calls of one connection that wait behind a running one"},
	{"limits", "queue_bytes", SET_SIZE, LIMIT(queue_bytes), 4096, 1 << 30,
	 "answers waiting for one client before it is not read any more"},
	{"limits", "total_queue_bytes", SET_SIZE, LIMIT(total_queue_bytes), 1 << 20, 1LL << 40,
	 "answers waiting for all clients; others wait, and the slowest are cut"},
	{"limits", "room_wait", SET_SECONDS, LIMIT(room_wait_ms), 0, 3600,
	 "seconds that a call waits for room for its answer"},
	{"limits", "total_input_bytes", SET_SIZE, LIMIT(total_input_bytes), 1 << 20, 1LL << 40,
	 "half-sent messages of all clients, before the largest and slowest are cut"},
	{"limits", "total_call_bytes", SET_SIZE, LIMIT(total_call_bytes), 1 << 20, 1LL << 40,
	 "held by calls in flight, before those with large messages are refused"},
	{"limits", "progress_bytes", SET_SIZE, LIMIT(progress_bytes), 1, 1 << 30,
	 "bytes of a half-sent message that must come in each read_timeout"},
	{"limits", "reply_bytes", SET_SIZE, LIMIT(reply_bytes), 4096, 1 << 30, "one answer"},
	{"limits", "json_depth", SET_UNSIGNED, LIMIT(json_depth), 16, JSON_DEPTH_MAX,
	 "nested arrays and objects"},
	{"limits", "json_values", SET_UNSIGNED, LIMIT(json_values), 1000, 100000000,
	 "values in one message"},
	{"limits", "batch", SET_UNSIGNED, LIMIT(batch), 1, 1000000, "requests in one batch"},
	{"limits", "read_timeout", SET_SECONDS, LIMIT(read_timeout_ms), 1, 3600,
	 "seconds to send one HTTP request in, or progress_bytes of another message"},
	{"limits", "linger", SET_SECONDS, LIMIT(linger_ms), 0, 60,
	 "seconds that a refused client has to read why"},
	{"limits", "stop_time", SET_SECONDS, LIMIT(stop_ms), 0, 3600,
	 "seconds that running calls have when the daemon stops"},
};

#define TABLE(rows)                                                                                \
	{                                                                                          \
		rows, sizeof(rows) / sizeof((rows)[0])                                             \
	}

const struct settings_table settings_tables[] = {
	TABLE(daemon_rows),  TABLE(koine_rows),    TABLE(store_rows),
	TABLE(host_rows),    TABLE(memory_rows),   {NULL, 0}, /* the dialects' tables come here */
	TABLE(chat_rows),    TABLE(events_rows),   TABLE(tasks_rows),
	TABLE(session_rows), TABLE(approval_rows), TABLE(limits_rows),
};

const unsigned n_settings_tables = sizeof(settings_tables) / sizeof(settings_tables[0]);

const struct setting_gone settings_gone[] = {
	{"koine", "allow_uids",
	 "koine.allow_uids is no more: name a listener, as in [listen ash] allow_uids = 1001"},
};

const unsigned n_settings_gone = sizeof(settings_gone) / sizeof(settings_gone[0]);
