/*
 * What is said in a session, as it comes.
 *
 * What the event log tells is taken as a sign that there is something new; what it is, is read
 * from the session itself, behind the last that was printed. So nothing is missed, and nothing
 * comes twice, whatever happens to the connection. A daemon that goes away is waited for.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/session/session.h"
#include "cli/task/task.h"

enum {
	PAGE = 500,
	APPROVALS_MAX = 32, /* that are remembered as shown */
	RESOLVED_MAX = 8,
	RETRY_MS = 100,
	RETRY_MAX_MS = 1000,
	STOPPING_CODE = -32008,
};

/* ---- Ctrl-C: it comes only while we wait ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

struct guard {
	struct sigaction action;
	sigset_t mask;
};

static void guard_begin(struct guard *g)
{
	struct sigaction ours = {.sa_handler = on_interrupt};
	sigset_t set;

	interrupted = 0;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, &g->mask);
	sigaction(SIGINT, &ours, &g->action);
}

static void guard_end(const struct guard *g)
{
	sigaction(SIGINT, &g->action, NULL);
	sigprocmask(SIG_SETMASK, &g->mask, NULL);
}

/* ---- reading ---- */

static struct koine_json *page_params(const struct cli *cli, const char *id, int64_t after)
{
	const struct session_options *o = &cli->options.session;
	struct koine_json *j = session_params();

	if (!j)
		return NULL;
	session_add_text(j, "id", id);
	koine_json_key(j, "after");
	koine_json_int(j, after);
	koine_json_key(j, "limit");
	koine_json_int(j, PAGE);
	koine_json_key(j, "raw");
	koine_json_bool(j, o->raw);
	koine_json_key(j, "chain");
	koine_json_bool(j, o->chain);
	return j;
}

/* As koine_client_call. */
static int print_page(const struct cli *cli, struct koine_client *c, const char *id, int64_t *last,
		      bool *ret_more, struct koine_answer **ret_failed)
{
	struct koine_json *j = page_params(cli, id, *last);
	struct koine_answer *a = NULL;
	const struct koine_value *e;
	int r = j ? session_ask(c, "session.events", j, &a) : -ENOMEM;

	if (r != 0) {
		*ret_failed = a;
		return r;
	}
	e = koine_value_first(koine_value_get(koine_answer_result(a), "events"));
	for (; e; e = koine_value_next(e))
		session_print_event(cli, e);
	koine_value_int(koine_value_get(koine_answer_result(a), "last"), last);
	koine_value_bool(koine_value_get(koine_answer_result(a), "more"), ret_more);
	koine_answer_free(a);
	return 0;
}

static int print_pages(const struct cli *cli, struct koine_client *c, const char *id, int64_t *last,
		       struct koine_answer **ret_failed)
{
	bool more = true;

	while (more) {
		int r;

		more = false;
		r = print_page(cli, c, id, last, &more, ret_failed);
		if (r != 0)
			return r;
	}
	fflush(stdout);
	return 0;
}

int session_print_events(const struct cli *cli, struct koine_client *c, const char *id,
			 int64_t *last)
{
	struct koine_answer *failed = NULL;
	int r = print_pages(cli, c, id, last, &failed);

	return r == 0 ? 0 : talk_failed(c, "session.events", r, failed);
}

/* ---- approvals ---- */

struct follow {
	struct cli *cli;
	struct koine_client *client;
	const char *id;
	int64_t last; /* event that was printed */
	bool said;    /* there is something new */
	bool moved;   /* its status may have changed */
	bool ended;
	int status; /* how we shall exit */
	/* The last of them, so that none is shown twice. */
	char shown[APPROVALS_MAX][SESSION_ID_MAX];
	unsigned n_shown;
	/* What was decided, to be told behind what was said before. */
	struct koine_doc *resolved[RESOLVED_MAX];
	unsigned n_resolved;
};

static bool was_shown(const struct follow *f, const char *id)
{
	unsigned n = f->n_shown < APPROVALS_MAX ? f->n_shown : APPROVALS_MAX;

	for (unsigned i = 0; i < n; i++) {
		if (strcmp(f->shown[i], id) == 0)
			return true;
	}
	return false;
}

static void show_pending(struct follow *f, const struct koine_value *approval)
{
	char id[SESSION_ID_MAX];

	session_member(approval, "id", id, sizeof(id));
	if (was_shown(f, id))
		return;
	snprintf(f->shown[f->n_shown++ % APPROVALS_MAX], SESSION_ID_MAX, "%s", id);
	session_print_pending(f->cli, approval);
}

