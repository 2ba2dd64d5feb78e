/* The schema of ash. */
#include "dialect/ash/ash.h"
#include "dialect/life.h"
#include "dialect/memory_wire.h"

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {-32700, "Invalid JSON", WORDS_ONLY, 400},
	[REFUSE_REQUEST] = {-32600, "Invalid JSON-RPC", WORDS_ONLY, 400},
	[REFUSE_METHOD] = {-32601, "Method not found", WORDS_BOTH, 0},
	[REFUSE_PARAMS] = {-32602, "Invalid params", WORDS_BOTH, 0},
	[REFUSE_INTERNAL] = {-32603, "Internal error", WORDS_TEXT, 0},
	[REFUSE_NOT_FOUND] = {-32603, "Not found", WORDS_TEXT, 0},
	[REFUSE_CONFLICT] = {-32603, "Conflict", WORDS_TEXT, 0},
	[REFUSE_LIMIT] = {-32603, "Resource limit reached", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {-32600, "Message too large", WORDS_TEXT, 0},
	[REFUSE_UNAVAILABLE] = {-32603, "Unavailable", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {-32602, "Forbidden", WORDS_TEXT, 0},
	[REFUSE_TIMEOUT] = {-32603, "Call timed out", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {-32603, "Stopping", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {-32603, "Cancelled", WORDS_TEXT, 0},
};

#define TOKEN(in)                                                                                  \
	FIELD_AS("context_token", STRING, in, who.context_token,                                   \
		 "Signed token that names user and chat; required if ash.context_secret is set")

#define WHO(in) MEMORY_WHO(in), TOKEN(in)

/* Fields of the methods that find memories. */
#define WHERE(in)                                                                                  \
	MEMORY_THIS_CHAT(in, this_chat), MEMORY_CHAT_TYPE(in, who.chat_type, MEMORY_CHAT_TYPE_DOC)

static const struct field search_fields[] = {
	MEMORY_SEARCH_FIELDS(search_in, search),
	WHERE(search_in),
	WHO(search_in),
};

static const struct field add_fields[] = {
	MEMORY_ADD_FIELDS(add_in, add, "Store the memory for the chat instead of the user"),
	MEMORY_CHAT_TYPE(add_in, who.chat_type, "Type of the chat: private, group or supergroup"),
	WHO(add_in),
};

static const struct field list_fields[] = {
	MEMORY_LIST_FIELDS(list_in, list),
	WHERE(list_in),
	WHO(list_in),
};

static const struct field delete_fields[] = {
	FIELD(STRING, delete_in, memory_id, "Id of the memory, or a unique prefix of the id",
	      .required = true),
	WHO(delete_in),
};

static const struct field reload_fields[] = {TOKEN(reload_in)};

static const struct method methods[] = {
	{"memory.search", "Search memories, best match first", MEMORY_ROWS,
	 FIELDS(search_fields, search_in), .handle = ash_search, .before = ash_before_search,
	 .where = READER},
	{"memory.add", "Add a memory", "object", FIELDS(add_fields, add_in), .handle = ash_add,
	 .where = WRITER},
	{"memory.list", "List memories, newest first", MEMORY_ROWS, FIELDS(list_fields, list_in),
	 .handle = ash_list, .at_once = ash_list_at_once, .where = READER},
	{"memory.delete", "Delete a memory", "{deleted:boolean}", FIELDS(delete_fields, delete_in),
	 .handle = ash_delete, .where = WRITER},
	{"config.reload", "Reload the settings", "{success:boolean}",
	 FIELDS(reload_fields, reload_in), .handle = ash_reload},
};

/* ---- in a daemon ---- */

static const struct setting rows[] = {
	{"ash", "context_secret", SET_SECRET, SETTING_TEXT(struct ash_settings, context_secret),
	 "HMAC key of the context tokens; empty means that calls need no token",
	 .secret = "ASH_CONTEXT_TOKEN_SECRET"},
};

static const struct ash_settings defaults;

static const struct dialect_section section = {SECTION(rows, defaults)};

static int ash_dialect_prepare(struct dialect_host *h, struct error *error)
{
	struct ash_settings *s = h->settings;
	int r;

	if (!s->context_secret[0])
		return 0;
	r = context_secret_read(h->daemon->arena, text_of(s->context_secret), &s->secret);
	/* A blank secret is refused: whoever sets one wants tokens. */
	if (r == 0 && s->secret.n == 0)
		return refuse(error, REFUSE_PARAMS, "ash.context_secret is blank");
	return r;
}

static const struct dialect_life life = {.steps = {[DIALECT_PREPARE] = ash_dialect_prepare}};

const struct dialect ash_dialect = {
	.name = "ash",
	.framing = SPEAKS_LENGTH,
	.message_max = 10 << 20,
	.rules = {.flags = JSONRPC_ID_SECOND | JSONRPC_ANY_ID | JSONRPC_NO_POSITIONAL |
			   JSONRPC_PARAMS_WRONG},
	.errors = errors,
	.plain_errors = true,
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.http_silent_status = 200,
	.home = {.socket = "ash.sock", .variable = "ASH_RPC_SOCKET", .path = "/run/ash/rpc.sock"},
	/* A sandbox may have written the files of projects that a reload would read. Also, none
	 * of ash's own settings changes while koined runs. */
	.sandboxed = true,
	.section = &section,
	.life = &life,
};
