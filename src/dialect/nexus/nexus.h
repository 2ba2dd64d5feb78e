/*
 * nexus: programs that talk with an agent over HTTP on a loopback port. JSON-RPC in
 * POSTs, one conversation at "/" and "/rpc", others at "/agent/ID".
 *
 * What the original calls an agent is a conversation here; what it calls a model is
 * one of the agents that are configured.
 */
#pragma once

#include "base/setting.h"
#include "call/call.h"
#include "call/dialect.h"
#include "engine/chat/chat.h"

extern const struct dialect nexus_dialect;

/* What `shutdown` ends; in the order of the words of the settings. */
enum nexus_ending { SHUTDOWN_DAEMON, SHUTDOWN_LISTENER, SHUTDOWN_OFF };

struct nexus_settings {
	char token_file[PATH_LEN]; /* "": koine.token_file */
	unsigned shutdown;         /* enum nexus_ending */
};

/* ---- explain.c: what is wrong, as the original's clients know it ---- */

int nexus_explain_envelope(enum jsonrpc_fault fault, const struct value *v, struct why *why);
int nexus_explain_field(const struct field *f, const struct value *v, struct why *why);
void nexus_http_error(struct buf *body, int status, const char *text);

/* The name of Python's type for it: "str", "int", "NoneType" … */
const char *nexus_type_name(const struct value *v);

/*
 * A request id in the one form it is compared and echoed in: its JSON. {NULL, 0} for null,
 * "" and 0, which are none. Refuses what is neither string nor integer.
 */
int nexus_request_id(struct call *c, const struct value *v, struct text *ret_id);

/* The same into what is asked, where none means a new one. */
int nexus_ask_id(struct call *c, const struct value *v, struct chat_ask *ask);

/* ---- which conversation ---- */

struct nexus_target {
	struct text conversation;
	bool must_exist;
};

/* That of the path, or the one that `agent_id` names, or the default. */
struct nexus_target nexus_target(const struct call *c, struct text agent_id);

/* Fails with a result of the service; why is of a callback, or NULL for c->why. */
struct done nexus_fail(struct call *c, struct text conversation, int r, const struct why *why);

/* Whose memories may be quoted. */
struct memory_asker nexus_asker(const struct call *c);

/* Whether there is a result, perhaps only the beginning of one. */
bool nexus_answered(const struct chat_answer *a);

/* The result of a send. */
void nexus_write_answer(struct json *j, const struct chat_answer *a);

/* Whether a page may be asked for so: offset and limit, as get_messages has them. */
int nexus_check_page(struct call *c, int64_t offset, int64_t limit);

/* ---- handlers ---- */

struct send_in {
	struct text content;
	const struct value *request_id;
	struct text agent_id;
};

struct cancel_in {
	const struct value *request_id;
	struct text agent_id;
};

struct agent_in {
	struct text agent_id;
};

struct agents_in {
	int64_t offset;
	int64_t limit;
};

struct messages_in {
	int64_t offset;
	int64_t limit;
	struct text agent_id;
};

struct compact_in {
	bool force;
	struct text agent_id;
};

struct create_in {
	struct text agent_id;
	struct text system_prompt;
	struct text model;
	struct text preset;
	struct text cwd;
	struct text parent_agent_id;
	const struct value *disable_tools;
	const struct value *allowed_write_paths;
	struct text initial_message;
	bool wait_for_initial_response;
};

struct done nexus_send(struct call *c);
struct done nexus_cancel(struct call *c);
struct done nexus_get_tokens(struct call *c);
struct done nexus_get_context(struct call *c);
struct done nexus_get_messages(struct call *c);
struct done nexus_compact(struct call *c);
struct done nexus_create_agent(struct call *c);
struct done nexus_list_agents(struct call *c);
struct done nexus_destroy_agent(struct call *c);
struct done nexus_shutdown(struct call *c);
struct done nexus_shutdown_server(struct call *c);
