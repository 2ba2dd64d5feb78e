/* One question to an agent: asked, shown while it is answered, cancelled by Ctrl-C. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "cli/chat/chat.h"

static void json_freep(struct koine_json **j)
{
	koine_json_free(*j);
}

/* An agent may think for as long as it likes; 49 days are no limit. */
int turn_dial(struct turn *t, struct cli *cli)
{
	*t = (struct turn) {
		.cli = cli,
		.conversation = cli->options.chat.conversation,
		.agent = cli->options.chat.agent,
	};
	if (cli->options.timeout_ms == 0)
		cli->options.timeout_ms = UINT32_MAX;
	return talk_dial(cli, NULL, NULL, &t->client);
}

void turn_done(struct turn *t)
{
	koine_client_free(t->client);
}

/* ---- what is shown ---- */

static void show(struct turn *t, const char *text, size_t len)
{
	if (len == 0)
		return;
	print_text(stdout, text, len);
	fflush(stdout);
	t->shown += len;
	t->mid_line = text[len - 1] != '\n';
}

static void end_line(struct turn *t)
{
	if (t->mid_line)
		fputc('\n', stdout);
	fflush(stdout);
	t->mid_line = false;
}

static bool is_ours(const struct turn *t, const struct koine_value *params)
{
	size_t len;
	const char *id = koine_value_text(koine_value_get(params, "request_id"), &len);

	return id && len == strlen(t->request_id) && memcmp(id, t->request_id, len) == 0;
}

/* Whatever does not follow what was shown stands in the answer too. */
static void on_notification(void *arg, const char *method, size_t method_len,
			    const struct koine_value *whole)
{
	const struct koine_value *params = koine_value_get(whole, "params");
	struct turn *t = arg;
	const char *text;
	int64_t offset;
	size_t len;

	if (method_len != 9 || memcmp(method, "chat.text", 9) != 0 || t->is_done)
		return;
	text = koine_value_text(koine_value_get(params, "text"), &len);
	if (text && is_ours(t, params) &&
	    koine_value_int(koine_value_get(params, "offset"), &offset) &&
	    (uint64_t)offset == t->shown)
		show(t, text, len);
}

/* What people should know of its end; not part of the answer. */
static void show_stop(const struct turn *t, const struct koine_value *result)
{
	size_t len;
	const char *stop = koine_value_text(koine_value_get(result, "stop"), &len);

	if (t->cancelled)
		fputs("(cancelled)\n", stderr);
	else if (stop && len == 6 && memcmp(stop, "length", 6) == 0)
		fputs("(cut: the agent ran into its limit of length)\n", stderr);
	else if (koine_value_first(koine_value_get(result, "tool_calls")))
		fputs("(the agent wants tools, which there are none of here)\n", stderr);
}

static void show_result(struct turn *t, const struct koine_value *result)
{
	size_t len = 0;
	const char *content = koine_value_text(koine_value_get(result, "content"), &len);

	koine_value_bool(koine_value_get(result, "cancelled"), &t->cancelled);
	if (t->cli->options.json) {
		print_json_compact(stdout, result);
		fflush(stdout);
		return;
	}
	if (content && len > t->shown)
		show(t, content + t->shown, len - t->shown);
	end_line(t);
	show_stop(t, result);
}

void turn_tell_plain(const struct turn *t)
{
	const char *address = t->cli->address;
	const char *host = address + strlen("http:");

	if (strncmp(address, "http:", 5) != 0) {
		complain("this server has one conversation");
		return;
	}
	host += strspn(host, "/");
	complain("this server has one conversation at each address; others that exist are at "
		 "--url http://%.*s/agent/NAME",
		 (int)strcspn(host, "/"), host);
}

/* Where nothing else was wanted, its `send` will do. What was typed at the prompt is
 * forgotten, or it would be in the way of all that is asked from here on. */
static void meet_plain(struct turn *t)
{
	t->plain = true;
	t->unknown_method = !t->conversation && !t->agent;
	if (t->unknown_method)
		return;
	if (t->conversation)
		turn_tell_plain(t);
	else
		complain("this server does not let you choose who answers");
	t->conversation = t->cli->options.chat.conversation;
	t->agent = t->cli->options.chat.agent;
}

static void on_answer(void *arg, int result, const struct koine_answer *a)
{
	struct turn *t = arg;

	t->is_done = true;
	t->result = result;
	if (result == 0) {
		show_result(t, koine_answer_result(a));
		return;
	}
	end_line(t);
	if (result != KOINE_ERROR_ANSWER)
		return;
	if (koine_answer_error_code(a) == METHOD_NOT_FOUND && strcmp(t->method, "chat.stream") == 0)
		meet_plain(t);
	else if (!look_tell_missing(a, t->conversation))
		talk_print_error(t->method, a);
}

/* ---- what is sent ---- */

static void add_text(struct koine_json *j, const char *key, const char *text)
{
	if (!text)
		return;
	koine_json_key(j, key);
	koine_json_string(j, text);
}

static void write_params(const struct turn *t, struct koine_json *j)
{
	koine_json_begin_object(j);
	koine_json_key(j, "content");
	koine_json_text_n(j, t->content.data, t->content.len);
	add_text(j, "request_id", t->request_id);
	add_text(j, "conversation", t->conversation);
	add_text(j, "agent", t->agent);
	add_text(j, "user_id", t->cli->options.memory.user);
	add_text(j, "chat_id", t->cli->options.memory.chat);
	koine_json_end_object(j);
}

