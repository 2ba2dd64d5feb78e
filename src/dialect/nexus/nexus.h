/*
 * nexus: programs that talk with an agent over HTTP on a loopback port. JSON-RPC in POSTs; one
 * conversation is at "/" and "/rpc", others are at "/agent/ID".
 *
 * What the original calls an agent is a conversation here; what it calls a model is one of the
 * configured agents.
 */
#pragma once

#include "base/setting.h"
#include "call/call.h"
#include "call/dialect.h"
#include "engine/chat/chat.h"

extern const struct dialect nexus_dialect;

/* What `shutdown` ends, in the order of the setting's words. */
enum nexus_ending { SHUTDOWN_DAEMON, SHUTDOWN_LISTENER, SHUTDOWN_OFF };

struct nexus_settings {
	char token_file[PATH_LEN]; /* "": koine.token_file */
	unsigned shutdown;         /* enum nexus_ending */
};

/* ---- explain.c: refusals as the original's clients know them ---- */

int nexus_explain_envelope(enum jsonrpc_fault fault, const struct value *v, struct error *error);
int nexus_explain_field(const struct field *f, const struct value *v, struct error *error);
void nexus_http_error(struct buf *body, int status, const char *text);

/* The name of the value's type in Python: "str", "int", "NoneType" … */
const char *nexus_type_name(const struct value *v);

/*
 * A request id in the form in which it is compared and echoed: its JSON. null, "" and 0 mean
 * none, and give {NULL, 0}. Anything else that is neither a string nor an integer is refused.
 */
int nexus_request_id(struct call *c, const struct value *v, struct text *ret_id);

/* Reads the id into the ask; without one, the ask gets a new id. */
int nexus_ask_id(struct call *c, const struct value *v, struct chat_ask *ask);

/* ---- which conversation ---- */

struct nexus_target {
	struct text conversation;
	bool must_exist;
};

/* Newer clients call the conversation at "/" main. On koine's own socket that is any name. */
bool nexus_is_main(const struct call *c, struct text id);
bool nexus_is_default(const struct call *c, struct text id);

/* The conversation of the path, the one that `agent_id` names, or the default. */
struct nexus_target nexus_target(const struct call *c, struct text agent_id);

/* Fails with a result of the service. `error` comes from a callback; NULL means c->error. */
struct done nexus_fail(struct call *c, struct text conversation, int r, const struct error *error);

/* Whose memories may be quoted. */
struct memory_asker nexus_asker(const struct call *c);

/* Whether there is a result, perhaps only its beginning. */
bool nexus_answered(const struct chat_answer *a);

/* The result of a send. */
void nexus_write_answer(struct json *j, const struct chat_answer *a);

/* Refuses an offset or limit that get_messages does not accept. */
int nexus_check_page(struct call *c, int64_t offset, int64_t limit);

/* ---- handlers ---- */

/* Parameters of all methods. */
struct nexus_in {
	struct text content;
	const struct value *request_id;
	struct text agent_id;
	int64_t offset;
	int64_t limit;
	bool force;
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
