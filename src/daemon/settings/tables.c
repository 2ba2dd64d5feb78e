/* Every setting that does not belong to a dialect: a table for each section, in the order in which
 * they are shown. */
#include "daemon/settings/settings.h"

#include "agent/embeddings.h"

#define AT(member)      offsetof(struct settings, member)
#define LIMIT(member)   offsetof(struct settings, limits.member)
#define TEXT_AT(member) SETTING_TEXT(struct settings, member)

static const char *const places[] = {[PLACES_ORIGINAL] = "original", [PLACES_OWN] = "own", NULL};

const char *const log_levels[] = {
	[LOG_LEVEL_ERR] = "err",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
	NULL,
};

static const struct setting daemon_rows[] = {
	{"daemon", "log_level", SET_WORD, AT(log_level), 0, 0,
	 "minimum level of the messages to log", .words = log_levels},
	{"daemon", "debug_methods", SET_BOOL, AT(debug_methods), 0, 0,
	 "enable the methods debug.echo and debug.sleep"},
	{"daemon", "log_messages", SET_BOOL, AT(log_messages), 0, 0,
	 "log each message sent or received, at level debug"},
	{"daemon", "log_file", SET_PATH, TEXT_AT(log_file), "log file; empty means stderr"},
	{"daemon", "places", SET_WORD, AT(places), 0, 0,
	 "where dialects listen by default: original (the addresses that their clients expect) or "
	 "own (sockets in the runtime directory)",
	 .words = places},
	{"daemon", "programs", SET_BOOL, AT(programs), 0, 0,
	 "allow koined to start programs for tasks, sessions, agents, tools and rules"},
};

static const struct setting koine_rows[] = {
	{"koine", "token_file", SET_PATH, TEXT_AT(token_file),
	 "file (mode 0600) with the token that HTTP calls must send"},
};

static const struct setting store_rows[] = {
	{"store", "url", SET_PATH, TEXT_AT(store),
	 "URL of the store: sqlite:PATH or postgresql://…; empty means the default file"},
};

static const struct setting host_rows[] = {
	{"host", "name", SET_TEXT, TEXT_AT(host_name),
	 "name of this host in a shared PostgreSQL store; empty means the machine's name"},
	{"host", "labels", SET_TEXT, TEXT_AT(host_labels),
	 "labels of this host, separated by spaces; a task with --on LABEL runs only on a host "
	 "with this label"},
	{"host", "lease", SET_SECONDS, AT(host_lease_ms), 3, 3600,
	 "seconds without a heartbeat after which other hosts declare this host dead"},
};

static const char *const extract_reviews[] = {
	[EXTRACT_AFTER] = "after", [EXTRACT_BEFORE] = "before", NULL};

static const struct setting memory_rows[] = {
	{"memory", "enabled", SET_BOOL, AT(memory_enabled), 0, 0, "enable memories"},
	{"memory", "index_bytes", SET_SIZE, AT(index_bytes), 1 << 20, 1LL << 40,
	 "maximum size of all search indexes in RAM"},
	{"memory", "index_file_bytes", SET_SIZE, AT(index_file_bytes), 0, 1LL << 40,
	 "maximum disk space for search index files; 0 means no files"},
	{"memory", "keep_deleted", SET_UNSIGNED, AT(keep_deleted_days), 0, 3650,
	 "days to keep a deleted memory before koined purges it; 0 means no delay"},
	{"memory", "words", SET_PATH, TEXT_AT(words),
	 "file with a table of word vectors, or off; empty means the default files"},
	{"memory", "embedding_url", SET_URL, TEXT_AT(embedding_url),
	 "OpenAI-compatible embeddings endpoint for searches by meaning; empty means none",
	 .check = embeddings_check_url},
	{"memory", "embedding_model", SET_PATH, TEXT_AT(embedding_model),
	 "name of the embedding model"},
	{"memory", "embedding_key_file", SET_PATH, TEXT_AT(embedding_key_file),
	 "file (mode 0600) with the API key; empty means none"},
	{"memory", "embedding_timeout", SET_UNSIGNED, AT(embedding_timeout_ms), 1, 60000,
	 "timeout in milliseconds for embedding a search query"},
	{"memory", "extract", SET_TEXT, TEXT_AT(extract),
	 "agent that extracts facts from conversations and sessions; empty means none"},
	{"memory", "extract_idle", SET_UNSIGNED, AT(extract_idle_s), 1, 86400,
	 "seconds of inactivity after which koined extracts facts from a conversation"},
	{"memory", "extract_review", SET_WORD, AT(extract_review), 0, 0,
	 "when you review extracted facts: before searches can find them, or after",
	 .words = extract_reviews},
};

