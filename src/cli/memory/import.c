/*
 * koine memory import: lines of JSON, sent in batches.
 *
 * A batch is stored completely or not at all. When a line is bad, those before it are sent,
 * and nothing after it, so that the user can continue from that line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/kit/call.h"
#include "cli/kit/lines.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"
#include "cli/memory/memory.h"

/* ---- a bar on stderr that shows how far a file has been read, if stderr is a terminal ---- */

enum { BAR = 30, PAUSE_MS = 100 };

struct progress {
	bool shown;
	int64_t size;     /* of the whole; 0: unknown */
	uint64_t last_ms; /* when it was last drawn */
};

static void progress_init(struct progress *p, int64_t size)
{
	*p = (struct progress) {.shown = isatty(STDERR_FILENO), .size = size};
}

/* Draws it, unless it was drawn a moment ago. */
static void progress_set(struct progress *p, int64_t done, int64_t count)
{
	static const char full[] = "##############################";
	uint64_t now = clock_steady_ms();
	int part;

	if (!p->shown || now - p->last_ms < PAUSE_MS)
		return;
	p->last_ms = now;
	if (p->size <= 0) {
		fprintf(stderr, "\r%lld imported", (long long)count);
		return;
	}
	part = done >= p->size ? BAR : (int)(done * BAR / p->size);
	fprintf(stderr, "\r[%-*.*s] %3d%%  %lld imported", BAR, part, full,
		done >= p->size ? 100 : (int)(done * 100 / p->size), (long long)count);
	fflush(stderr);
}

/* Removes it. */
static void progress_done(struct progress *p)
{
	if (p->shown && p->last_ms != 0)
		fputs("\r\033[K", stderr);
	p->last_ms = 0;
}

enum {
	ENTRIES_MAX = 500,
	BYTES_MAX = 1 << 20,
	LINE_MAX_BYTES = 15 << 20, /* alone in a message of 16 MiB */
};

struct importer {
	struct cli *cli;
	const char *name; /* of the file */
	struct lines in;
	int64_t read;   /* bytes */
	long long line; /* the number of the last one read */
	/* The batch: its entries in sequence, and where each ends. */
	struct buf batch;
	size_t ends[ENTRIES_MAX];
	long long lines[ENTRIES_MAX];
	unsigned n;
	int64_t n_imported;
	struct progress progress;
};

static size_t begin_of(const struct importer *m, unsigned i)
{
	return i == 0 ? 0 : m->ends[i - 1];
}

/* 0, or an exit code after saying why; *ret_line is {NULL, 0} when none was left. */
static int read_line(struct importer *m, struct text *ret_line)
{
	int r = lines_next(&m->in, ret_line);

	if (r == 0 && ret_line->len > LINE_MAX_BYTES)
		r = -EMSGSIZE;
	m->line += r == -EMSGSIZE || (r == 0 && ret_line->data);
	if (r == 0) {
		m->read += (int64_t)ret_line->len + 1;
		return 0;
	}
	if (r == -EMSGSIZE) {
		complain("%s:%lld: the line is longer than %d bytes", m->name, m->line,
			 LINE_MAX_BYTES);
		return EX_DATAERR;
	}
	complain("cannot read %s: %s", m->name, strerror(-r));
	return r == -ENOMEM ? EX_SOFTWARE : EX_NOINPUT;
}

/* Without the mark that some editors put at the start of a file, and without surrounding spaces. */
static struct text trimmed(const struct importer *m, struct text t)
{
	if (m->line == 1 && t.len >= 3 && memcmp(t.data, "\xef\xbb\xbf", 3) == 0) {
		t.data += 3;
		t.len -= 3;
	}
	while (t.len > 0 && strchr(" \t\r", t.data[t.len - 1]) && t.data[t.len - 1])
		t.len--;
	while (t.len > 0 && strchr(" \t\r", t.data[0]) && t.data[0]) {
		t.data++;
		t.len--;
	}
	return t;
}

static int check_line(const struct importer *m, struct text t)
{
	struct koine_doc *doc = NULL;
	char error[256];
	int r = koine_doc_parse(t.data, t.len, &doc, error, sizeof(error));
	enum koine_kind kind = r == 0 ? koine_value_kind(koine_doc_root(doc)) : KOINE_NULL;

	koine_doc_free(doc);
	if (r < 0)
		return out_of_memory();
	if (r == 0 && kind == KOINE_OBJECT)
		return 0;
	complain("%s:%lld: %s%s", m->name, m->line,
		 r == 0 ? "the line must be a JSON object" : "not JSON: ", r == 0 ? "" : error);
	return EX_DATAERR;
}

