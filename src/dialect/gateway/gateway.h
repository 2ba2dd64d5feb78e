/*
 * gateway: what ocg's gateway offers over HTTP, and OpenAI's chat completions, so that any program
 * that speaks those can use koine's agents, memory and budget. There is no JSON-RPC here.
 *
 * process.c and ws.c have a table of routes of their own (http_more_routes).
 */
#pragma once

#include "base/setting.h"
#include "call/call.h"
#include "call/http.h"
#include "engine/memory/memory.h"

struct chat;
struct dialect_life;
struct dialect_section;

extern const struct dialect gateway_dialect;

enum { GATEWAY_KNOWN_MAX = 512 };

/* Conversations that may be continued, by a hash of what was said, in the order of use. Only the
 * loop's thread touches them. */
struct gateway_known {
	struct {
		uint64_t said; /* a hash; 0: free */
		int64_t number;
	} list[GATEWAY_KNOWN_MAX];
	unsigned next;
	int64_t last_number; /* the highest number so far */
	size_t bytes;        /* that completions which run or wait hold */
};

struct gateway_settings {
	char token_file[PATH_LEN]; /* "": the variable OPENCLAW_UI_TOKEN */
	char tool_names[128];      /* as set */
	char folder[PATH_LEN];     /* "": none */
	bool process;              /* clients may start programs */
	char environment[VARIABLES_MAX];
	unsigned timeout_ms; /* how long an agent may be silent */
	unsigned ping_ms;    /* between two checks that a WebSocket's client is there */
	/* Derived from these. */
	unsigned tools;   /* offered to agents: bits of enum tool_id */
	struct text user; /* whose memories; {NULL, 0}: everybody's */
	struct gateway_known *known;
};

/* start.c: its section of the settings, and its part in the daemon's life. */
extern const struct dialect_section gateway_section;
extern const struct dialect_life gateway_life;

/* Finds the highest number of the gateway's conversations. Call it before the first request. */
int gateway_count(struct chat *chat, struct gateway_known *known);

const struct gateway_settings *gateway_settings(const struct call *c);

/* ---- look.c: health, counts, agents ---- */

struct done gateway_health(struct call *c);
struct done gateway_stats(struct call *c);
struct done gateway_models(struct call *c);
struct done gateway_model(struct call *c);

/* ---- memory.c: the memory tools, without an agent ---- */

struct gateway_memory_in {
	struct text query;
	struct text category;
	double limit;
	double min_score;
	struct text path;
	struct text text;
	double importance;
};

struct done gateway_memory_search(struct call *c);
struct done gateway_memory_get(struct call *c);
struct done gateway_memory_store(struct call *c);

/* ---- chat.c: OpenAI's chat completions ---- */

struct gateway_chat_in {
	struct text model;
	const struct value *messages;
	const struct value *tools;
	const struct value *tool_choice;
	const struct value *response_format;
	bool stream;
	const struct value *stream_options;
	int64_t n;
};

struct done gateway_chat(struct call *c);

/* ---- cron.c: jobs ---- */

struct gateway_job_in {
	struct text job_id;
	struct text id; /* the same */
	const struct value *patch;
};

struct done gateway_cron_status(struct call *c);
struct done gateway_cron_list(struct call *c);
struct done gateway_cron_add(struct call *c);
struct done gateway_cron_update(struct call *c);
struct done gateway_cron_remove(struct call *c);
struct done gateway_cron_run(struct call *c);
