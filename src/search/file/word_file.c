/*
 * It is read, not mapped: a mapped file that somebody cuts short would end the daemon, and one that
 * somebody writes to would no longer be what was checked.
 */
#include "search/vector/word_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"

struct word_file {
	struct buf bytes;
	struct word_table *table;
	char path[];
};

void word_file_close(struct word_file *f)
{
	if (!f)
		return;
	word_table_free(f->table);
	buf_done(&f->bytes);
	free(f);
}

CLEANUP_POINTER(word_file, word_file_close)

static int refuse_reading(const char *path, int fault, struct error *error)
{
	return refuse(error, fault == ENOENT ? REFUSE_NOT_FOUND : REFUSE_UNAVAILABLE,
		      "cannot read the word table %s: %s", path, strerror(fault));
}

int word_file_open(const char *path, struct word_file **ret_file, struct error *error)
{
	CLEANUP(word_file_closep) struct word_file *f = calloc(1, sizeof(*f) + strlen(path) + 1);
	CLEANUP(closep) int fd = -1;
	struct error inner = {0};
	int r;

	if (!f)
		return -ENOMEM;
	memcpy(f->path, path, strlen(path) + 1);
	buf_init(&f->bytes, WORD_TABLE_BYTES_MAX);
	/* Without blocking, since it may be a FIFO. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return refuse_reading(path, errno, error);
	r = file_read_all(fd, &f->bytes);
	if (r != 0)
		return r == -ENOMEM ? r : refuse_reading(path, -r, error);
	r = word_table_read((struct text) {f->bytes.data, f->bytes.len}, &f->table, &inner);
	if (r > 0)
		return refuse(error, r, "%s: %s", path, inner.text);
	if (r == 0)
		*ret_file = TAKE(f);
	return r;
}

struct word_table *word_file_table(const struct word_file *f)
{
	return f ? f->table : NULL;
}

struct text word_file_path(const struct word_file *f)
{
	return f ? text_of(f->path) : (struct text) {0};
}

size_t word_file_words(const struct word_file *f)
{
	return f ? word_table_size(f->table) : 0;
}
