/*
 * Writes made-up memories: as lines of JSON to stdout, or into a daemon with
 * memory.import, many in a call, so that the disk is not what we wait for.
 *
 *	memories MEMORIES[,USERS,OWN] [TARGET]
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "made.h"
#include "message.h"
#include "net.h"

enum { AT_ONCE = 20000, BUFFER_MAX = 15 << 20 };

static void add_entry(struct buf *out, const struct made_set *set, uint64_t number)
{
	struct made m;
	struct tm tm;
	char when[32];
	time_t t;

	made_memory(set, number, &m);
	t = (time_t)m.time_s;
	gmtime_r(&t, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_printf(out,
		   "{\"content\":\"%.*s\",\"source\":\"bench\",\"category\":\"%s\","
		   "\"user_id\":\"user-%llu\",\"chat_id\":\"chat-%llu\",\"created_at\":\"%s\"",
		   (int)m.len, m.text, m.category, (unsigned long long)m.user,
		   (unsigned long long)m.chat, when);
	if (m.person)
		buf_printf(out, ",\"subjects\":[\"%s\"]", m.person);
	buf_add_char(out, '}');
}

static int print_all(const struct made_set *set)
{
	struct buf out;
	int r = 0;

	buf_init(&out, BUFFER_MAX);
	for (uint64_t i = 0; i < set->n_memories && r == 0; i++) {
		buf_clear(&out);
		add_entry(&out, set, i);
		buf_add_char(&out, '\n');
		if (out.err || fwrite(out.data, 1, out.len, stdout) != out.len)
			r = out.err ? out.err : -EIO;
	}
	buf_done(&out);
	return r;
}

static int send_all(int fd, const struct buf *out)
{
	size_t sent = 0;

	while (sent < out->len) {
		ssize_t n = write(fd, out->data + sent, out->len - sent);

		if (n < 0)
			return -errno;
		sent += (size_t)n;
	}
	return 0;
}

static int await_answer(int fd)
{
	char text[4096];
	struct text body;
	const char *wrong;
	size_t len = 0;
	uint64_t id;

	for (;;) {
		ssize_t n = read(fd, text + len, sizeof(text) - len);

		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		len += (size_t)n;
		if (message_cut(FRAMING_LINE, text, len, &body) > 0)
			break;
	}
	if (answer_read(body, &id, &wrong) == 0)
		return 0;
	fprintf(stderr, "memories: %s: %.*s\n", wrong, TEXT_ARGS(body));
	return -EPROTO;
}

static int import_some(int fd, const struct made_set *set, uint64_t from, uint64_t to)
{
	struct buf out;
	int r;

	buf_init(&out, BUFFER_MAX);
	buf_add_str(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"memory.import\","
			  "\"params\":{\"entries\":[");
	for (uint64_t i = from; i < to; i++) {
		if (i > from)
			buf_add_char(&out, ',');
		add_entry(&out, set, i);
	}
	buf_add_str(&out, "]},\"id\":1}\n");
	r = out.err ? out.err : send_all(fd, &out);
	buf_done(&out);
	return r != 0 ? r : await_answer(fd);
}

static int import_all(const struct made_set *set, const char *target)
{
	int fd = net_connect(target);
	int r = fd < 0 ? fd : 0;

	for (uint64_t i = 0; i < set->n_memories && r == 0; i += AT_ONCE) {
		uint64_t to = i + AT_ONCE < set->n_memories ? i + AT_ONCE : set->n_memories;

		r = import_some(fd, set, i, to);
	}
	if (fd >= 0)
		close(fd);
	return r;
}

int main(int argc, char **argv)
{
	struct made_set set;
	int r;

	if (argc < 2 || argc > 3 || made_set_parse(argv[1], &set) != 0) {
		fprintf(stderr, "usage: %s MEMORIES[,USERS,OWN] [unix:PATH | tcp:HOST:PORT]\n",
			argv[0]);
		return 2;
	}
	r = argc == 3 ? import_all(&set, argv[2]) : print_all(&set);
	if (r != 0)
		fprintf(stderr, "memories: %s\n", strerror(-r));
	return r == 0 ? 0 : 1;
}
