/*
 * Many streams at once, read to their end: chat.stream on a socket of koine's, or, to know
 * what there is without any relay, the provider's own events. Every token must come,
 * once, in order, and the answer must hold them all; what a relay held back at the end
 * may come with the answer alone, but not as much as half. Prints one line of JSON;
 * anything else ends it with status 1.
 *
 *	stream --target ADDRESS --tokens N [--streams N] [--form koine|events]
 *	       [--request TEXT] [--pid PID,...] [--timeout-ms N]
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "answer.h"
#include "hist.h"
#include "message.h"
#include "net.h"
#include "now.h"
#include "proc.h"
#include "request.h"
#include "sse.h"
#include "token.h"

enum { EVENTS = 256, READ_SIZE = 64 * 1024, BUFFER_MAX = 16 << 20, SHOWN_MAX = 300 };

struct stream {
	int fd;
	unsigned number;
	unsigned n_tokens;
	char token[TOKEN_SIZE]; /* the beginning of the next */
	unsigned n_partial;
	bool is_done;
	struct buf in;
};

struct run {
	const char *target;
	unsigned n_streams;
	unsigned n_tokens; /* each is to have */
	unsigned timeout_ms;
	int (*take)(struct run *run, struct stream *s, size_t *used);
	struct request request;
	struct pids pids;
	/* as it goes */
	int epoll;
	struct stream *streams;
	unsigned n_open, n_past_half;
	uint64_t n_late; /* tokens that only the answer brought */
	uint64_t now, begun_ns;
	uint64_t kib_before, kib_half;
	uint64_t cpu_before, cpu_after;
	struct hist age;   /* from the provider's write to our read */
	struct hist first; /* from asking to the first token */
	struct hist ended; /* from asking to the answer */
};

static int wrong(const struct stream *s, const char *what, struct text text)
{
	int shown = text.len < SHOWN_MAX ? (int)text.len : SHOWN_MAX;

	fprintf(stderr, "stream: number %u after %u tokens, %s: %.*s\n", s->number, s->n_tokens,
		what, shown, text.data ? text.data : "");
	return -EPROTO;
}

/* What the server holds while all of them are under way. */
static int past_half(struct run *run)
{
	if (++run->n_past_half < run->n_streams)
		return 0;
	return proc_own_kib(&run->pids, &run->kib_half);
}

static int take_token(struct run *run, struct stream *s)
{
	uint64_t age;

	if (!token_read(s->token, s->n_tokens, run->now, &age))
		return wrong(s, "not the next token",
			     (struct text) {.data = s->token, .len = TOKEN_SIZE});
	if (s->n_tokens++ == 0)
		hist_add(&run->first, run->now - run->begun_ns);
	hist_add(&run->age, age);
	return s->n_tokens == (run->n_tokens + 1) / 2 ? past_half(run) : 0;
}

/* A piece may begin and end anywhere. */
static int take_text(struct run *run, struct stream *s, struct text piece)
{
	int r = 0;

	while (r == 0 && piece.len > 0) {
		size_t n = TOKEN_SIZE - s->n_partial;

		if (n > piece.len)
			n = piece.len;
		memcpy(s->token + s->n_partial, piece.data, n);
		s->n_partial += (unsigned)n;
		piece.data += n;
		piece.len -= n;
		if (s->n_partial < TOKEN_SIZE)
			break;
		s->n_partial = 0;
		r = take_token(run, s);
	}
	return r;
}

static int take_end(struct run *run, struct stream *s)
{
	if (s->n_tokens != run->n_tokens || s->n_partial > 0)
		return wrong(s, "ended", TEXT(""));
	s->is_done = true;
	run->n_open--;
	hist_add(&run->ended, run->now - run->begun_ns);
	return 0;
}

/* ---- the provider's events ---- */

static int take_events(struct run *run, struct stream *s, size_t *used)
{
	struct text piece;
	enum sse_found found;
	int r = 0;

	while (r == 0 && !s->is_done &&
	       (found = sse_next(s->in.data, s->in.len, used, &piece)) != SSE_NOTHING) {
		if (found == SSE_REFUSED)
			return wrong(s, "refused", (struct text) {s->in.data, s->in.len});
		r = found == SSE_TEXT ? take_text(run, s, piece) : take_end(run, s);
	}
	return r;
}

/* ---- koine's lines ---- */

