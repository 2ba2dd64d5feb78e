/*
 * koine mcp: the MCP server that agents start. It is a pipe between an MCP client, on our standard
 * input and output, and koined's socket. It changes no message, and knows just enough of them to
 * outlive the daemon:
 *
 * - what a client has asked and nobody has answered, so that it is told when the daemon is gone;
 * - the `initialize` of a legacy client, which it repeats when the daemon is back.
 *
 * While there is no daemon, what comes is held for a while and then refused.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/child/child.h"
#include "cli/commands.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/mcp/calls.h"
#include "model/project.h"

enum pipe_state {
	PIPE_AWAY,   /* there is no daemon */
	PIPE_RENEWS, /* our own requests are under way: what the client says waits */
	PIPE_SERVES,
};

struct pipe {
	struct cli *cli;
	const char *opening;       /* the params of mcp.open, as JSON */
	const char *plain_opening; /* without the folder, if that is refused; NULL once tried */
	bool starts;               /* koined, once, when there is none */

	enum pipe_state state;
	struct koine_client *client;
	int fd; /* its socket; -1: none */
	struct buf from_client;
	struct buf from_daemon;
	struct buf to_daemon;
	struct buf held;    /* what the client has said meanwhile */
	struct calls calls; /* under way, or held */
	struct buf params;  /* of a legacy `initialize` */
	struct buf id;      /* of that, until it is answered */
	bool is_open;       /* it was answered: the session must be renewed */
	bool complained;    /* the user knows that there is no daemon */
	bool was_there;     /* we had one before */
	bool ended;         /* the client has closed its end, and all of it was read */
	bool hung_up;       /* it has closed its end, and there was no room to read the rest */
	uint64_t retry_ms;
	uint64_t give_up_ms; /* what is held is refused then */
	uint64_t end_ms;
};

enum {
	MESSAGE_MAX = 16 << 20,    /* that koined takes */
	LINE_MAX_BYTES = 64 << 20, /* that we read, to say whose message was too long */
	ANSWER_MAX = 64 << 20,
	READ_SIZE = 64 * 1024,
	KEEP_BYTES = 128 * 1024, /* of an emptied buffer */
	AHEAD_BYTES = 1 << 20,   /* what the daemon has not taken; then the client waits */
	HELD_MAX = 32 << 20,
	RETRY_MS = 100,
	FIRST_WAIT_MS = 2000, /* for a daemon that was never there */
	WAIT_MS = 10000,      /* for one that restarts */
	START_WAIT_MS = 10000,
	LAST_MS = 5000, /* for answers, once the client has closed its end */
};

/* Beside exit codes: the client reads no more, which ends us as well. */
enum { CLIENT_LEFT = -1 };

/* Ids of our own requests. A client that chooses the same deserves what it gets. */
#define OPEN_ID  "\"koine mcp open\""
#define AGAIN_ID "\"koine mcp again\""

/* ---- to the client ---- */

/* Waits until the client takes it: without a reader we have nothing else to do. */
static int say(const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDOUT_FILENO, data, len);

		if (n < 0 && errno != EINTR)
			return errno == EPIPE ? CLIENT_LEFT : EX_IOERR;
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int refuse_call(struct text id, const char *reason)
{
	CLEANUP(buf_donep) struct buf line = {0};

	buf_init(&line, CALL_ID_MAX + 4096);
	buf_add_str(&line, "{\"jsonrpc\":\"2.0\",\"id\":");
	/* Half an id would be no JSON. */
	if (id.len > CALL_ID_MAX)
		id = TEXT("null");
	buf_add(&line, id.data, id.len);
	buf_printf(&line, ",\"error\":{\"code\":-32603,\"message\":\"%s\"}}\n", reason);
	return line.err ? EX_SOFTWARE : say(line.data, line.len);
}

static int refuse_all(struct pipe *p, const char *reason)
{
	struct text rest = buf_bytes(&p->calls.ids), id;
	int r = 0;

	while (r == 0 && text_next(&rest, '\n', &id))
		r = refuse_call(id, reason);
	calls_clear(&p->calls);
	buf_trim(&p->held, KEEP_BYTES);
	buf_clear(&p->id);
	return r;
}

