#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/child/child.h"
#include "cli/connect/plan.h"
#include "cli/daemon/daemon.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"

/* ---- where koined itself takes hooks ---- */

/* "127.0.0.1:8766"; {NULL, 0}: no port. One that a service manager has handed over is a "tcp:". */
static struct text port_of(const struct koine_value *listener)
{
	struct text address = member_string(listener, "address");

	if (text_begins(address, TEXT("http:")))
		return text_skip(address, strlen("http:"));
	if (text_begins(address, TEXT("tcp:")) && member_flag(listener, "handed_over"))
		return text_skip(address, strlen("tcp:"));
	return (struct text) {0};
}

/* NULL: none that speaks MCP over HTTP. */
static const struct koine_value *find_listener(const struct koine_value *status)
{
	const struct koine_value *l = member_first(status, "listeners");

	while (l && !(member_is(l, "dialect", "mcp") && port_of(l).data))
		l = koine_value_next(l);
	return l;
}

/* The file must be private, so only its owner gets this far. */
static int read_token(const struct koine_value *listener, struct door *ret, struct error *error)
{
	char file[PATH_MAX];

	member_copy(listener, "token_file", file, sizeof(file));
	ret->token[0] = '\0';
	return file[0] ? file_read_secret(file, "token", ret->token, sizeof(ret->token), error) : 0;
}

static int read_door(const struct koine_value *status, struct door *ret, struct error *error)
{
	const struct koine_value *l = find_listener(status);
	struct text address = port_of(l);

	if (!l)
		return refuse(
			error, REFUSE_UNAVAILABLE,
			"koined does not listen on a port for MCP: set mcp = on in [listen] and "
			"restart koined");
	ret->held = member_flag(l, "handed_over");
	snprintf(ret->url, sizeof(ret->url), "http://%.*s/hook", (int)text_cut(address, 120).len,
		 address.data);
	return read_token(l, ret, error);
}

static int connect_words_ask(struct cli *cli, struct door *ret, struct error *error)
{
	CLEANUP(client_freep) struct koine_client *c = NULL;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char reason[TALK_ERROR] = "";

	if (talk_try(cli, &c, reason) != 0)
		return refuse(error, REFUSE_UNAVAILABLE, "%.190s", reason);
	if (koine_client_call(c, "daemon.status", NULL, &a) != 0)
		return refuse(error, REFUSE_UNAVAILABLE, "koined does not report its addresses");
	return read_door(koine_answer_result(a), ret, error);
}

int door_find(struct cli *cli, bool quiet, struct door *ret)
{
	struct error error = {0};
	int r = connect_words_ask(cli, ret, &error);

	if (r != 0 && !quiet)
		complain("%s", r < 0 ? strerror(-r) : error.text);
	return r != 0 ? EX_UNAVAILABLE : 0;
}

/* ---- words ---- */

/* ---- finding them ---- */

/* A hook's line goes through a shell; between single quotes everything but these is plain. */
static int check_path(const char *what, const char *path)
{
	for (const char *c = path; *c; c++) {
		if (*c != '\'' && (unsigned char)*c >= ' ' && *c != 127)
			continue;
		return fail_with(
			EX_USAGE,
			"the path of %s contains a quote or a control character, which cannot be "
			"written into agents' settings",
			what);
	}
	return 0;
}

static int find_program(char path[PATH_MAX])
{
	if (!program_of(0, path))
		return fail_with(EX_OSERR, "cannot find the path of koine: /proc is not mounted");
	if (!text_is(text_base_name(text_of(path)), "koine"))
		return fail_with(EX_USAGE, "the program must be named koine, not %s", path);
	return check_path("koine", path);
}

static int find_socket(const struct cli *cli, char path[PATH_MAX])
{
	const char *given = cli->address + strlen("unix:");
	char folder[PATH_MAX] = "";

	if (strncmp(cli->address, "unix:", 5) != 0)
		return fail_with(EX_USAGE,
				 "agents connect to koined's Unix socket, but the address is %s; "
				 "use --socket "
				 "PATH",
				 cli->address);
	if (given[0] != '/' && !getcwd(folder, sizeof(folder)))
		return fail_with(EX_NOINPUT, "cannot determine the absolute path of %s", given);
	if (strlen(folder) + strlen(given) + 2 > PATH_MAX)
		return fail_with(EX_USAGE, "the path of the socket is longer than %d bytes: %s",
				 PATH_MAX - 1, given);
	stpcpy(stpcpy(stpcpy(path, folder), folder[0] ? "/" : ""), given);
	return check_path("the socket", path);
}

