/* One question to an agent: asked, shown while it is answered, cancelled by Ctrl-C. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "cli/chat/chat.h"
#include "cli/kit/call.h"
#include "cli/kit/follow.h"
#include "cli/kit/talk.h"

static const struct chat_options *options_of(const struct cli_turn *t)
{
	return t->cli->own;
}

int turn_begin(struct cli_turn *t, struct cli *cli)
{
	*t = (struct cli_turn) {.cli = cli};
	t->conversation = options_of(t)->conversation;
	t->agent = options_of(t)->agent;
	talk_be_patient(cli);
	return talk_connect(cli);
}

void turn_end(struct cli_turn *t)
{
	talk_hang_up(t->cli);
}

/* ---- what is shown ---- */

static void chat_turn_show(struct cli_turn *t, struct text text)
{
	if (text.len == 0)
		return;
	print_text(stdout, text);
	fflush(stdout);
	t->shown += text.len;
	t->mid_line = text.data[text.len - 1] != '\n';
}

static void end_line(struct cli_turn *t)
{
	if (t->mid_line)
		fputc('\n', stdout);
	fflush(stdout);
	t->mid_line = false;
}

/* A piece that does not follow what was shown is skipped: the answer contains it, too. */
static void on_notification(void *arg, const char *method, size_t method_len,
			    const struct koine_value *whole)
{
	const struct koine_value *params = koine_value_get(whole, "params");
	struct cli_turn *t = arg;
	int64_t offset;

	if (!text_is((struct text) {.data = method, .len = method_len}, "chat.text") || t->is_done)
		return;
	if (member_is(params, "request_id", t->request_id) &&
	    koine_value_int(koine_value_get(params, "offset"), &offset) &&
	    (uint64_t)offset == t->shown)
		chat_turn_show(t, member_text(params, "text"));
}

/* How it ended, for people; this is not part of the answer. */
static void show_stop(const struct cli_turn *t, const struct koine_value *result)
{
	if (t->cancelled)
		fputs("(cancelled)\n", stderr);
	else if (member_is(result, "stop", "length"))
		fputs("(truncated: the agent reached its length limit)\n", stderr);
	else if (member_first(result, "tool_calls"))
		fputs("(the agent requested tools, but koine chat provides none)\n", stderr);
}

static void show_result(struct cli_turn *t, const struct koine_value *result)
{
	struct text content = member_text(result, "content");

	koine_value_bool(koine_value_get(result, "cancelled"), &t->cancelled);
	if (print_if_json(t->cli, result)) {
		fflush(stdout);
		return;
	}
	if (content.len > t->shown)
		chat_turn_show(t, text_skip(content, t->shown));
	end_line(t);
	show_stop(t, result);
}

void turn_tell_plain(const struct cli_turn *t)
{
	const char *address = t->cli->address;
	const char *host = address + strlen("http:");

	if (strncmp(address, "http:", 5) != 0) {
		complain("this server has only one conversation");
		return;
	}
	host += strspn(host, "/");
	complain("this server has one conversation per URL; for another conversation, use "
		 "--url http://%.*s/agent/NAME",
		 (int)strcspn(host, "/"), host);
}

/* The server's `send` will do, unless a conversation or an agent was chosen. Such a choice made
 * at the prompt is dropped, or all further questions would fail. */
static void meet_plain(struct cli_turn *t)
{
	t->plain = true;
	t->unknown_method = !t->conversation && !t->agent;
	if (t->unknown_method)
		return;
	if (t->conversation)
		turn_tell_plain(t);
	else
		complain("this server does not support --agent");
	t->conversation = options_of(t)->conversation;
	t->agent = options_of(t)->agent;
}

static void chat_turn_on_answer(void *arg, int result, const struct koine_answer *a)
{
	struct cli_turn *t = arg;

	t->is_done = true;
	t->result = result;
	if (result == 0) {
		show_result(t, koine_answer_result(a));
		return;
	}
	end_line(t);
	if (result != KOINE_ERROR_ANSWER)
		return;
	if (koine_answer_error_code(a) == CODE_METHOD_NOT_FOUND &&
	    strcmp(t->method, "chat.stream") == 0)
		meet_plain(t);
	else if (!chat_tell_missing(a, t->conversation))
		talk_print_error(t->method, a);
}

/* ---- what is sent ---- */

