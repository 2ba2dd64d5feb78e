/*
 * koine approvals -w into a pipe: those that wait for a human, then a line for each that comes and
 * each that is decided. A daemon that goes away is waited for, and what came meanwhile is told.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/approval/approval.h"

enum { RETRY_MS = 100, RETRY_MAX_MS = 1000 };

struct follow {
	struct cli *cli;
	struct koine_client *client;
	struct koine_answer *before; /* what was there when we came */
	int64_t seq;                 /* of the last event that was told */
};

static void json_freep(struct koine_json **j)
{
	koine_json_free(*j);
}

/* ---- what happens ---- */

static void on_found(void *arg, int result, const struct koine_answer *a)
{
	struct follow *f = arg;

	if (result == 0)
		approval_print_change(f->cli, koine_answer_result(a));
}

static bool was_there(const struct follow *f, struct text id)
{
	const struct koine_value *a =
		koine_value_first(koine_value_get(koine_answer_result(f->before), "approvals"));

	for (; a; a = koine_value_next(a)) {
		if (text_equal(approval_member(a, "id"), id))
			return true;
	}
	return false;
}

static void on_notification(void *arg, const char *method, size_t len,
			    const struct koine_value *whole)
{
	const struct koine_value *params = koine_value_get(whole, "params");
	struct follow *f = arg;
	struct text id = approval_member(koine_value_get(params, "data"), "approval_id");
	CLEANUP(json_freep) struct koine_json *j = NULL;

	if (!method || len != 5 || memcmp(method, "event", 5) != 0)
		return;
	koine_value_int(koine_value_get(params, "seq"), &f->seq);
	if (id.len == 0 ||
	    (text_is(approval_member(params, "type"), "approval.requested") && was_there(f, id)))
		return;
	j = approval_id_params(id, true);
	if (j)
		(void)koine_client_call_async(f->client, "approval.get", koine_json_text(j, NULL),
					      on_found, f, NULL);
}

/* ---- asking ---- */

static int ask_events(struct follow *f, const char *method, struct koine_answer **ret_answer)
{
	const char *session = f->cli->options.approval.session;
	bool listing = strcmp(method, "event.list") == 0;
	CLEANUP(json_freep) struct koine_json *j = NULL;
	const char *text;

	if (koine_json_new(&j) != 0)
		return -ENOMEM;
	koine_json_begin_object(j);
	koine_json_key(j, listing ? "limit" : "since");
	koine_json_int(j, listing ? 1 : f->seq);
	if (!listing) {
		koine_json_key(j, "types");
		koine_json_begin_array(j);
		koine_json_string(j, "approval.*");
		koine_json_end_array(j);
	}
	if (!listing && session) {
		koine_json_key(j, "session_id");
		koine_json_string(j, session);
	}
	koine_json_end_object(j);
	text = koine_json_text(j, NULL);
	return text ? koine_client_call(f->client, method, text, ret_answer) : -ENOMEM;
}

/* Where the log is now: what comes behind it is told. */
static int find_seq(struct follow *f)
{
	struct koine_answer *a = NULL;
	int r = ask_events(f, "event.list", &a);

	if (r != 0)
		return talk_failed(f->client, "event.list", r, a);
	koine_value_int(koine_value_get(koine_answer_result(a), "last"), &f->seq);
	koine_answer_free(a);
	return 0;
}

static int print_before(struct follow *f)
{
	CLEANUP(json_freep)
	struct koine_json *j = approval_list_params(f->cli, false, APPROVALS_MAX);
	const struct koine_value *a;
	int r;

	if (!j) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	r = talk_call(f->client, "approval.list", koine_json_text(j, NULL), &f->before);
	if (r != 0)
		return r;
	a = koine_value_first(koine_value_get(koine_answer_result(f->before), "approvals"));
	for (; a; a = koine_value_next(a))
		approval_print_change(f->cli, a);
	return 0;
}

static void pause_ms(unsigned ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

static void come_back(struct follow *f)
{
	unsigned ms = RETRY_MS;
	int r;

	complain("koined has left; waiting for it");
	do {
		struct koine_answer *a = NULL;

		pause_ms(ms);
		r = ask_events(f, "event.subscribe", &a);
		koine_answer_free(a);
		ms = 2 * ms < RETRY_MAX_MS ? 2 * ms : RETRY_MAX_MS;
	} while (r != 0);
	complain("koined is back");
}

static int follow(struct follow *f)
{
	struct koine_answer *a = NULL;
	int r = find_seq(f);

	if (r == 0)
		r = print_before(f);
	if (r != 0)
		return r;
	koine_client_on_notification(f->client, on_notification, f);
	r = ask_events(f, "event.subscribe", &a);
	if (r != 0)
		return talk_failed(f->client, "event.subscribe", r, a);
	koine_answer_free(a);
	for (;;) {
		if (fflush(stdout) != 0 || ferror(stdout))
			return EX_IOERR;
		if (koine_client_wait(f->client, -1) != 0)
			come_back(f);
	}
}

int approvals_follow(struct cli *cli)
{
	struct follow f = {.cli = cli};
	int r = talk_dial(cli, NULL, NULL, &f.client);

	if (r == 0)
		r = follow(&f);
	koine_client_free(f.client);
	koine_answer_free(f.before);
	return r;
}