int words_find(const struct cli *cli, const struct connect_agent *agent, bool is_shared,
	       struct connect_words *w)
{
	bool asked = cli->options.socket || cli->options.url;
	bool known = asked || option_from_environment("KOINE_SOCKET") || agent->cuts_environment;
	int r = find_program(w->program);

	w->socket[0] = '\0';
	w->door = NULL;
	w->starts = false;
	if (r == 0 && (is_shared ? asked : known))
		r = find_socket(cli, w->socket);
	if (is_shared)
		strcpy(w->program, "koine");
	return r;
}

bool words_need_start(const struct cli *cli)
{
	struct cli own = *cli;
	struct service s;

	if (!option_means_own_daemon(cli))
		return false;
	own.options.socket = NULL;
	service_look(&own, &s);
	return !s.active && !s.listens && !s.enabled;
}

/* ---- filling them in ---- */

static bool is_plain_word(const char *word)
{
	for (const char *c = word; *c; c++) {
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./"
			    "+-@:,",
			    *c))
			return false;
	}
	return true;
}

static void add_shell_word(struct buf *b, const char *word)
{
	const char *quote = is_plain_word(word) ? "" : "'";

	buf_printf(b, "%s%s%s", quote, word, quote);
}

static void add_hook(const struct connect_words *w, int wait_seconds, struct koine_json *j)
{
	CLEANUP(buf_donep) struct buf line;

	buf_init(&line, 3 * PATH_MAX);
	add_shell_word(&line, w->program);
	buf_printf(&line, " hook --timeout %d", wait_seconds);
	if (w->socket[0]) {
		buf_add_str(&line, " --socket ");
		add_shell_word(&line, w->socket);
	}
	koine_json_text_n(j, line.data, line.len);
}

/* A header that names a variable is empty where there is none. Koine-Timeout tells others, too, whose
 * hook it is. */
static void add_headers(const struct connect_words *w, int wait_seconds, struct koine_json *j)
{
	char bearer[sizeof(w->door->token) + 16];
	char seconds[16];

	snprintf(bearer, sizeof(bearer), "Bearer %s", w->door->token);
	snprintf(seconds, sizeof(seconds), "%d", wait_seconds);
	koine_json_begin_object(j);
	if (w->door->token[0])
		params_add(j, "Authorization", bearer);
	params_add(j, "Koine-Timeout", seconds);
	params_add(j, "Koine-Session", "$KOINE_SESSION_ID");
	params_add(j, "Koine-Run", "$KOINE_RUN_ID");
	koine_json_end_object(j);
}

static void add_arguments(const struct connect_words *w, bool with_program, struct koine_json *j)
{
	koine_json_begin_array(j);
	if (with_program)
		koine_json_string(j, w->program);
	koine_json_string(j, "mcp");
	if (w->starts)
		koine_json_string(j, "--start");
	if (w->socket[0]) {
		koine_json_string(j, "--socket");
		koine_json_string(j, w->socket);
	}
	koine_json_end_array(j);
}

static void add_word(const struct connect_words *w, const struct connect_agent *agent, char which,
		     struct buf *out)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	const char *text;
	size_t len = 0;

	if (koine_json_new(&j) != 0) {
		out->err = -ENOMEM;
		return;
	}
	switch (which) {
	case 'c':
		koine_json_string(j, w->program);
		break;
	case 'h':
		add_hook(w, HOOK_WAIT_SECONDS, j);
		break;
	case 't':
		koine_json_int(j, (int64_t)HOOK_SECONDS * agent->ticks);
		break;
	case 'n':
		add_hook(w, TOLD_WAIT_SECONDS, j);
		break;
	case 's':
		koine_json_int(j, (int64_t)TOLD_SECONDS * agent->ticks);
		break;
	case 'u':
		koine_json_string(j, w->door->url);
		break;
	case 'w':
		add_headers(w, HOOK_WAIT_SECONDS, j);
		break;
	case 'x':
		add_headers(w, TOLD_WAIT_SECONDS, j);
		break;
	default:
		add_arguments(w, which == 'l', j);
	}
	text = koine_json_text(j, &len);
	buf_add(out, text, len);
}

char *words_fill(const struct connect_words *w, const struct connect_agent *agent,
		 const char *value)
{
	struct buf out;

	buf_init(&out, 8 * PATH_MAX);
	for (const char *c = value; *c; c++) {
		if (*c == '%')
			add_word(w, agent, *++c, &out);
		else
			buf_add_char(&out, *c);
	}
	buf_add_char(&out, '\0');
	if (out.err == 0)
		return out.data;
	buf_done(&out);
	return NULL;
}