static const char gone[] = "lost connection to koined during this call, which may have succeeded. "
			   "Check before you repeat the call";
static const char missing[] = "koined is not running. Start it with "
			      "`koine daemon start`, then try again";

/* ---- starting the daemon ---- */

static bool start_koined(void)
{
	char program[PATH_MAX];

	if (!koined_find(program)) {
		complain("koined not found in koine's folder or in PATH");
		return false;
	}
	if (!child_detach((const char *const[]) {program, NULL})) {
		complain("cannot start koined: %s", strerror(errno));
		return false;
	}
	complain("starting koined");
	return true;
}

/* ---- the daemon comes and goes ---- */

static void write_opening(struct pipe *p)
{
	buf_printf(&p->to_daemon,
		   "{\"jsonrpc\":\"2.0\",\"id\":" OPEN_ID ",\"method\":\"mcp.open\",\"params\":");
	buf_add_str(&p->to_daemon, p->opening);
	buf_add_str(&p->to_daemon, "}\n");
}

static void write_again(struct pipe *p)
{
	buf_add_str(&p->to_daemon, "{\"jsonrpc\":\"2.0\",\"id\":" AGAIN_ID
				   ",\"method\":\"initialize\",\"params\":");
	buf_add(&p->to_daemon, p->params.data, p->params.len);
	buf_add_str(&p->to_daemon, "}\n");
}

/* The daemon has all that was said meanwhile. */
static void serve(struct pipe *p)
{
	p->state = PIPE_SERVES;
	buf_add(&p->to_daemon, p->held.data, p->held.len);
	buf_trim(&p->held, KEEP_BYTES);
}

static void open_pipe(struct pipe *p)
{
	p->fd = koine_client_fd(p->client);
	if (p->complained)
		complain("connected to koined");
	p->complained = false;
	p->was_there = true;
	write_opening(p);
	/* koined may answer other requests before a refused mcp.open, so they wait. */
	p->state = PIPE_RENEWS;
	if (p->is_open)
		write_again(p);
}

static void close_pipe(struct pipe *p)
{
	koine_client_free(p->client);
	p->client = NULL;
	p->fd = -1;
	p->state = PIPE_AWAY;
	buf_trim(&p->from_daemon, KEEP_BYTES);
	buf_trim(&p->to_daemon, KEEP_BYTES);
}

static int lose(struct pipe *p)
{
	bool renews = p->state == PIPE_RENEWS;

	close_pipe(p);
	p->retry_ms = clock_steady_ms();
	/* One that goes away again while it is greeted does not make us wait for ever. */
	if (renews)
		return 0;
	p->give_up_ms = p->retry_ms + WAIT_MS;
	return refuse_all(p, gone);
}

/* The user is told once; the client whenever it asks. */
static void miss(struct pipe *p, const char *error)
{
	uint64_t now = clock_steady_ms();

	p->retry_ms = now + RETRY_MS;
	if (p->complained)
		return;
	p->complained = true;
	complain("%s; waiting", error);
	if (!p->was_there)
		p->give_up_ms = now + FIRST_WAIT_MS;
	if (p->starts && start_koined())
		p->give_up_ms = now + START_WAIT_MS;
	p->starts = false;
}

/* 0, or an exit code: what answers there is not for us, however long we wait. */
static int try_open(struct pipe *p)
{
	char error[TALK_ERROR];
	int r = talk_try(p->cli, &p->client, error);

	if (r == EX_UNAVAILABLE || r == EX_TEMPFAIL) {
		miss(p, error);
		return 0;
	}
	if (r == 0)
		open_pipe(p);
	else
		complain("%s", error);
	return r;
}

/* ---- what the client says ---- */

static void note_initialize(struct pipe *p, const struct pipe_message *m)
{
	struct text params = message_raw(m, MESSAGE_PARAMS), id = message_raw(m, MESSAGE_ID);

	buf_clear(&p->params);
	buf_clear(&p->id);
	buf_add(&p->params, params.data, params.len);
	buf_add(&p->id, id.data, id.len);
	p->is_open = false;
}

