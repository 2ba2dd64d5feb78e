/*
 * koine events: what has happened, and with -f what happens. When the daemon goes away it is
 * waited for, and the log is read on from where it was.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/event/event.h"

enum {
	ROWS = 20,
	ROWS_BEFORE = 10, /* that -f begins with */
	PAGE_MAX = 1000,
	RETRY_MS = 100,
	RETRY_MAX_MS = 1000,
	STOPPING_CODE = -32008,
};

struct tail {
	struct cli *cli;
	struct koine_client *client;
	struct event_start start; /* where to go on */
};

static void json_freep(struct koine_json **j)
{
	koine_json_free(*j);
}

/* ---- asking ---- */

static void add_text(struct koine_json *j, const char *key, const char *text)
{
	if (!text || !text[0])
		return;
	koine_json_key(j, key);
	koine_json_string(j, text);
}

static void add_types(struct koine_json *j, const struct event_options *o)
{
	if (o->n_types == 0)
		return;
	koine_json_key(j, "types");
	koine_json_begin_array(j);
	for (unsigned i = 0; i < o->n_types; i++)
		koine_json_string(j, o->types[i]);
	koine_json_end_array(j);
}

static void write_params(struct koine_json *j, const struct tail *t, int64_t limit)
{
	const struct event_options *o = &t->cli->options.events;

	koine_json_begin_object(j);
	add_types(j, o);
	add_text(j, "session_id", o->session);
	add_text(j, "run_id", o->run);
	add_text(j, "project", o->project);
	add_text(j, "since", t->start.time);
	if (t->start.seq >= 0) {
		koine_json_key(j, "since");
		koine_json_int(j, t->start.seq);
	}
	if (limit > 0) {
		koine_json_key(j, "limit");
		koine_json_int(j, limit);
	}
	koine_json_end_object(j);
}

/* As koine_client_call; limit 0: none. */
static int ask(const struct tail *t, const char *method, int64_t limit,
	       struct koine_answer **ret_answer)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	const char *params;

	if (koine_json_new(&j) != 0)
		return -ENOMEM;
	write_params(j, t, limit);
	params = koine_json_text(j, NULL);
	return params ? koine_client_call(t->client, method, params, ret_answer) : -ENOMEM;
}

static void go_on_from(struct tail *t, int64_t seq)
{
	t->start = (struct event_start) {.seq = seq};
}

/* ---- what has happened ---- */

static int64_t print_page(struct tail *t, const struct koine_value *page, bool *ret_more)
{
	const struct koine_value *e = koine_value_first(koine_value_get(page, "events"));
	int64_t last = t->start.seq;
	int64_t gone = 0;
	int64_t n = 0;

	koine_value_int(koine_value_get(page, "gone"), &gone);
	event_print_gone(t->cli, gone);
	for (; e; e = koine_value_next(e), n++)
		event_print(t->cli, e);
	koine_value_int(koine_value_get(page, "last"), &last);
	koine_value_bool(koine_value_get(page, "more"), ret_more);
	go_on_from(t, last);
	return n;
}

/* Up to `limit` in all; negative: as many as there are. */
static int list(struct tail *t, int64_t limit)
{
	bool more = limit != 0;

	while (more) {
		int64_t n = limit < 0 || limit > PAGE_MAX ? PAGE_MAX : limit;
		struct koine_answer *a = NULL;
		int r = ask(t, "event.list", n, &a);

		if (r != 0)
			return talk_failed(t->client, "event.list", r, a);
		more = false;
		n = print_page(t, koine_answer_result(a), &more);
		koine_answer_free(a);
		if (limit > 0)
			limit -= n;
		more = more && limit != 0;
	}
	return 0;
}

/* ---- what happens ---- */

static bool is_method(const char *method, size_t len, const char *name)
{
	return method && len == strlen(name) && memcmp(method, name, len) == 0;
}

