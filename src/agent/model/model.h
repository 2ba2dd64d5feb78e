/*
 * Models behind HTTP that answer with a stream of server-sent events: any OpenAI-compatible
 * /v1/chat/completions (Ollama, llama.cpp, vLLM, OpenAI), and Anthropic's /v1/messages.
 *
 * A request that fails before the first byte of its answer is tried again, with growing,
 * jittered pauses or as Retry-After says; after that byte never.
 *
 * The types of AGENT_FAILED: "ProviderUnavailable" (unreachable or overloaded: perhaps later),
 * "ProviderTimeout", "ProviderError" (it said no, or made no sense), "KeyError" (the key's
 * command). The text begins with the agent's name.
 */
#pragma once

#include <stddef.h>

#include "agent/agent.h"
#include "io/loop.h"

struct environment;

/* Where the key comes from, asked anew for every turn; at most one of the first three. Never
 * logged, never in an error's text. */
struct model_key {
	const char *environment; /* the name of a variable; "" for none */
	const char *file;        /* must be ours and private: nobody else may read it */
	const char *command;     /* run by /bin/sh; the first line of its output, kept for an hour
				  * or until the provider refuses it */
	const struct environment *env; /* of the command; NULL: ours */
};

struct model_opts {
	const char *name;
	const char *url; /* "http://…", "https://…" or "unix:PATH"; see model_check_url */
	const char *model;
	struct model_key key;
	int64_t max_tokens;          /* of an answer; 0: the provider's own, for anthropic 4096 */
	double temperature;          /* below 0: the provider's own */
	unsigned connect_timeout_ms; /* 0: 10 s */
	unsigned idle_timeout_ms;    /* without a byte; 0: 120 s */
	unsigned total_timeout_ms;   /* of one request; 0: 3600 s */
	unsigned retries;            /* beside the first try */
	unsigned connections;        /* at once; more turns wait. 0: 512 */
	int64_t budget;
	int64_t reserve;
};

/*
 * Refuses a URL that we do not support. Without a path it means the usual path
 * (/v1/chat/completions, /v1/messages); one that ends in /v1 is completed; any other path is
 * used as it is.
 */
int model_check_url(const char *url, struct error *error);

int openai_new(struct loop *l, const struct model_opts *opts, struct agent **ret_agent,
	       struct error *error);
int anthropic_new(struct loop *l, const struct model_opts *opts, struct agent **ret_agent,
		  struct error *error);
