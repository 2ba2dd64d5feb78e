/*
 * Stands for the agent of a session: says as much as it is let.
 *
 *	speaker SOCKET [FLAG]...
 *
 * Connects to SOCKET (a path). Each byte that comes is the leave for one line of stream-json,
 * whose text tells its number and when it was written (token.h). Ends well when the other side
 * does.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "net.h"
#include "now.h"
#include "token.h"

enum { LEAVES = 4096, OUT_MAX = 4 << 20 };

static const char init[] =
	"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"speaker\"}\n";
static const char head[] =
	"{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":"
	"[{\"type\":\"text\",\"text\":\"said";
static const char tail[] = "\"}]},\"session_id\":\"speaker\"}\n";
static const char end[] = "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,"
			  "\"result\":\"said\",\"session_id\":\"speaker\"}\n";

static void add_line(struct buf *out, unsigned number)
{
	char token[TOKEN_SIZE];

	token_write(token, number, now_ns());
	buf_add(out, head, sizeof(head) - 1);
	buf_add(out, token, sizeof(token));
	buf_add(out, tail, sizeof(tail) - 1);
}

static int write_all(struct buf *out)
{
	int r = out->err;

	for (size_t at = 0; r == 0 && at < out->len;) {
		ssize_t n = write(STDOUT_FILENO, out->data + at, out->len - at);

		if (n < 0)
			r = -errno;
		else
			at += (size_t)n;
	}
	buf_consume(out, out->len);
	return r;
}

static int speak(int fd, struct buf *out)
{
	char leaves[LEAVES];
	unsigned number = 0;
	ssize_t n;
	int r = 0;

	buf_add(out, init, sizeof(init) - 1);
	while (r == 0 && (n = read(fd, leaves, sizeof(leaves))) != 0) {
		if (n < 0)
			return -errno;
		while (n-- > 0)
			add_line(out, number++);
		r = write_all(out);
	}
	buf_add(out, end, sizeof(end) - 1);
	return r == 0 ? write_all(out) : r;
}

int main(int argc, char **argv)
{
	struct buf out;
	char address[256];
	int fd, r;

	if (argc < 2) {
		fprintf(stderr, "usage: %s SOCKET [FLAG]...\n", argv[0]);
		return 2;
	}
	snprintf(address, sizeof(address), "unix:%s", argv[1]);
	buf_init(&out, OUT_MAX);
	fd = net_connect(address);
	r = fd < 0 ? fd : speak(fd, &out);
	if (fd >= 0)
		close(fd);
	buf_done(&out);
	if (r != 0)
		fprintf(stderr, "speaker: %s: %s\n", argv[1], strerror(-r));
	return r == 0 ? 0 : 1;
}