/* As koine_client_call. */
static int ask_approvals(const struct follow *f, struct koine_answer **ret_answer)
{
	struct koine_json *j = session_params();

	if (!j)
		return -ENOMEM;
	session_add_text(j, "session_id", f->id);
	return session_ask(f->client, "approval.list", j, ret_answer);
}

static void show_approvals(struct follow *f, const struct koine_answer *a)
{
	const struct koine_value *v =
		koine_value_first(koine_value_get(koine_answer_result(a), "approvals"));

	for (; v; v = koine_value_next(v))
		show_pending(f, v);
}

int session_print_approvals(const struct cli *cli, struct koine_client *c, const char *id)
{
	struct follow f = {.cli = (struct cli *)cli, .client = c, .id = id};
	struct koine_answer *a = NULL;
	int r = ask_approvals(&f, &a);

	if (r != 0)
		return talk_failed(c, "approval.list", r, a);
	show_approvals(&f, a);
	koine_answer_free(a);
	return 0;
}

/* ---- signs ---- */

/* What was decided before it was shown as waiting is told, too: behind the call that it is about,
 * if that is still to be printed. */
static void on_resolved(struct follow *f, const struct koine_value *data, bool all_printed)
{
	char id[SESSION_ID_MAX];
	size_t len;
	const char *raw = koine_value_raw(data, &len);

	session_member(data, "approval_id", id, sizeof(id));
	if (!all_printed && !was_shown(f, id) && f->n_resolved < RESOLVED_MAX &&
	    koine_doc_parse(raw, len, &f->resolved[f->n_resolved], NULL, 0) == 0)
		f->n_resolved++;
	else
		session_print_resolved(f->cli, data);
	fflush(stdout);
}

static void print_resolved(struct follow *f)
{
	for (unsigned i = 0; i < f->n_resolved; i++) {
		session_print_resolved(f->cli, koine_doc_root(f->resolved[i]));
		koine_doc_free(f->resolved[i]);
	}
	f->n_resolved = 0;
}

static void on_notification(void *arg, const char *method, size_t len,
			    const struct koine_value *whole)
{
	const struct koine_value *params = koine_value_get(whole, "params");
	const struct koine_value *type = koine_value_get(params, "type");
	struct follow *f = arg;
	bool all_printed = !f->said;

	f->said = true;
	/* What is asked is shown behind the call that it is about. */
	if (value_is(type, "session.status") || value_is(type, "approval.requested"))
		f->moved = true;
	else if (value_is(type, "approval.resolved"))
		on_resolved(f, koine_value_get(params, "data"), all_printed);
}

static int subscribe(struct follow *f, struct koine_answer **ret_failed)
{
	static const char *const types[] = {"session.*", "approval.*"};
	struct koine_json *j = session_params();
	struct koine_answer *a = NULL;
	int r;

	if (!j)
		return -ENOMEM;
	session_add_text(j, "session_id", f->id);
	koine_json_key(j, "types");
	koine_json_begin_array(j);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		koine_json_string(j, types[i]);
	koine_json_end_array(j);
	r = session_ask(f->client, "event.subscribe", j, &a);
	if (r != 0)
		*ret_failed = a;
	else
		koine_answer_free(a);
	f->said = f->moved = true;
	return r;
}

/* ---- how it stands ---- */

static void end_with(struct follow *f, const struct koine_value *session)
{
	const struct koine_value *status = koine_value_get(session, "status");
	size_t len = 0;
	const char *error = koine_value_text(koine_value_get(session, "error"), &len);

	f->ended = true;
	if (f->cli->options.json)
		print_json_compact(stdout, session);
	fflush(stdout);
	if (value_is(status, "completed"))
		return;
	f->status = value_is(status, "interrupted") ? EXIT_SESSION_INTERRUPTED : EXIT_ERROR_ANSWER;
	if (f->cli->options.json)
		return;
	fputs(value_is(status, "interrupted") ? "koine: the session was interrupted"
					      : "koine: the session failed",
	      stderr);
	while (error && len > 0 && error[len - 1] == '\n')
		len--;
	if (error && len > 0) {
		fputs(": ", stderr);
		talk_print_why(error, len);
	}
	fputc('\n', stderr);
}

static bool is_over(const struct koine_value *session)
{
	const struct koine_value *status = koine_value_get(session, "status");

	return value_is(status, "completed") || value_is(status, "failed") ||
	       value_is(status, "interrupted");
}

/* As koine_client_call. */
static int ask_session(const struct follow *f, struct koine_answer **ret_answer)
{
	struct koine_json *j = session_params();

	if (!j)
		return -ENOMEM;
	session_add_text(j, "id", f->id);
	return session_ask(f->client, "session.get", j, ret_answer);
}

