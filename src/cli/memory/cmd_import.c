/*
 * koine memory import: lines of JSON, sent in batches.
 *
 * A batch is taken in whole or not at all. When a line is bad, those before it are
 * sent, and nothing behind it, so that the user can go on from that line.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/memory/memory.h"
#include "cli/kit/progress.h"

enum {
	ENTRIES_MAX = 500,
	BYTES_MAX = 1 << 20,
	LINE_MAX_BYTES = 15 << 20, /* alone in a message of 16 MiB */
	BAD_PARAMS = -32602,
};

struct import {
	struct cli *cli;
	struct koine_client *client;
	const char *name; /* of the file */
	FILE *in;
	int64_t read;   /* bytes */
	long long line; /* the number of the last one read */
	struct buf text;
	/* The batch: its entries one behind the other, and where each ends. */
	struct buf batch;
	size_t ends[ENTRIES_MAX];
	long long lines[ENTRIES_MAX];
	unsigned n;
	int64_t n_imported;
	struct progress progress;
};

static size_t begin_of(const struct import *m, unsigned i)
{
	return i == 0 ? 0 : m->ends[i - 1];
}

/* 0, or an exit code after words; *ret_end: there was none left. */
static int read_line(struct import *m, bool *ret_end)
{
	int c;

	buf_clear(&m->text);
	while ((c = getc_unlocked(m->in)) != EOF) {
		m->read++;
		if (c == '\n')
			break;
		buf_add_char(&m->text, (char)c);
		if (m->text.err != 0)
			break;
	}
	*ret_end = c == EOF && m->text.len == 0;
	m->line += !*ret_end;
	if (ferror(m->in)) {
		complain("cannot read %s: %s", m->name, strerror(errno));
		return EX_NOINPUT;
	}
	if (m->text.err == 0)
		return 0;
	complain("%s:%lld: %s", m->name, m->line,
		 m->text.err == -EMSGSIZE ? "the line is too long" : "out of memory");
	return m->text.err == -EMSGSIZE ? EX_DATAERR : EX_SOFTWARE;
}

