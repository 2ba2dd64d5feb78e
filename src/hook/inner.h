/* Between the files of base/hook. */
#pragma once

#include "hook/hook.h"

/* NULL: none is called so. */
const struct hook_vendor *hook_vendor_named(const char *name);
/* Whose it is, as it looks; NULL: the plain form. */
const struct hook_vendor *hook_vendor_of(const struct value *in);
/* What cannot be read may be what the agent wants to do, and saying nothing would let it. An agent
 * that expects another form ignores this one. */
enum hook_form hook_guess(struct text text, const char *format);

/* If a key occurs twice, nobody knows which one the agent means. */
bool hook_is_twice(const struct value *in, const char *key);

/* {"hookSpecificOutput": {"hookEventName": event, …}}: gives the inner object. */
struct value *hook_make_specific(struct maker *m, const char *event, const struct value **ret);

/* elicit.c. REFUSE_METHOD: a human cannot be asked this way. */
int hook_read_elicitation(struct maker *m, const struct value *in, struct hook *h, struct why *why);
/* False: the answer does not fit, so it is none. */
bool hook_answer_elicitation(struct maker *m, const struct hook *h, struct text answer,
			     const struct value **ret);
