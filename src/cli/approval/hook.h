/*
 * A hook as `koine hook` has it: its text read, and what is asked and printed written. base/hook
 * knows the agents.
 *
 * These functions need no server. The texts live as long as the hook.
 */
#pragma once

#include <koine/koine.h>

#include "hook/hook.h"

struct hook_input {
	struct hook hook;
	struct koine_doc *doc;
	struct koine_doc *inner; /* of an input that is JSON within a string; or NULL */
	struct arena arena;
};

/* `format` is auto, plain, or the name of a vendor; `agent` may be NULL. Returns what hook_read
 * does. */
int hook_input_read(struct hook_input *in, struct text text, const char *format, const char *agent,
		    struct why *why);
void hook_input_done(struct hook_input *in);

/* The params of approval.request. timeout_ms 0: the daemon's default. */
void hook_write_request(const struct hook *h, const struct hook_run *run, const char *id,
			int64_t timeout_ms, struct koine_json *j);

/* What to print. False: nothing, so that the agent asks by itself. */
bool hook_write_answer(struct hook_input *in, const struct hook_outcome *o, struct koine_json *j);

/* Writes a tree that base/hook has made or read. */
void hook_write_value(struct koine_json *j, const struct value *v);

struct cli;

/* tell.c: for a hook with `told`. Prints what is remembered, if the agent wants that. */
void hook_tell(struct cli *cli, struct hook_input *in);
/* For one that was not read: koined's log says why, if koined is there. */
void hook_tell_unread(struct cli *cli, const struct hook_input *in, const char *why);