static const struct setting chat_rows[] = {
	{"chat", "agent", SET_TEXT, TEXT_AT(chat_agent),
	 "default agent: recall, the NAME of an [agent NAME] section, or none"},
	{"chat", "system", SET_TEXT, TEXT_AT(chat_system), "system prompt; empty means none"},
	{"chat", "system_file", SET_PATH, TEXT_AT(chat_system_file),
	 "file that contains the system prompt, instead of chat.system"},
	{"chat", "budget", SET_UNSIGNED, AT(chat_budget), 100, 100000000,
	 "maximum number of conversation tokens in one request to the agent"},
	{"chat", "reserve", SET_UNSIGNED, AT(chat_reserve), 0, 100000000,
	 "part of chat.budget that is reserved for the response, in tokens"},
	{"chat", "keep_days", SET_UNSIGNED, AT(chat_keep_days), 0, 36500,
	 "days to keep an ended conversation; 0 means forever"},
};

static const struct setting events_rows[] = {
	{"events", "keep_days", SET_UNSIGNED, AT(events_keep_days), 0, 36500,
	 "days to keep an event; 0 means forever"},
	{"events", "keep", SET_UNSIGNED, AT(events_keep), 0, 1000000000,
	 "maximum number of stored events; 0 means no limit"},
};

static const struct setting tasks_rows[] = {
	{"tasks", "parallel", SET_UNSIGNED, AT(tasks.parallel), 1, 10000,
	 "maximum number of running tasks"},
	{"tasks", "project_parallel", SET_UNSIGNED, AT(tasks.project_parallel), 1, 10000,
	 "maximum number of running tasks of one project"},
	{"tasks", "queue", SET_UNSIGNED, AT(tasks.queue), 1, 1000000,
	 "maximum number of queued tasks; koined rejects additional tasks"},
	{"tasks", "timeout", SET_SECONDS, AT(tasks.timeout_ms), 1, 2592000,
	 "timeout of one attempt in seconds"},
	{"tasks", "output_bytes", SET_SIZE, AT(tasks.output_bytes), 4096, 1LL << 40,
	 "maximum size of a task's output file; koined keeps one rotated file"},
	{"tasks", "keep_days", SET_UNSIGNED, AT(tasks.keep_days), 0, 36500,
	 "days to keep an ended task; 0 means forever"},
	{"tasks", "interrupt_time", SET_SECONDS, AT(tasks.interrupt_ms), 0, 3600,
	 "seconds between SIGTERM and SIGKILL when koined cancels a task"},
	{"tasks", "runner", SET_TEXT, TEXT_AT(tasks.runner),
	 "default runner of tasks: an agent name or claude; empty means claude if it is installed, "
	 "otherwise chat.agent"},
	{"tasks", "environment", SET_VARIABLES, TEXT_AT(tasks.environment),
	 "environment variables for claude: NAME, NAME* or NAME=VALUE, separated by spaces"},
};

static const struct setting session_rows[] = {
	{"session", "program", SET_TEXT, TEXT_AT(sessions.program),
	 "command that runs a session and prints stream-json, as claude does"},
	{"session", "parallel", SET_UNSIGNED, AT(sessions.parallel), 1, 10000,
	 "maximum number of running sessions; koined rejects additional sessions"},
	{"session", "interrupt_time", SET_SECONDS, AT(sessions.interrupt_ms), 0, 3600,
	 "seconds between SIGINT and SIGTERM when koined interrupts a session"},
	{"session", "terminate_time", SET_SECONDS, AT(sessions.terminate_ms), 0, 3600,
	 "seconds between SIGTERM and SIGKILL when koined interrupts a session"},
	{"session", "silence_time", SET_SECONDS, AT(sessions.silence_ms), 0, 2592000,
	 "seconds without an event after which the status of an observed session becomes "
	 "completed; 0 means never"},
	{"session", "keep_bytes", SET_SIZE, AT(sessions.keep_bytes), 4096, 1LL << 40,
	 "maximum size of a session's stored events; koined drops events that exceed it"},
	{"session", "keep_days", SET_UNSIGNED, AT(sessions.keep_days), 0, 36500,
	 "days to keep an ended session; 0 means forever"},
	{"session", "runner", SET_TEXT, TEXT_AT(sessions.runner),
	 "default runner of sessions: an agent name or claude; empty means session.program if it "
	 "is installed, otherwise chat.agent"},
	{"session", "environment", SET_VARIABLES, TEXT_AT(sessions.environment),
	 "environment variables for the program: NAME, NAME* or NAME=VALUE, separated by spaces"},
};