/* It holds the whole text again: of what was told before, only the ends are looked at. */
static bool is_whole(const struct run *run, struct text content)
{
	size_t len = (size_t)run->n_tokens * TOKEN_SIZE;
	uint64_t age;

	return content.len == len && token_read(content.data, 0, run->now, &age) &&
	       token_read(content.data + len - TOKEN_SIZE, run->n_tokens - 1, run->now, &age);
}

static int take_answer(struct run *run, struct stream *s, struct text body)
{
	size_t told = (size_t)s->n_tokens * TOKEN_SIZE + s->n_partial;
	struct text result, content;
	const char *what;
	uint64_t id;
	int r;

	if (answer_read(body, &id, &what) != 0)
		return wrong(s, what, body);
	if (id != s->number + 1)
		return wrong(s, "an id that is not waited for", body);
	if (!answer_member(body, "result", &result) || !answer_member(result, "content", &content))
		return wrong(s, "no content", body);
	if (!is_whole(run, content) || told > content.len)
		return wrong(s, "not the whole text", body);
	if (told <= content.len / 2)
		return wrong(s, "hardly streamed", body);
	run->n_late += run->n_tokens - s->n_tokens;
	r = take_text(run, s, (struct text) {content.data + told, content.len - told});
	return r == 0 ? take_end(run, s) : r;
}

static int take_notification(struct run *run, struct stream *s, struct text body)
{
	struct text params, piece, offset;
	size_t have = (size_t)s->n_tokens * TOKEN_SIZE + s->n_partial;

	if (!answer_member(body, "params", &params) || !answer_member(params, "text", &piece) ||
	    !answer_member(params, "offset", &offset))
		return wrong(s, "a notification without its text", body);
	if (strtoull(offset.data, NULL, 10) != have)
		return wrong(s, "text from another place", body);
	return take_text(run, s, piece);
}

static int take_lines(struct run *run, struct stream *s, size_t *used)
{
	struct text body, method;
	ssize_t n;
	int r = 0;

	while (r == 0 && *used < s->in.len) {
		n = message_cut(FRAMING_LINE, s->in.data + *used, s->in.len - *used, &body);
		if (n <= 0)
			return (int)n;
		*used += (size_t)n;
		if (s->is_done)
			return wrong(s, "more than the answer", body);
		if (!answer_member(body, "method", &method))
			r = take_answer(run, s, body);
		else if (text_is(method, "chat.text"))
			r = take_notification(run, s, body);
	}
	return r;
}

/* ---- the run ---- */

static int stream_read(struct run *run, struct stream *s)
{
	size_t used = 0;
	ssize_t n;
	int r = buf_reserve(&s->in, READ_SIZE);

	if (r != 0)
		return r;
	n = read(s->fd, s->in.data + s->in.len, READ_SIZE);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return wrong(s, "closed", TEXT(""));
	run->now = now_ns();
	s->in.len += (size_t)n;
	r = run->take(run, s, &used);
	buf_consume(&s->in, used);
	return r;
}

static int run_connect(struct run *run)
{
	struct epoll_event event = {.events = EPOLLIN};

	for (unsigned i = 0; i < run->n_streams; i++) {
		struct stream *s = &run->streams[i];
		int r;

		s->number = i;
		buf_init(&s->in, BUFFER_MAX);
		s->fd = net_connect(run->target);
		if (s->fd < 0)
			return s->fd;
		event.data.ptr = s;
		r = net_unblock(s->fd);
		if (r == 0 && epoll_ctl(run->epoll, EPOLL_CTL_ADD, s->fd, &event) != 0)
			r = -errno;
		if (r != 0)
			return r;
	}
	return 0;
}

static int run_ask(struct run *run)
{
	struct buf out;
	int r = 0;

	buf_init(&out, BUFFER_MAX);
	run->begun_ns = now_ns();
	for (unsigned i = 0; r == 0 && i < run->n_streams; i++) {
		buf_clear(&out);
		request_add(&run->request, i, i + 1, &out);
		r = out.err;
		if (r == 0)
			r = net_send_all(run->streams[i].fd, (struct text) {out.data, out.len});
	}
	buf_done(&out);
	run->n_open = run->n_streams;
	return r;
}

static int run_read(struct run *run)
{
	struct epoll_event events[EVENTS];
	int n, r = 0;

	while (r == 0 && run->n_open > 0) {
		n = epoll_wait(run->epoll, events, EVENTS, (int)run->timeout_ms);
		if (n == 0) {
			fprintf(stderr, "stream: %u wait in vain\n", run->n_open);
			return -ETIMEDOUT;
		}
		if (n < 0)
			return -errno;
		for (int i = 0; i < n && r == 0; i++)
			r = stream_read(run, events[i].data.ptr);
	}
	return r;
}