/* A request must be answered, whatever becomes of the daemon. Any id but a text or a number, koined
 * refuses at once and without it. */
static int note_asked(struct pipe *p, const struct pipe_message *m, bool *ret_refused)
{
	enum value_kind kind = m->members[MESSAGE_ID].kind;
	struct text method = message_raw(m, MESSAGE_METHOD), id = message_raw(m, MESSAGE_ID);
	bool too_late = p->state == PIPE_AWAY && clock_steady_ms() >= p->give_up_ms;
	char reason[80];
	int r;

	if (json_source_is(method, "notifications/cancelled"))
		calls_forget(&p->calls, message_raw(m, MESSAGE_PARAMS));
	if (m->members[MESSAGE_METHOD].kind != VALUE_STRING ||
	    (kind != VALUE_STRING && kind != VALUE_NUMBER))
		return 0;
	if (too_late) {
		*ret_refused = true;
		return refuse_call(id, missing);
	}
	r = calls_add(&p->calls, id);
	if (r != 0) {
		*ret_refused = true;
		if (r == -ENOSPC)
			snprintf(reason, sizeof(reason), "too many calls in flight (limit %d)",
				 CALLS_MAX);
		else
			snprintf(reason, sizeof(reason), "the id is longer than %d bytes",
				 CALL_ID_MAX);
		return r == -ENOMEM ? EX_SOFTWARE : refuse_call(id, reason);
	}
	if (json_source_is(method, "initialize"))
		note_initialize(p, m);
	return 0;
}

static int refuse_long(struct text id)
{
	char reason[80];

	snprintf(reason, sizeof(reason), "the message is longer than the limit of %d MiB",
		 MESSAGE_MAX >> 20);
	complain("%s", reason);
	return id.data ? refuse_call(id, reason) : 0;
}

/* Only an old version of the protocol has batches. koined would refuse one without an id, and its
 * requests would stay among those that wait for an answer. */
static int refuse_batch(void)
{
	static const char line[] =
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":"
		"\"Invalid request: batches are not supported\"}}\n";

	return say(line, sizeof(line) - 1);
}

/* What is not JSON, the daemon refuses in its own words. */
static int take_said(struct pipe *p, struct text line)
{
	struct buf *to = p->state == PIPE_SERVES ? &p->to_daemon : &p->held;
	bool refused = false;
	struct pipe_message m;
	bool is_json = message_scan(line, &m);
	int r;

	if (line.len > MESSAGE_MAX)
		return refuse_long(is_json ? message_raw(&m, MESSAGE_ID) : (struct text) {0});
	if (is_json && m.root.kind == VALUE_ARRAY)
		return refuse_batch();
	r = is_json ? note_asked(p, &m, &refused) : 0;
	if (r != 0 || refused)
		return r;
	buf_add(to, line.data, line.len);
	buf_add_char(to, '\n');
	return to->err ? EX_SOFTWARE : 0;
}

/* ---- what the daemon says ---- */

/* "WHAT: " and the message of the error. */
static void complain_of(const char *what, struct text error)
{
	CLEANUP(doc_freep) struct koine_doc *doc = NULL;

	(void)koine_doc_parse(error.data, error.len, &doc, NULL, 0);
	complain("%s: %.*s", what, TEXT_ARGS(member_string(koine_doc_root(doc), "message")));
}

static int take_opened(struct pipe *p, struct text error)
{
	int r;

	if (!error.data) {
		if (p->state == PIPE_RENEWS && !p->is_open)
			serve(p);
		return 0;
	}
	/* koined cannot see in which folder another user's process works. */
	if (p->plain_opening) {
		p->opening = TAKE(p->plain_opening);
		write_opening(p);
		return 0;
	}
	complain_of("koined does not serve MCP at this address", error);
	r = refuse_all(p, "koined does not serve MCP at this address; see the error that koine mcp "
			  "printed");
	return r != 0 ? r : EX_PROTOCOL;
}