static int submit(struct turn *t)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	const char *params;

	if (koine_json_new(&j) != 0)
		return -ENOMEM;
	write_params(t, j);
	params = koine_json_text(j, NULL);
	if (!params)
		return -ENOMEM;
	return koine_client_call_async(t->client, t->method, params, on_answer, t, &t->call);
}

/* On a connection that answers in order, a cancel goes by another one. */
static void cancel_elsewhere(const struct turn *t)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	struct koine_client *c = NULL;
	const char *params;

	if (koine_json_new(&j) != 0)
		return;
	koine_json_begin_object(j);
	add_text(j, "request_id", t->request_id);
	add_text(j, "agent_id", t->conversation);
	koine_json_end_object(j);
	params = koine_json_text(j, NULL);
	if (params && talk_dial(t->cli, NULL, NULL, &c) == 0)
		(void)koine_client_call(c, "cancel", params, NULL);
	koine_client_free(c);
}

static void cancel(const struct turn *t)
{
	char params[64];

	if (talk_is_http(t->cli)) {
		cancel_elsewhere(t);
		return;
	}
	snprintf(params, sizeof(params), "{\"id\":%lld}", (long long)t->call);
	(void)koine_client_notify(t->client, "rpc.cancel", params);
}

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupts;

static void on_interrupt(int number)
{
	(void)number;
	interrupts++;
}

/* How SIGINT was before; it comes only while we poll. */
struct guard {
	struct sigaction action;
	sigset_t mask;
};

static void guard_begin(struct guard *g)
{
	struct sigaction ours = {.sa_handler = on_interrupt};
	sigset_t set;

	interrupts = 0;
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

static void wait_a_moment(const struct turn *t, const struct guard *g)
{
	struct pollfd p = {.fd = koine_client_fd(t->client),
			   .events = koine_client_events(t->client)};
	int ms = koine_client_timeout_ms(t->client);
	struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	/* Interrupted or not, a step finds out for itself. */
	(void)ppoll(&p, 1, ms < 0 ? NULL : &limit, &g->mask);
}

/* False when the user would not wait for the answer any more. */
static bool wait_for_answer(struct turn *t)
{
	struct guard g;
	int seen = 0;

	guard_begin(&g);
	while (!t->is_done && seen < 2) {
		wait_a_moment(t, &g);
		if (interrupts > seen && ++seen == 1)
			cancel(t);
		else if (seen < 2)
			(void)koine_client_step(t->client);
	}
	guard_end(&g);
	return t->is_done;
}

/* ---- a turn ---- */

/* Nobody would hear the rest of it. */
static int late(struct turn *t)
{
	int r = EX_TEMPFAIL;

	if (t->shown > 0)
		complain("the answer did not end within %g s; it is cancelled",
			 t->cli->options.timeout_ms / 1000.0);
	else
		r = talk_failed(t->client, t->method, t->result, NULL);
	cancel(t);
	return r;
}

static int ask(struct turn *t, const char *method)
{
	int r;

	t->method = method;
	t->shown = 0;
	t->is_done = t->cancelled = t->mid_line = t->unknown_method = false;
	r = submit(t);
	if (r == -ENOMEM)
		complain("out of memory");
	if (r == -ENOMEM)
		return EX_SOFTWARE;
	if (r != 0)
		return talk_failed(t->client, method, r, NULL);
	if (!wait_for_answer(t)) {
		t->left = true;
		end_line(t);
		fputs("(left; the answer goes on without us)\n", stderr);
		return EXIT_CANCELLED;
	}
	if (t->result == KOINE_ERROR_ANSWER)
		return EXIT_ERROR_ANSWER;
	if (t->result == -ETIMEDOUT)
		return late(t);
	if (t->result != 0)
		return talk_failed(t->client, method, t->result, NULL);
	return t->cancelled ? EXIT_CANCELLED : 0;
}

static void make_request_id(struct turn *t)
{
	unsigned char random[8] = {0};
	const char *given = t->cli->options.chat.request_id;

	if (given) {
		snprintf(t->request_id, sizeof(t->request_id), "%s", given);
		return;
	}
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		memcpy(random, &(long) {time(NULL)}, sizeof(long));
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(t->request_id + 2 * i, 3, "%02x", random[i]);
}

/* Where a byte is that is no UTF-8; text.len when there is none. */
static size_t find_bad_byte(struct text text)
{
	const char *end = text.data + text.len;
	size_t i = 0;
	size_t n = 1;

	for (; i < text.len && n > 0; i += n)
		n = (unsigned char)text.data[i] < 0x80 ? 1 : utf8_sequence(text.data + i, end);
	return i;
}

int turn_ask(struct turn *t, struct text content)
{
	size_t bad = find_bad_byte(content);
	bool streams = !t->cli->options.json && !t->cli->options.chat.no_stream;
	int r;

	if (bad < content.len) {
		complain("the text is not UTF-8: byte %zu of it is 0x%02x", bad + 1,
			 (unsigned char)content.data[bad]);
		return EX_DATAERR;
	}
	t->content = content;
	make_request_id(t);
	koine_client_on_notification(t->client, streams ? on_notification : NULL, t);
	r = ask(t, "chat.stream");
	/* A server of the dialect that has no streams. */
	if (t->unknown_method)
		r = ask(t, "send");
	return r;
}