/* The status first: an end that is seen has everything said before. Then what waits, which is shown
 * behind all that was said before it was asked. As koine_client_call. */
static int look(struct follow *f, struct koine_answer **ret_failed)
{
	CLEANUP(answer_freep) struct koine_answer *session = NULL;
	CLEANUP(answer_freep) struct koine_answer *approvals = NULL;
	bool moved = f->moved;
	bool over = false;
	int r = 0;

	f->said = f->moved = false;
	if (moved)
		r = ask_session(f, &session);
	if (r == 0 && moved) {
		over = is_over(koine_answer_result(session));
		r = over ? 0 : ask_approvals(f, &approvals);
	}
	if (r != 0)
		*ret_failed = approvals ? TAKE(approvals) : TAKE(session);
	else
		r = print_pages(f->cli, f->client, f->id, &f->last, ret_failed);
	print_resolved(f);
	if (r == 0 && over)
		end_with(f, koine_answer_result(session));
	else if (r == 0 && approvals)
		show_approvals(f, approvals);
	fflush(stdout);
	return r;
}

/* ---- waiting ---- */

/* Until there is a sign, or Ctrl-C. What ended the connection, or 0. */
static int wait_for_sign(struct follow *f, const struct guard *g)
{
	while (!f->said && !interrupted) {
		struct pollfd p = {.fd = koine_client_fd(f->client),
				   .events = koine_client_events(f->client)};
		int r;

		(void)ppoll(&p, 1, NULL, &g->mask);
		r = interrupted ? 0 : koine_client_step(f->client);
		if (r != 0)
			return r;
	}
	return 0;
}

static bool may_come_back(int result, const struct koine_answer *a)
{
	if (result == KOINE_ERROR_ANSWER)
		return koine_answer_error_code(a) == STOPPING_CODE;
	return result < 0 && result != -ENOMEM && result != -EACCES && result != -EBADMSG &&
	       result != -EMSGSIZE;
}

/* Tries until there is a connection again, or Ctrl-C. 0 or an exit code. */
static int come_back(struct follow *f, const struct guard *g)
{
	unsigned ms = RETRY_MS;

	complain("koined has left; waiting for it");
	while (!interrupted) {
		const struct timespec limit = {.tv_sec = ms / 1000,
					       .tv_nsec = ms % 1000 * 1000000L};
		struct koine_answer *failed = NULL;
		int r;

		(void)ppoll(NULL, 0, &limit, &g->mask);
		if (interrupted)
			break;
		r = subscribe(f, &failed);
		if (r == 0) {
			complain("koined is back");
			return 0;
		}
		if (!may_come_back(r, failed))
			return talk_failed(f->client, "event.subscribe", r, failed);
		koine_answer_free(failed);
		ms = 2 * ms < RETRY_MAX_MS ? 2 * ms : RETRY_MAX_MS;
	}
	return 0;
}

/* One turn: what is new, then wait. 0 or an exit code. */
static int turn(struct follow *f, const struct guard *g)
{
	struct koine_answer *failed = NULL;
	int r = look(f, &failed);

	if (r == 0 && ferror(stdout))
		return EX_IOERR;
	if (r == 0 && !f->ended)
		r = wait_for_sign(f, g);
	if (r == 0)
		return 0;
	if (!may_come_back(r, failed))
		return talk_failed(f->client, "session.events", r, failed);
	koine_answer_free(failed);
	return come_back(f, g);
}

static void say_left(const struct follow *f)
{
	fprintf(stderr,
		"koine: left; the session goes on\n"
		"  to see it:  koine session log -f %.*s\n"
		"  to end it:  koine session interrupt %.*s\n",
		SESSION_ID_SHOWN, f->id, SESSION_ID_SHOWN, f->id);
}

int session_follow(struct cli *cli, struct koine_client *c, const char *id, int *ret_status)
{
	struct follow f = {.cli = cli, .client = c, .id = id};
	struct koine_answer *failed = NULL;
	struct guard g;
	int r;

	koine_client_on_notification(c, on_notification, &f);
	r = subscribe(&f, &failed);
	if (r != 0)
		r = talk_failed(c, "event.subscribe", r, failed);
	guard_begin(&g);
	while (r == 0 && !f.ended && !interrupted)
		r = turn(&f, &g);
	guard_end(&g);
	koine_client_on_notification(c, NULL, NULL);
	print_resolved(&f);
	if (r == 0 && !f.ended) {
		say_left(&f);
		return EXIT_SESSION_INTERRUPTED;
	}
	*ret_status = f.status;
	return r;
}