static int chat_turn_submit(struct cli_turn *t)
{
	const struct chat_options *o = options_of(t);
	struct koine_json *j = params_new();

	params_add_text(j, "content", t->content);
	params_add(j, "request_id", t->request_id);
	params_add(j, "conversation", t->conversation);
	params_add(j, "agent", t->agent);
	params_add(j, "user_id", o->user);
	params_add(j, "chat_id", o->chat);
	return call_async(t->cli->client, t->method, j, chat_turn_on_answer, t, &t->call);
}

/* This connection answers in order, so the cancel uses another one. */
static void cancel_elsewhere(const struct cli_turn *t)
{
	CLEANUP(json_freep) struct koine_json *j = params_new();
	CLEANUP(client_freep) struct koine_client *c = NULL;
	const char *params;

	params_add(j, "request_id", t->request_id);
	params_add(j, "agent_id", t->conversation);
	params = params_end(j);
	if (params && talk_dial(t->cli, NULL, NULL, &c) == 0)
		(void)koine_client_call(c, "cancel", params, NULL);
}

static void cancel(void *arg)
{
	const struct cli_turn *t = arg;
	char params[64];

	if (talk_is_http(t->cli)) {
		cancel_elsewhere(t);
		return;
	}
	snprintf(params, sizeof(params), "{\"id\":%lld}", (long long)t->call);
	(void)koine_client_notify(t->cli->client, "rpc.cancel", params);
}

/* ---- a turn ---- */

/* Nobody would read the rest of it. */
static int late(struct cli_turn *t)
{
	int r = EX_TEMPFAIL;

	if (t->shown > 0)
		complain("timed out after %g s; request cancelled",
			 t->cli->options.timeout_ms / 1000.0);
	else
		r = talk_failed(t->cli->client, t->method, t->result, NULL);
	cancel(t);
	return r;
}

static int chat_turn_ask(struct cli_turn *t, const char *method)
{
	int r;

	t->method = method;
	t->shown = 0;
	t->is_done = t->cancelled = t->mid_line = t->unknown_method = false;
	r = chat_turn_submit(t);
	if (r == -ENOMEM)
		return out_of_memory();
	if (r != 0)
		return talk_failed(t->cli->client, method, r, NULL);
	if (!follow_answer(t->cli->client, &t->is_done, cancel, t)) {
		t->left = true;
		end_line(t);
		fputs("(you quit; the response continues in the background)\n", stderr);
		return EXIT_INTERRUPTED;
	}
	if (t->result == KOINE_ERROR_ANSWER)
		return EXIT_ERROR_ANSWER;
	if (t->result == -ETIMEDOUT)
		return late(t);
	if (t->result != 0)
		return talk_failed(t->cli->client, method, t->result, NULL);
	return t->cancelled ? EXIT_INTERRUPTED : 0;
}

static void make_request_id(struct cli_turn *t)
{
	unsigned char random[8] = {0};
	const char *given = options_of(t)->request_id;

	if (given) {
		snprintf(t->request_id, sizeof(t->request_id), "%s", given);
		return;
	}
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		memcpy(random, &(long) {time(NULL)}, sizeof(long));
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(t->request_id + 2 * i, 3, "%02x", random[i]);
}

/* Finds a byte that is not UTF-8; text.len when there is none. */
static size_t find_bad_byte(struct text text)
{
	const char *end = text.data + text.len;
	size_t i = 0;
	size_t n = 1;

	for (; i < text.len && n > 0; i += n)
		n = (unsigned char)text.data[i] < 0x80 ? 1 : utf8_sequence(text.data + i, end);
	return i;
}

int turn_ask(struct cli_turn *t, struct text content)
{
	size_t bad = find_bad_byte(content);
	bool streams = !t->cli->options.json && !options_of(t)->no_stream;
	int r;

	if (bad < content.len)
		return fail_with(EX_DATAERR, "the text is not UTF-8: byte %zu is 0x%02x", bad + 1,
				 (unsigned char)content.data[bad]);
	t->content = content;
	make_request_id(t);
	koine_client_on_notification(t->cli->client, streams ? on_notification : NULL, t);
	r = chat_turn_ask(t, "chat.stream");
	/* For a server that has no chat.stream. */
	if (t->unknown_method)
		r = chat_turn_ask(t, "send");
	return r;
}