/* "entry N" in the refusal says which one it was; -1 if it does not. */
static long find_culprit(const struct koine_answer *a, unsigned n)
{
	struct text message = talk_error(a);
	CLEANUP(freep) char *copy = message.data ? strndup(message.data, message.len) : NULL;
	const char *at = copy ? strstr(copy, "entry ") : NULL;
	long i = -1;

	if (koine_answer_error_code(a) != CODE_BAD_PARAMS || !at ||
	    sscanf(at, "entry %ld", &i) != 1)
		return -1;
	return i >= 0 && i < (long)n ? i : -1;
}

static void blame_line(const struct importer *m, long i, const struct koine_answer *a)
{
	struct text message = talk_error(a);

	fprintf(stderr, "koine: %s:%lld: ", m->name, m->lines[i]);
	print_text(stderr, message.data ? message : TEXT("refused"));
	fputc('\n', stderr);
}

static int send_batch(struct importer *m, unsigned n, struct koine_answer **ret_answer)
{
	struct koine_json *j = params_new();

	if (!j)
		return -ENOMEM;
	koine_json_key(j, "entries");
	koine_json_begin_array(j);
	for (unsigned i = 0; i < n; i++)
		koine_json_raw(j, m->batch.data + begin_of(m, i), m->ends[i] - begin_of(m, i));
	koine_json_end_array(j);
	memory_scope(m->cli, j);
	return call_ask(m->cli, "memory.import", j, ret_answer);
}

/* Sends the first n of the batch. When one is bad, only those before it are sent, and the import
 * ends. */
static int send_first(struct importer *m, unsigned n)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	long culprit;
	int r = n > 0 ? send_batch(m, n, &a) : 0;

	if (r == 0) {
		m->n_imported += member_number(koine_answer_result(a), "imported");
		return 0;
	}
	progress_done(&m->progress);
	culprit = r == KOINE_ERROR_ANSWER ? find_culprit(a, n) : -1;
	if (culprit < 0)
		return talk_failed(m->cli->client, "memory.import", r, a);
	blame_line(m, culprit, a);
	r = send_first(m, (unsigned)culprit);
	return r != 0 ? r : EX_DATAERR;
}

static int flush_batch(struct importer *m)
{
	int r = send_first(m, m->n);

	m->n = 0;
	buf_clear(&m->batch);
	if (r == 0)
		progress_set(&m->progress, m->read, m->n_imported);
	return r;
}

static int add_to_batch(struct importer *m, struct text t)
{
	int r = 0;

	if (m->n == ENTRIES_MAX || (m->n > 0 && m->batch.len + t.len > BYTES_MAX))
		r = flush_batch(m);
	if (r != 0)
		return r;
	buf_add(&m->batch, t.data, t.len);
	if (m->batch.err != 0)
		return out_of_memory();
	m->lines[m->n] = m->line;
	m->ends[m->n++] = m->batch.len;
	return 0;
}

static int import_lines(struct importer *m)
{
	struct text line;
	int after;
	int r = read_line(m, &line);

	while (r == 0 && line.data) {
		line = trimmed(m, line);
		if (line.len > 0)
			r = check_line(m, line);
		if (r == 0 && line.len > 0) {
			r = add_to_batch(m, line);
			if (r != 0)
				return r;
		}
		if (r == 0)
			r = read_line(m, &line);
	}
	after = flush_batch(m);
	return r != 0 ? r : after;
}

static int open_file(struct importer *m, const char *path)
{
	struct stat st;
	bool is_stdin = strcmp(path, "-") == 0;

	m->name = is_stdin ? "stdin" : path;
	m->in.fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (m->in.fd < 0 || fstat(m->in.fd, &st) != 0 || S_ISDIR(st.st_mode)) {
		complain("cannot read %s: %s", path, strerror(m->in.fd >= 0 ? EISDIR : errno));
		return EX_NOINPUT;
	}
	progress_init(&m->progress, S_ISREG(st.st_mode) ? st.st_size : 0);
	return 0;
}

static int import_file(struct importer *m, const char *path)
{
	int r = open_file(m, path) ?: talk_connect(m->cli);

	if (r != 0)
		return r;
	r = import_lines(m);
	progress_done(&m->progress);
	printf(m->cli->options.json ? "{\"imported\":%lld}\n" : "Memories imported: %lld\n",
	       (long long)m->n_imported);
	return r;
}

int cmd_memory_import(struct cli *cli)
{
	struct importer m = {.cli = cli};
	int r;

	lines_init(&m.in, -1, LINE_MAX_BYTES + (1 << 20));
	buf_init(&m.batch, LINE_MAX_BYTES);
	r = import_file(&m, cli->args[0]);
	if (m.in.fd > STDIN_FILENO)
		close(m.in.fd);
	lines_done(&m.in);
	buf_done(&m.batch);
	return r;
}