static int take_again(struct pipe *p, struct text error)
{
	static const char done[] =
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

	/* Nobody has asked. */
	if (p->state != PIPE_RENEWS)
		return 0;
	if (error.data) {
		complain_of("koined did not accept this client again", error);
		return EX_PROTOCOL;
	}
	buf_add_str(&p->to_daemon, done);
	serve(p);
	return 0;
}

/* An answer: to us, or to what the client has asked. */
static int note_answered(struct pipe *p, const struct pipe_message *m, bool *ret_ours)
{
	struct text id = message_raw(m, MESSAGE_ID), error = message_raw(m, MESSAGE_ERROR);

	if (!id.data || message_raw(m, MESSAGE_METHOD).data)
		return 0;
	*ret_ours = text_is(id, OPEN_ID) || text_is(id, AGAIN_ID);
	if (text_is(id, OPEN_ID))
		return take_opened(p, error);
	if (text_is(id, AGAIN_ID))
		return take_again(p, error);
	if (p->id.len > 0 && text_equal(id, (struct text) {p->id.data, p->id.len})) {
		p->is_open = !error.data;
		buf_clear(&p->id);
	}
	calls_remove(&p->calls, id);
	return 0;
}

/* koined sends none, since it gets none; another server may. */
static int note_batch(struct pipe *p, struct text line, bool *ret_ours)
{
	CLEANUP(doc_freep) struct koine_doc *doc = NULL;
	struct pipe_message m;
	int r = 0;

	if (koine_doc_parse(line.data, line.len, &doc, NULL, 0) != 0)
		return 0;
	for (EACH(v, koine_value_first(koine_doc_root(doc)))) {
		if (r == 0 && message_scan(text_of_raw(v), &m))
			r = note_answered(p, &m, ret_ours);
	}
	return r;
}

static int take_answer(struct pipe *p, struct text line)
{
	bool ours = false;
	struct pipe_message m;
	int r;

	/* What is no message is not for the client. */
	if (!message_scan(line, &m) || m.root.kind < VALUE_ARRAY || m.root.len == 0)
		return 0;
	r = m.root.kind == VALUE_ARRAY ? note_batch(p, line, &ours) : note_answered(p, &m, &ours);
	return r != 0 || ours ? r : say(line.data, line.len + 1);
}

/* ---- bytes ---- */

/* The lines in a buffer, each with its line feed behind it; what is left is a part of one. */
static int take_lines(struct pipe *p, struct buf *in, size_t looked,
		      int (*take)(struct pipe *p, struct text line))
{
	size_t at = 0;
	int r = 0;

	while (r == 0 && looked < in->len) {
		const char *end = memchr(in->data + looked, '\n', in->len - looked);

		if (!end)
			break;
		r = take(p, (struct text) {in->data + at, (size_t)(end - in->data) - at});
		at = (size_t)(end - in->data) + 1;
		looked = at;
	}
	buf_consume(in, at);
	if (in->len == 0)
		buf_trim(in, KEEP_BYTES);
	return r;
}

/* 1: there is something new; 0: not now; negative: the end, or an error. */
static int read_some(int fd, struct buf *in)
{
	ssize_t n;

	if (buf_reserve(in, READ_SIZE) != 0)
		return -EMSGSIZE;
	n = read(fd, in->data + in->len, READ_SIZE);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	in->len += (size_t)n;
	return 1;
}

static int read_client(struct pipe *p)
{
	size_t before = p->from_client.len;
	int r = read_some(STDIN_FILENO, &p->from_client);

	if (r == -EMSGSIZE)
		return fail_with(EX_DATAERR, "a message is longer than %d bytes", LINE_MAX_BYTES);
	if (r < 0) {
		p->ended = true;
		p->end_ms = clock_steady_ms() + LAST_MS;
		return 0;
	}
	return r == 0 ? 0 : take_lines(p, &p->from_client, before, take_said);
}

static int read_daemon(struct pipe *p)
{
	size_t before = p->from_daemon.len;
	int r = read_some(p->fd, &p->from_daemon);

	if (r < 0)
		return lose(p);
	return r == 0 ? 0 : take_lines(p, &p->from_daemon, before, take_answer);
}

