/* Between the files of src/hook. */
#pragma once

#include "base/object_builder.h"
#include "hook/hook.h"
#include "wire/json.h"

/* NULL: none is called so. */
const struct hook_vendor *hook_vendor_named(struct text name);
/* Whose it is, as it looks; NULL: the plain form. */
const struct hook_vendor *hook_vendor_of(const struct value *in);
/* What cannot be read may be what the agent wants to do, and saying nothing would let it. An agent
 * that expects another form ignores this one. */
enum hook_form hook_guess(struct text text, struct text format);

/* If a key occurs twice, nobody knows which one the agent means. */
bool hook_is_twice(const struct value *in, const char *key);

/* {"hookSpecificOutput": {"hookEventName": event, … }}: what is written between belongs to the inner
 * object. */
void hook_begin_specific(struct json *j, const char *event);
void hook_end_specific(struct json *j);

/* elicit.c. REFUSE_METHOD: a human cannot be asked this way. */
int hook_read_elicitation(struct arena *a, const struct value *in, struct hook *h,
			  struct error *error);
/* Adds nothing if the answer does not fit, so that it is none. */
void hook_answer_elicitation(const struct hook *h, struct text answer, struct buf *out);
