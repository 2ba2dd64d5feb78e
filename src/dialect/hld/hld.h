/*
 * hld: HumanLayer's daemon. Its clients (Go, TypeScript, Rust, of three generations) launch
 * agent sessions, look at them, decide what agents ask, and listen to events. It speaks
 * newline-delimited JSON-RPC; parameters are read as Go's encoding/json reads them, and
 * refused in its words.
 */
#pragma once

#include "call/call.h"
#include "call/dialect.h"
#include "engine/approval/approval.h"
#include "engine/event/event.h"
#include "engine/session/session.h"

extern const struct dialect hld_dialect;

/* The settings of an endpoint, which its handlers use. */
struct hld_settings {
	unsigned heartbeat_ms; /* silence after which a subscriber gets a heartbeat */
};

enum {
	HLD_MESSAGE_MAX = 10 << 20, /* bytes of a line, without its newline */
	HLD_QUEUE = 100,            /* events queued for a subscriber that does not read */
};

/* ---- decode.c: reading as Go does ---- */

int hld_explain_envelope(enum jsonrpc_fault fault, const struct value *v, struct error *error);
int hld_decode(struct call *c);

/* Refuses a configuration of MCP servers as Go would. `path` is where it stands ("mcp_config.",
 * or "" where it is the whole text); `what` begins the message. */
int hld_check_mcp(const struct value *config, const char *what, const char *path,
		  struct error *error);

/* Reads the configuration that continueSession takes as JSON within a string. */
int hld_read_mcp(struct arena *a, struct text json, const struct value **ret_config,
		 struct error *error);

/* ---- words.c ---- */

/* RFC 3339 in UTC: with a fraction without trailing zeros, or in whole seconds. */
void hld_write_time(struct json *j, const char *key, int64_t ms);
void hld_write_seconds(struct json *j, const char *key, int64_t ms);

/* A member that is left out if the text is empty. */
void hld_write_some(struct json *j, const char *key, struct text t);
/* A member that is "" if there is no text. */
void hld_write_text(struct json *j, const char *key, struct text t);

const char *hld_approval_status(enum approval_status status);

/* The log's types of events that clients are told. */
enum { HLD_N_TOLD = 4 };
const char *hld_told(unsigned i);
/* Returns 1 << i for a type of hld's own, 0 for an unknown one. */
unsigned hld_kind(struct text type);

/* Writes packed data as Go writes a map: names sorted, at any depth. */
void hld_write_sorted(struct json *j, struct text packed);

/* The line for a subscriber, without its newline; empty for events that hld does not tell. */
void hld_word_event(struct buf *out, const struct event *e);

/* Refusals about sessions in Go's words, which clients show, and the variables that its programs
 * expect. */
extern const struct session_wording hld_session_wording;

/* An empty text is none. */
static inline struct text hld_some(struct text t)
{
	return t.len > 0 ? t : (struct text) {0};
}

/* ---- fit.c: answers that would be too large ---- */

/* To how many bytes texts are cut, one after the other until it is enough. */
enum { HLD_N_CUTS = 5 };
extern const size_t hld_cuts[HLD_N_CUTS];

struct hld_fit {
	struct json *json;
	struct json before;
	size_t at;
	size_t envelope;
	bool cuts_texts;
	unsigned step;
	size_t cut;      /* bytes of each text */
	unsigned halved; /* how often the list was halved */
};

/* Write the result, and write it again while hld_fit_again returns true. */
struct hld_fit hld_fit_begin(struct call *c, bool cuts_texts);
bool hld_fit_again(struct hld_fit *f);
/* How many bytes the result may have. */
size_t hld_fit_max(const struct hld_fit *f);
/* How many bytes JSON has when it is sent: it is escaped for HTML then. */
size_t hld_size(const char *json, size_t len);
/* How many of n to show. */
unsigned hld_fit_count(const struct hld_fit *f, unsigned n);
/* A member beside a list, if not all of it is shown. */
void hld_fit_tell(const struct hld_fit *f, struct json *j);
/* Sets *ret_cut, which may be NULL, if the text was cut. */
struct text hld_fit_text(const struct hld_fit *f, struct text t, bool *ret_cut);

/* ---- schema.c: nouns as clients know them ---- */

enum {
	HLD_SECONDS = MEMBER_OWN,            /* a time without its fraction */
	HLD_BEHIND = MEMBER_OWN << 1,        /* after the first member written by hand */
	HLD_LAST = MEMBER_OWN << 2,          /* after the last of those */
	HLD_NOT_OF_CALL = MEMBER_OWN << 3,   /* in an event: not for a tool's call */
	HLD_NOT_OF_RESULT = MEMBER_OWN << 4, /* ... not for a tool's result */
	HLD_OF_RESULT = MEMBER_OWN << 5,     /* ... only for a tool's result */
};

extern const struct schema hld_session_info;  /* in lists */
extern const struct schema hld_session_state; /* expects all tokens in input_tokens */
extern const struct schema hld_session_event;
extern const struct schema hld_approval;

/* Texts that may be cut are cut as `fit` says. Both pointers may be NULL for nouns without such
 * texts. */
void hld_members(struct json *j, const struct schema *p, struct selection s, const void *noun,
		 const struct hld_fit *fit, bool *ret_cut);

/* ---- handlers ---- */

/* launchSession, continueSession */
struct hld_run_in {
	struct text session_id;
	struct text query;
	struct text model;
	const struct value *mcp_config;
	struct text mcp_config_text;
	struct text permission_prompt_tool;
	struct text working_dir;
	int64_t max_turns;
	struct text system_prompt;
	struct text append_system_prompt;
	const struct value *allowed_tools;
	const struct value *disallowed_tools;
	const struct value *additional_directories;
	struct text custom_instructions;
	struct text title;
	bool verbose;
	bool dangerously_skip_permissions; /* both of these are refused */
	int64_t dangerously_skip_permissions_timeout;
};

struct hld_session_in {
	struct text session_id;
	struct text claude_session_id;
	struct text title;
	bool archived;
	struct text filter;
	bool include_archived;
	bool archived_only;
	int64_t limit;
};

struct hld_approval_in {
	struct text run_id;
	struct text tool_name;
	const struct value *tool_input;
	struct text tool_use_id;
	struct text session_id;
	struct text approval_id;
	struct text call_id;
	struct text type;
	struct text decision;
	struct text comment;
};

struct hld_subscribe_in {
	const struct value *event_types;
	struct text session_id;
	struct text run_id;
};

/* REFUSE_PARAMS "NAME is required" if the text is "" or missing. */
int hld_need(struct call *c, struct text t, const char *name);

/* REFUSE_UNAVAILABLE if the service was not started. */

struct done hld_health(struct call *c);
struct done hld_launch(struct call *c);
struct done hld_continue(struct call *c);
struct done hld_interrupt(struct call *c);
struct done hld_list(struct call *c);
struct done hld_leaves(struct call *c);
struct done hld_state(struct call *c);
struct done hld_conversation(struct call *c);
struct done hld_archive(struct call *c);
struct done hld_title(struct call *c);
struct done hld_paths(struct call *c);
struct done hld_fetch_approvals(struct call *c);
struct done hld_send_decision(struct call *c);
struct done hld_create_approval(struct call *c);
struct done hld_get_approval(struct call *c);
struct done hld_subscribe(struct call *c);