static int run_all(struct run *run)
{
	int r = proc_own_kib(&run->pids, &run->kib_before);

	if (r == 0)
		r = run_connect(run);
	if (r == 0)
		r = proc_cpu_ns(&run->pids, &run->cpu_before);
	if (r == 0)
		r = run_ask(run);
	if (r == 0)
		r = run_read(run);
	run->now = now_ns();
	return r == 0 ? proc_cpu_ns(&run->pids, &run->cpu_after) : r;
}

static void print_result(const struct run *run)
{
	double tokens = (double)run->n_streams * run->n_tokens;
	double seconds = (double)(run->now - run->begun_ns) / 1e9;

	printf("{\"streams\":%u,\"tokens\":%.0f,\"seconds\":%.6f,\"rate\":%.0f,"
	       "\"late\":%llu,\"server_cpu_ns\":%.1f,\"kib_each\":%.2f,",
	       run->n_streams, tokens, seconds, tokens / seconds, (unsigned long long)run->n_late,
	       (double)(run->cpu_after - run->cpu_before) / tokens,
	       ((double)run->kib_half - (double)run->kib_before) / run->n_streams);
	printf("\"p50_ns\":%llu,\"p99_ns\":%llu,\"first_p50_ns\":%llu,\"ended_p50_ns\":%llu}\n",
	       (unsigned long long)hist_quantile(&run->age, 0.5),
	       (unsigned long long)hist_quantile(&run->age, 0.99),
	       (unsigned long long)hist_quantile(&run->first, 0.5),
	       (unsigned long long)hist_quantile(&run->ended, 0.5));
}

static void run_done(struct run *run)
{
	for (unsigned i = 0; i < run->n_streams; i++) {
		if (run->streams[i].fd >= 0)
			close(run->streams[i].fd);
		buf_done(&run->streams[i].in);
	}
	free(run->streams);
	request_done(&run->request);
	close(run->epoll);
}

static int usage(const char *self)
{
	fprintf(stderr,
		"usage: %s --target unix:PATH|tcp:HOST:PORT --tokens N [--streams N]\n"
		"  [--form koine|events] [--request TEXT] [--pid PID,...] [--timeout-ms N]\n"
		"In TEXT, $ID is the request's number and $CONNECTION its stream's.\n",
		self);
	return 2;
}

static int take_option(struct run *run, int name, const char *arg, const char **form)
{
	switch (name) {
	case 't':
		run->target = arg;
		return 0;
	case 'n':
		run->n_tokens = (unsigned)strtoul(arg, NULL, 10);
		return 0;
	case 's':
		run->n_streams = (unsigned)strtoul(arg, NULL, 10);
		return 0;
	case 'f':
		run->take = strcmp(arg, "events") == 0 ? take_events : take_lines;
		return 0;
	case 'r':
		*form = arg;
		return 0;
	case 'P':
		return pids_parse(arg, &run->pids);
	case 'm':
		run->timeout_ms = (unsigned)strtoul(arg, NULL, 10);
		return 0;
	}
	return -EINVAL;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"target", required_argument, NULL, 't'},
		{"tokens", required_argument, NULL, 'n'},
		{"streams", required_argument, NULL, 's'},
		{"form", required_argument, NULL, 'f'},
		{"request", required_argument, NULL, 'r'},
		{"pid", required_argument, NULL, 'P'},
		{"timeout-ms", required_argument, NULL, 'm'},
		{0},
	};
	static struct run run = {.n_streams = 1, .timeout_ms = 10000, .take = take_lines};
	const char *form = NULL;
	int c, r;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (take_option(&run, c, optarg, &form) != 0)
			return usage(argv[0]);
	}
	if (!run.target || optind != argc || run.n_tokens == 0 || run.n_streams == 0)
		return usage(argv[0]);
	r = request_init(&run.request, run.take == take_events ? FRAMING_HTTP : FRAMING_LINE, form,
			 false);
	run.epoll = epoll_create1(EPOLL_CLOEXEC);
	run.streams = calloc(run.n_streams, sizeof(*run.streams));
	if (!run.streams)
		return 1;
	for (unsigned i = 0; i < run.n_streams; i++)
		run.streams[i].fd = -1;
	if (r == 0)
		r = run_all(&run);
	if (r == 0)
		print_result(&run);
	else
		fprintf(stderr, "stream: %s: %s\n", run.target, strerror(-r));
	run_done(&run);
	return r == 0 ? 0 : 1;
}