static void on_notification(void *arg, const char *method, size_t len,
			    const struct koine_value *whole)
{
	const struct koine_value *params = koine_value_get(whole, "params");
	struct tail *t = arg;
	int64_t n;

	if (is_method(method, len, "event")) {
		event_print(t->cli, params);
		if (koine_value_int(koine_value_get(params, "seq"), &n))
			go_on_from(t, n);
	} else if (is_method(method, len, "event.gone") &&
		   koine_value_int(koine_value_get(params, "count"), &n)) {
		event_print_gone(t->cli, n);
	}
}

static int subscribe(struct tail *t, struct koine_answer **ret_answer)
{
	int64_t since = t->start.seq;
	int64_t last;
	int r = ask(t, "event.subscribe", 0, ret_answer);

	if (r != 0 ||
	    !koine_value_int(koine_value_get(koine_answer_result(*ret_answer), "last"), &last))
		return r;
	if (since > last)
		complain("the log has only %lld events; going on from there", (long long)last);
	/* Until something comes, that is where we are; unless a time has to be found first. */
	if (since > last || (since < 0 && !t->start.time[0]))
		go_on_from(t, last);
	return 0;
}

static bool may_come_back(int result, const struct koine_answer *a)
{
	if (result == KOINE_ERROR_ANSWER)
		return koine_answer_error_code(a) == STOPPING_CODE;
	return result < 0 && result != -ENOMEM && result != -EACCES && result != -EBADMSG;
}

static void pause_ms(unsigned ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

/* The connection is gone: tries until there is one again. 0 or an exit code. */
static int come_back(struct tail *t)
{
	unsigned ms = RETRY_MS;

	complain("koined has left; waiting for it");
	for (;;) {
		struct koine_answer *a = NULL;
		int r;

		pause_ms(ms);
		r = subscribe(t, &a);
		if (r != 0 && !may_come_back(r, a))
			return talk_failed(t->client, "event.subscribe", r, a);
		koine_answer_free(a);
		if (r == 0)
			break;
		ms = 2 * ms < RETRY_MAX_MS ? 2 * ms : RETRY_MAX_MS;
	}
	complain("koined is back");
	return 0;
}

static int follow(struct tail *t)
{
	struct koine_answer *a = NULL;
	int r;

	koine_client_on_notification(t->client, on_notification, t);
	r = subscribe(t, &a);
	if (r != 0)
		return talk_failed(t->client, "event.subscribe", r, a);
	koine_answer_free(a);
	for (;;) {
		if (fflush(stdout) != 0 || ferror(stdout))
			return EX_IOERR;
		if (koine_client_wait(t->client, -1) == 0)
			continue;
		fflush(stdout);
		r = come_back(t);
		if (r != 0)
			return r;
	}
}

/* ---- the command ---- */

static int check(const struct cli *cli)
{
	const struct event_options *o = &cli->options.events;

	if (cli->n_args > 0) {
		complain("events takes no arguments; for types: --type '%s'", cli->args[0]);
		return EX_USAGE;
	}
	if (!o->since && o->limit > PAGE_MAX) {
		complain("at most %d of the newest; with --since any number", PAGE_MAX);
		return EX_USAGE;
	}
	return 0;
}

static int64_t limit_of(const struct event_options *o)
{
	if (o->limit_given)
		return o->limit;
	if (o->since)
		return -1;
	return o->follow ? ROWS_BEFORE : ROWS;
}

int cmd_events(struct cli *cli)
{
	const struct event_options *o = &cli->options.events;
	struct tail t = {.cli = cli, .start = {.seq = -1}};
	int r = check(cli);

	if (r == 0 && o->since)
		(void)event_start_read(o->since, &t.start);
	if (r == 0)
		r = talk_dial(cli, NULL, NULL, &t.client);
	/* With a time to begin at, -f has all of it in one go. */
	if (r == 0 && !(o->follow && o->since))
		r = list(&t, limit_of(o));
	if (r == 0 && o->follow)
		r = follow(&t);
	koine_client_free(t.client);
	return r;
}