static int write_daemon(struct pipe *p)
{
	ssize_t n = send(p->fd, p->to_daemon.data, p->to_daemon.len, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : lose(p);
	buf_consume(&p->to_daemon, (size_t)n);
	if (p->to_daemon.len == 0)
		buf_trim(&p->to_daemon, KEEP_BYTES);
	if (p->hung_up && !p->ended)
		p->end_ms = clock_steady_ms() + LAST_MS;
	return 0;
}

/* ---- the loop ---- */

static bool has_room(const struct pipe *p)
{
	return p->to_daemon.len < AHEAD_BYTES && p->held.len < AHEAD_BYTES;
}

static bool has_ended(const struct pipe *p, uint64_t now)
{
	/* Held messages that nobody answers go out once koined has answered ours. */
	bool holds = p->state == PIPE_RENEWS && p->held.len > 0;

	if (!p->ended)
		return p->hung_up && !has_room(p) && now >= p->end_ms;
	return now >= p->end_ms || (p->calls.n == 0 && p->to_daemon.len == 0 && !holds);
}

static int wait_ms(const struct pipe *p, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (p->state == PIPE_AWAY)
		next = p->retry_ms;
	if ((p->ended || p->hung_up) && p->end_ms < next)
		next = p->end_ms;
	if (next == UINT64_MAX)
		return -1;
	return next > now ? (int)(next - now) : 0;
}

/* What is due without any bytes. */
static int look_at_clock(struct pipe *p, uint64_t now)
{
	if (p->state != PIPE_AWAY)
		return 0;
	if (now >= p->retry_ms) {
		int r = try_open(p);

		if (r != 0 || p->state != PIPE_AWAY)
			return r;
	}
	return now >= p->give_up_ms ? refuse_all(p, missing) : 0;
}

/* The client has closed its end, and what it wrote before waits for the daemon, which has so long to take some of it. */
static void hang_up(struct pipe *p)
{
	p->hung_up = true;
	p->end_ms = clock_steady_ms() + LAST_MS;
}

static int turn(struct pipe *p)
{
	bool listens = !p->ended && has_room(p);
	/* Without POLLIN it hears only that the client has closed its end, which it hears again and again. */
	struct pollfd fds[] = {
		{.fd = listens || !(p->ended || p->hung_up) ? STDIN_FILENO : -1,
		 .events = listens ? POLLIN : 0},
		{.fd = p->fd, .events = (short)(POLLIN | (p->to_daemon.len > 0 ? POLLOUT : 0))},
	};
	int r = 0;

	if (poll(fds, 2, wait_ms(p, clock_steady_ms())) < 0 && errno != EINTR)
		return EX_OSERR;
	if (fds[1].revents & POLLOUT)
		r = write_daemon(p);
	if (r == 0 && p->fd >= 0 && (fds[1].revents & (POLLIN | POLLHUP | POLLERR)))
		r = read_daemon(p);
	if (r == 0 && listens && (fds[0].revents & (POLLIN | POLLHUP | POLLERR)))
		r = read_client(p);
	else if (r == 0 && (fds[0].revents & (POLLHUP | POLLERR)))
		hang_up(p);
	return r;
}

/* Until the client closes its end. Returns an exit code. */
static int pipe_run(struct pipe *p)
{
	uint64_t now = clock_steady_ms();
	int r = 0;

	p->fd = -1;
	p->retry_ms = now;
	p->give_up_ms = now + FIRST_WAIT_MS;
	buf_init(&p->from_client, LINE_MAX_BYTES);
	buf_init(&p->from_daemon, ANSWER_MAX);
	buf_init(&p->to_daemon, HELD_MAX + MESSAGE_MAX);
	buf_init(&p->held, HELD_MAX);
	buf_init(&p->params, MESSAGE_MAX);
	buf_init(&p->id, CALL_ID_MAX);
	calls_init(&p->calls);
	while (r == 0 && !has_ended(p, now)) {
		r = look_at_clock(p, now) ?: turn(p);
		now = clock_steady_ms();
	}
	return r == CLIENT_LEFT ? EX_OK : r;
}

static void pipe_done(struct pipe *p)
{
	koine_client_free(p->client);
	calls_done(&p->calls);
	buf_done(&p->from_client);
	buf_done(&p->from_daemon);
	buf_done(&p->to_daemon);
	buf_done(&p->held);
	buf_done(&p->params);
	buf_done(&p->id);
}

struct mcp_options {
	const char *project;
	const char *tools;
	bool start;
};

/* ---- what we tell koined of our client ---- */

/* Also refused by koined, but then the agent is told, and not the user at the terminal. */
static int check_tools(const char *tools)
{
	struct text rest = text_of(tools);
	struct text one;

	while (tools && text_next(&rest, ',', &one)) {
		if (text_among(one, "memory|tasks|human|permission"))
			continue;
		return fail_with(EX_USAGE,
				 "invalid --tools '%.*s': use memory, tasks, "
				 "human or permission",
				 TEXT_ARGS(one));
	}
	return 0;
}

/* "memory,tasks" */
static void add_tools(struct koine_json *j, const char *tools)
{
	struct text rest = text_of(tools);
	struct text one;

	if (!tools || !params_begin_array(j, "tools"))
		return;
	while (text_next(&rest, ',', &one))
		koine_json_text_n(j, one.data, one.len);
	koine_json_end_array(j);
}

/* Tasks run in our own folder, whatever project is chosen: koined lets agents name no other. */
static int fill_opening(const struct mcp_options *o, struct koine_json *j, bool with_folder)
{
	char name[PROJECT_NAME_MAX + 1];
	char folder[PATH_MAX];
	int r = project_of_word(o->project, name);

	if (r != 0)
		return fail_with(EX_NOINPUT, "--project %s: %s", o->project, strerror(-r));
	params_add(j, "project", name);
	if (with_folder)
		params_add(j, "folder", getcwd(folder, sizeof(folder)));
	params_add(j, "session_id", option_from_environment("KOINE_SESSION_ID"));
	params_add(j, "run_id", option_from_environment("KOINE_RUN_ID"));
	add_tools(j, o->tools);
	return 0;
}

/* ---- the command ---- */

static int cmd_mcp(struct cli *cli)
{
	const struct mcp_options *o = cli->own;
	CLEANUP(json_freep) struct koine_json *j = params_new();
	CLEANUP(json_freep) struct koine_json *plain = params_new();
	CLEANUP(pipe_done) struct pipe p = {.cli = cli, .starts = o->start};
	int r = check_tools(o->tools) ?: fill_opening(o, j, true) ?: fill_opening(o, plain, false);

	if (r != 0)
		return r;
	p.opening = params_end(j);
	p.plain_opening = params_end(plain);
	if (!p.opening || !p.plain_opening)
		return out_of_memory();
	if (talk_is_http(cli))
		return fail_with(
			EX_USAGE,
			"koine mcp requires a socket; an MCP client can connect to %s directly",
			cli->address);
	cli->options.framing = "line";
	signal(SIGPIPE, SIG_IGN);
	return pipe_run(&p);
}

#define AT(member) OPTION_AT(struct mcp_options, member)

static const struct option options[] = {
	{"--project", NULL, "DIR|NAME",
	 "use the memories of this project; default: the project of the current "
	 "directory",
	 option_word, AT(project), .usual = "."},
	{"--tools", NULL, "LIST",
	 "offer only these tool groups: memory,tasks,human,permission (default: "
	 "memory,tasks,human)",
	 option_word, AT(tools), .choices = "memory|tasks|human|permission"},
	{"--start", NULL, NULL, "start koined if it is not running", option_flag, AT(start)},
	{NULL},
};

const struct command mcp_commands[] = {
	{"mcp", "", "Run the MCP server for an agent",
	 "Agents start this command; `koine connect` sets it up. The server speaks the Model "
	 "Context Protocol on stdin and stdout and forwards requests to koined. When koined "
	 "restarts, the server reconnects: calls in progress fail, but later calls succeed.\n",
	 cmd_mcp, NULL, options, sizeof(struct mcp_options), NO_ARGS,
	 .examples = {"koine mcp --start", "koine mcp --tools memory,tasks"}},
	{NULL},
};
