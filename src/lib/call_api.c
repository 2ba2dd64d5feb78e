/* koine_call_*: one call, as a host sees it. */
#include <errno.h>
#include <string.h>

#include "call/client.h"
#include "lib/host.h"

static struct host_call *host_state(struct call *c)
{
	if (!c->state) {
		c->state = arena_zalloc(&c->arena, sizeof(struct host_call));
		if (!c->state)
			return NULL;
	}
	return c->state;
}

struct done host_handle(struct call *c)
{
	const struct host_method *h = c->method->arg;

	/* Made now, so that answering cannot fail for lack of memory. */
	if (!host_state(c))
		return call_fail(c, -ENOMEM);
	h->handler((struct koine_call *)c, h->arg);
	if (c->stage == CALL_RUNNING)
		return call_fail(c, refuse(&c->error, REFUSE_INTERNAL,
					   "the handler of this method did not respond"));
	return call_settled(c);
}

const struct koine_value *koine_call_params(const struct koine_call *c)
{
	return (const struct koine_value *)inner_const(c)->request.params;
}

const struct koine_value *koine_call_param(const struct koine_call *c, const char *name)
{
	const struct call *call = inner_const(c);

	for (unsigned i = 0; i < call->method->n_fields; i++) {
		if (strcmp(call->method->fields[i].name, name) == 0)
			return (const struct koine_value *)call->given[i];
	}
	return (const struct koine_value *)value_find(call->request.params, name);
}

const char *koine_call_method(const struct koine_call *c)
{
	return inner_const(c)->method->name;
}

const char *koine_call_dialect(const struct koine_call *c)
{
	return inner_const(c)->dialect->name;
}

const char *koine_call_framing(const struct koine_call *c)
{
	const struct client *s = inner_const(c)->client;

	return s ? client_framing_name(s) : "none";
}

uint64_t koine_call_connection(const struct koine_call *c)
{
	const struct client *s = inner_const(c)->client;

	return s ? s->number : 0;
}

bool koine_call_is_notification(const struct koine_call *c)
{
	return inner_const(c)->request.silent;
}

bool koine_call_peer(const struct koine_call *c, int64_t *ret_pid, int64_t *ret_uid,
		     int64_t *ret_gid)
{
	const struct peer *peer = &inner_const(c)->peer;

	if (!peer->known)
		return false;
	if (ret_pid)
		*ret_pid = peer->local ? peer->pid : -1;
	if (ret_uid)
		*ret_uid = peer->uid;
	if (ret_gid)
		*ret_gid = peer->local ? (int64_t)peer->gid : -1;
	return true;
}

struct koine_json *koine_call_result(struct koine_call *c)
{
	struct call *call = inner(c);
	struct host_call *state = call->state;

	if (!call->begun) {
		call_result(call);
		koine_json_over(&state->result, &call->out);
	}
	return &state->result;
}

void koine_call_reply(struct koine_call *c)
{
	(void)call_reply(inner(c));
}

void koine_call_fail(struct koine_call *c, int64_t code, const char *message, const char *data)
{
	(void)call_fail_with(inner(c), code, text_of(message), text_of(data));
}

static void call_api_on_cancel(struct call *c, void *arg)
{
	const struct host_call *state = c->state;

	/* Without one the call must stay as it is: the host still holds it. */
	if (state->on_cancel)
		state->on_cancel((struct koine_call *)c, state->cancel_arg);
}

void koine_call_later(struct koine_call *c, void (*cancel)(struct koine_call *c, void *arg),
		      void *arg)
{
	struct call *call = inner(c);
	struct host_call *state = call->state;

	state->on_cancel = cancel;
	state->cancel_arg = arg;
	(void)call_later(call, call_api_on_cancel, NULL);
}