/* Without the mark that some editors put in front of a file, and spaces around. */
static struct text trimmed(const struct import *m)
{
	struct text t = {.data = m->text.data, .len = m->text.len};

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

static int check_line(const struct import *m, struct text t)
{
	struct koine_doc *doc = NULL;
	char error[256];
	int r = koine_doc_parse(t.data, t.len, &doc, error, sizeof(error));
	enum koine_kind kind = r == 0 ? koine_value_kind(koine_doc_root(doc)) : KOINE_NULL;

	koine_doc_free(doc);
	if (r < 0) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	if (r == 0 && kind == KOINE_OBJECT)
		return 0;
	complain("%s:%lld: %s%s", m->name, m->line,
		 r == 0 ? "a line must be an object" : "not JSON: ", r == 0 ? "" : error);
	return EX_DATAERR;
}

/* The words "entry N" in the refusal say which one it was; -1 when they do not. */
static long find_culprit(const struct koine_answer *a, unsigned n)
{
	size_t len = 0;
	const char *message = koine_answer_error_message(a, &len);
	CLEANUP(freep) char *copy = message ? strndup(message, len) : NULL;
	const char *at = copy ? strstr(copy, "entry ") : NULL;
	long i = -1;

	if (koine_answer_error_code(a) != BAD_PARAMS || !at || sscanf(at, "entry %ld", &i) != 1)
		return -1;
	return i >= 0 && i < (long)n ? i : -1;
}

static void blame_line(const struct import *m, long i, const struct koine_answer *a)
{
	size_t len = 0;
	const char *message = koine_answer_error_message(a, &len);

	fprintf(stderr, "koine: %s:%lld: ", m->name, m->lines[i]);
	print_text(stderr, message ? message : "refused", message ? len : 7);
	fputc('\n', stderr);
}

static int call_with(struct import *m, unsigned n, struct koine_answer **ret_answer)
{
	struct memory_call c;
	const char *params;
	int r;

	if (memory_begin(&c, m->cli, "memory.import") != 0)
		return -ENOMEM;
	koine_json_key(c.params, "entries");
	koine_json_begin_array(c.params);
	for (unsigned i = 0; i < n; i++)
		koine_json_raw(c.params, m->batch.data + begin_of(m, i),
			       m->ends[i] - begin_of(m, i));
	koine_json_end_array(c.params);
	memory_add_who(&c);
	params = memory_params(&c);
	r = params ? koine_client_call(m->client, c.method, params, ret_answer) : -ENOMEM;
	memory_done(&c);
	return r;
}

/* Sends the first n of the batch; a bad one among them ends it, but those before it
 * go out alone. */
static int send_first(struct import *m, unsigned n)
{
	struct koine_answer *a = NULL;
	int64_t imported = 0;
	long culprit;
	int r = n > 0 ? call_with(m, n, &a) : 0;

	if (r == 0) {
		koine_value_int(koine_value_get(koine_answer_result(a), "imported"), &imported);
		m->n_imported += imported;
		koine_answer_free(a);
		return 0;
	}
	progress_done(&m->progress);
	culprit = r == KOINE_ERROR_ANSWER ? find_culprit(a, n) : -1;
	if (culprit < 0)
		return talk_failed(m->client, "memory.import", r, a);
	blame_line(m, culprit, a);
	koine_answer_free(a);
	r = send_first(m, (unsigned)culprit);
	return r != 0 ? r : EX_DATAERR;
}

static int flush_batch(struct import *m)
{
	int r = send_first(m, m->n);

	m->n = 0;
	buf_clear(&m->batch);
	if (r == 0)
		progress_set(&m->progress, m->read, m->n_imported);
	return r;
}

static int add_to_batch(struct import *m, struct text t)
{
	int r = 0;

	if (m->n == ENTRIES_MAX || (m->n > 0 && m->batch.len + t.len > BYTES_MAX))
		r = flush_batch(m);
	if (r != 0)
		return r;
	buf_add(&m->batch, t.data, t.len);
	if (m->batch.err != 0) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	m->lines[m->n] = m->line;
	m->ends[m->n++] = m->batch.len;
	return 0;
}

static int import_lines(struct import *m)
{
	bool end = false;
	int after;
	int r = 0;

	while (r == 0) {
		struct text t;

		r = read_line(m, &end);
		if (end || r != 0)
			break;
		t = trimmed(m);
		if (t.len == 0)
			continue;
		r = check_line(m, t);
		if (r == 0) {
			r = add_to_batch(m, t);
			if (r != 0)
				return r;
		}
	}
	after = flush_batch(m);
	return r != 0 ? r : after;
}

static int open_file(struct import *m, const char *path)
{
	struct stat st;
	bool is_stdin = strcmp(path, "-") == 0;

	m->name = is_stdin ? "stdin" : path;
	m->in = is_stdin ? stdin : fopen(path, "re");
	if (!m->in || fstat(fileno(m->in), &st) != 0 || S_ISDIR(st.st_mode)) {
		complain("cannot read %s: %s", path, strerror(m->in ? EISDIR : errno));
		return EX_NOINPUT;
	}
	progress_init(&m->progress, S_ISREG(st.st_mode) ? st.st_size : 0);
	return 0;
}

static int import_file(struct import *m, const char *path)
{
	int r = open_file(m, path);

	if (r == 0)
		r = talk_dial(m->cli, NULL, NULL, &m->client);
	if (r != 0)
		return r;
	r = import_lines(m);
	progress_done(&m->progress);
	if (m->cli->options.json)
		printf("{\"imported\":%lld}\n", (long long)m->n_imported);
	else
		printf("Memories imported: %lld\n", (long long)m->n_imported);
	return r;
}

int cmd_memory_import(struct cli *cli)
{
	struct import m = {.cli = cli};
	int r;

	if (cli->n_args != 1) {
		complain("memory import wants one FILE, or - for stdin");
		return EX_USAGE;
	}
	r = memory_target(cli, NEEDS_KOINE);
	if (r != 0)
		return r;
	buf_init(&m.text, LINE_MAX_BYTES);
	buf_init(&m.batch, LINE_MAX_BYTES);
	r = import_file(&m, cli->args[0]);
	koine_client_free(m.client);
	if (m.in && m.in != stdin)
		fclose(m.in);
	buf_done(&m.text);
	buf_done(&m.batch);
	return r;
}