static const struct setting approval_rows[] = {
	{"approval", "timeout", SET_SECONDS, AT(approvals.timeout_ms), 0, 2592000,
	 "seconds after which an approval expires, unless the request sets a timeout; 0 means "
	 "never"},
	{"approval", "pending", SET_UNSIGNED, AT(approvals.pending), 1, 100000,
	 "maximum number of pending approvals; koined rejects additional requests"},
	{"approval", "keep_days", SET_UNSIGNED, AT(approvals.keep_days), 0, 36500,
	 "days to keep a decided approval; 0 means forever"},
	{"approval", "agents_decide", SET_BOOL, AT(approvals.agents_decide), 0, 0,
	 "allow agents to approve their own requests (insecure)"},
};

static const struct setting limits_rows[] = {
	{"limits", "connections", SET_UNSIGNED, LIMIT(connections), 1, 1000000,
	 "maximum number of connections; additional connections wait in the kernel's backlog"},
	{"limits", "connections_per_uid", SET_UNSIGNED, LIMIT(connections_per_uid), 1, 1000000,
	 "maximum number of connections for each user in allow_uids; koined closes further "
	 "connections"},
	{"limits", "calls", SET_UNSIGNED, LIMIT(calls), 1, 1000000,
	 "maximum number of calls in flight; koined rejects additional calls"},
	{"limits", "waiting", SET_UNSIGNED, LIMIT(waiting), 1, 10000,
	 "maximum number of queued calls per connection"},
	{"limits", "queue_bytes", SET_SIZE, LIMIT(queue_bytes), 4096, 1 << 30,
	 "maximum size of unsent responses to a client; above the limit, koined stops reading from "
	 "that client"},
	{"limits", "total_queue_bytes", SET_SIZE, LIMIT(total_queue_bytes), 1 << 20, 1LL << 40,
	 "maximum size of unsent responses to all clients; above the limit, koined disconnects the "
	 "slowest clients"},
	{"limits", "room_wait", SET_SECONDS, LIMIT(room_wait_ms), 0, 3600,
	 "maximum time in seconds that a call waits for free RAM for its response"},
	{"limits", "total_input_bytes", SET_SIZE, LIMIT(total_input_bytes), 1 << 20, 1LL << 40,
	 "maximum total size of incomplete messages; above the limit, koined disconnects clients, "
	 "beginning with the largest and slowest messages"},
	{"limits", "total_call_bytes", SET_SIZE, LIMIT(total_call_bytes), 1 << 20, 1LL << 40,
	 "maximum RAM for calls in flight; above the limit, koined rejects calls with large "
	 "messages"},
	{"limits", "progress_bytes", SET_SIZE, LIMIT(progress_bytes), 1, 1 << 30,
	 "number of bytes of a message that must arrive within each read_timeout; koined "
	 "disconnects slower clients"},
	{"limits", "reply_bytes", SET_SIZE, LIMIT(reply_bytes), 4096, 1 << 30,
	 "maximum size of one response"},
	{"limits", "json_depth", SET_UNSIGNED, LIMIT(json_depth), 16, JSON_DEPTH_MAX,
	 "maximum depth of nested JSON arrays and objects"},
	{"limits", "json_values", SET_UNSIGNED, LIMIT(json_values), 1000, 100000000,
	 "maximum number of JSON values in one message"},
	{"limits", "batch", SET_UNSIGNED, LIMIT(batch), 1, 1000000,
	 "maximum number of requests in one batch"},
	{"limits", "read_timeout", SET_SECONDS, LIMIT(read_timeout_ms), 1, 3600,
	 "timeout in seconds for a whole HTTP request, or for the next progress_bytes of any other "
	 "message"},
	{"limits", "linger", SET_SECONDS, LIMIT(linger_ms), 0, 60,
	 "seconds that koined keeps a rejected connection open, so that the client can read the "
	 "reason"},
	{"limits", "stop_time", SET_SECONDS, LIMIT(stop_ms), 0, 3600,
	 "seconds to wait for running calls when koined stops"},
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
	 "koine.allow_uids was removed: set allow_uids for a listener, as in [listen ash] "
	 "allow_uids = "
	 "1001"},
};

const unsigned n_settings_gone = sizeof(settings_gone) / sizeof(settings_gone[0]);
