#include "engine/index/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "search/file/image.h"
#include "search/words.h"

enum {
	FORMAT = 1,
	STEP_BYTES = 4 << 20,
	STEP_CHECKS = 150000, /* memories, or places where a word occurs */
	SYNC_BYTES = 8 << 20,
};

static const char magic[8] = "koineidx";

/* At the start of the file, as it is in memory: it is for this machine. */
struct file_head {
	char magic[8];
	uint32_t format;
	uint32_t words;
	uint64_t fingerprint;
	char token[STORE_TOKEN_LEN];
	int64_t seq;
	int64_t change;
	struct search_head image;
	uint64_t sums[SEARCH_BLOCKS];
	uint64_t sum; /* of all before */
};

static uint64_t head_sum(const struct file_head *head)
{
	struct search_sum sum;

	search_sum_init(&sum);
	search_sum_add(&sum, head, offsetof(struct file_head, sum));
	return search_sum_end(&sum);
}

static int open_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 022) == 0)
		return fd;
	close(fd);
	return -EPERM;
}

static void file_name(char name[INDEX_FILE_NAME], const char *token, const char *ending)
{
	snprintf(name, INDEX_FILE_NAME, "%.*s.index%s", STORE_TOKEN_LEN, token, ending);
}

/* Where we are among the blocks. */
struct place {
	size_t block;
	size_t at;
	struct search_sum sum; /* of the block up to here */
};

static void next_block(struct place *p)
{
	p->block++;
	p->at = 0;
	search_sum_init(&p->sum);
}

/* ---- writing ---- */

struct index_writing {
	int folder;
	int file;
	struct file_head head;
	struct search_block blocks[SEARCH_BLOCKS];
	uint64_t *chats;
	struct place place;
	uint64_t bytes;
	size_t unsynced;
	char token[STORE_TOKEN_LEN + 1];
	char part[INDEX_FILE_NAME];
	bool done;
};

static int draw_token(struct index_writing *w)
{
	unsigned char random[STORE_TOKEN_LEN / 2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(w->token + 2 * i, 3, "%02x", random[i]);
	memcpy(w->head.token, w->token, STORE_TOKEN_LEN);
	return 0;
}

/* The head is written last: until then the file has none. */
static int make_file(struct index_writing *w, const char *folder)
{
	int r = draw_token(w) ?: file_make_folder(folder);

	if (r != 0)
		return r;
	w->folder = open_folder(folder);
	if (w->folder < 0)
		return w->folder;
	file_name(w->part, w->token, ".part");
	w->file = openat(w->folder, w->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			 0600);
	if (w->file < 0)
		return -errno;
	return lseek(w->file, sizeof(w->head), SEEK_SET) < 0 ? -errno : 0;
}

int index_writing_new(const char *folder, const struct search_index *index, uint64_t fingerprint,
		      const struct store_position *position, struct index_writing **ret_writing)
{
	struct index_writing *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->folder = w->file = -1;
	w->head.format = FORMAT;
	w->head.words = WORDS_VERSION;
	w->head.fingerprint = fingerprint;
	w->head.seq = position->seq;
	w->head.change = position->change;
	memcpy(w->head.magic, magic, sizeof(magic));
	search_sum_init(&w->place.sum);
	r = search_image(index, &w->head.image, w->blocks, &w->chats) ?: make_file(w, folder);
	if (r != 0) {
		index_writing_free(w);
		return r;
	}
	w->bytes = sizeof(w->head);
	for (size_t i = 0; i < SEARCH_BLOCKS; i++)
		w->bytes += w->blocks[i].len;
	*ret_writing = w;
	return 0;
}

void index_writing_free(struct index_writing *w)
{
	if (!w)
		return;
	if (w->file >= 0 && !w->done)
		(void)unlinkat(w->folder, w->part, 0);
	closep(&w->file);
	closep(&w->folder);
	free(w->chats);
	free(w);
}

const char *index_writing_token(const struct index_writing *w)
{
	return w->token;
}

uint64_t index_writing_bytes(const struct index_writing *w)
{
	return w->bytes;
}

static int index_file_finish(struct index_writing *w, bool *ret_done)
{
	char name[INDEX_FILE_NAME];

	w->head.sum = head_sum(&w->head);
	if (pwrite(w->file, &w->head, sizeof(w->head), 0) != (ssize_t)sizeof(w->head))
		return -EIO;
	if (fsync(w->file) != 0)
		return -errno;
	file_name(name, w->token, "");
	if (renameat(w->folder, w->part, w->folder, name) != 0)
		return -errno;
	w->done = *ret_done = true;
	return fsync(w->folder) != 0 ? -errno : 0;
}

/* Some at a time, so that the last call does not wait for all of it. */
static int sync_some(struct index_writing *w, size_t n)
{
	w->unsynced += n;
	if (w->unsynced < SYNC_BYTES)
		return 0;
	w->unsynced = 0;
	return fdatasync(w->file) != 0 ? -errno : 0;
}

int index_writing_step(struct index_writing *w, bool *ret_done)
{
	struct place *p = &w->place;
	size_t room = STEP_BYTES;
	int r = 0;

	*ret_done = false;
	while (r == 0 && room > 0 && p->block < SEARCH_BLOCKS) {
		const struct search_block *b = &w->blocks[p->block];
		size_t n = b->len - p->at < room ? b->len - p->at : room;

		/* All pieces but a block's last have a multiple of 32 bytes. */
		if (n < b->len - p->at)
			n &= ~(size_t)31;
		if (n == 0 && p->at < b->len)
			break;
		search_sum_add(&p->sum, (const char *)b->data + p->at, n);
		r = file_write_all(w->file, (const char *)b->data + p->at, n);
		p->at += n;
		room -= n;
		if (p->at == b->len) {
			w->head.sums[p->block] = search_sum_end(&p->sum);
			next_block(p);
		}
	}
	r = r ?: sync_some(w, STEP_BYTES - room);
	return r == 0 && p->block == SEARCH_BLOCKS ? index_file_finish(w, ret_done) : r;
}

/* ---- reading ---- */

struct index_reading {
	int file;
	struct file_head head;
	struct search_block blocks[SEARCH_BLOCKS];
	struct search_reading *reading;
	struct place place;
};

static int open_file(const char *folder_path, const char *token, uint64_t *ret_bytes)
{
	CLEANUP(closep) int folder = open_folder(folder_path);
	char name[INDEX_FILE_NAME];
	struct stat st;
	int file;

	if (folder < 0)
		return folder;
	file_name(name, token, "");
	file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (file < 0)
		return -errno;
	if (fstat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    (st.st_mode & 022) == 0 && st.st_size >= (off_t)sizeof(struct file_head)) {
		*ret_bytes = (uint64_t)st.st_size - sizeof(struct file_head);
		return file;
	}
	close(file);
	return -EBADMSG;
}

/* Fills all of it, or fails. */
static int read_all(int file, void *data, size_t len)
{
	char *at = data;

	while (len > 0) {
		ssize_t n = read(file, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int check_head(const struct file_head *h, const struct store_kept *kept,
		      uint64_t fingerprint)
{
	if (memcmp(h->magic, magic, sizeof(magic)) != 0 || h->sum != head_sum(h) ||
	    h->format != FORMAT || h->words != WORDS_VERSION || h->fingerprint != fingerprint ||
	    memcmp(h->token, kept->token, STORE_TOKEN_LEN) != 0 || h->seq != kept->position.seq ||
	    h->change != kept->position.change)
		return -EBADMSG;
	return 0;
}

int index_reading_new(const char *folder, const struct store_kept *kept, uint64_t fingerprint,
		      const struct search_index_opts *opts, struct index_reading **ret_reading)
{
	struct index_reading *r = calloc(1, sizeof(*r));
	uint64_t bytes = 0;
	int result;

	if (!r)
		return -ENOMEM;
	search_sum_init(&r->place.sum);
	r->file = open_file(folder, kept->token, &bytes);
	result = r->file < 0 ? r->file : read_all(r->file, &r->head, sizeof(r->head));
	if (result == 0)
		result = check_head(&r->head, kept, fingerprint)
				 ?: search_reading_new(&r->head.image, bytes, opts, &r->reading,
						       r->blocks);
	if (result != 0) {
		index_reading_free(r);
		return result;
	}
	*ret_reading = r;
	return 0;
}

void index_reading_free(struct index_reading *r)
{
	if (!r)
		return;
	search_reading_free(r->reading);
	closep(&r->file);
	free(r);
}

/* Summed while it is still in the cache. */
static int read_some(struct index_reading *r, size_t room)
{
	struct place *p = &r->place;
	int result = 0;

	while (result == 0 && room >= 32 && p->block < SEARCH_BLOCKS) {
		const struct search_block *b = &r->blocks[p->block];
		size_t n = b->len - p->at < room ? b->len - p->at : room & ~(size_t)31;

		result = read_all(r->file, (char *)b->data + p->at, n);
		if (result != 0)
			break;
		search_sum_add(&p->sum, (const char *)b->data + p->at, n);
		p->at += n;
		room -= n;
		if (p->at < b->len)
			continue;
		if (search_sum_end(&p->sum) != r->head.sums[p->block])
			return -EBADMSG;
		next_block(p);
	}
	return result;
}

int index_reading_step(struct index_reading *r, bool *ret_done)
{
	*ret_done = false;
	if (r->place.block < SEARCH_BLOCKS)
		return read_some(r, STEP_BYTES);
	return search_reading_step(r->reading, STEP_CHECKS, ret_done);
}

struct search_index *index_reading_take(struct index_reading *r)
{
	struct search_index *index = search_reading_take(r->reading);

	r->reading = NULL;
	index_reading_free(r);
	return index;
}

/* ---- removing ---- */

bool index_file_exists(const char *folder_path, const char *token)
{
	CLEANUP(closep) int folder = open_folder(folder_path);
	char name[INDEX_FILE_NAME];

	file_name(name, token, "");
	return folder >= 0 && faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void index_file_remove(const char *folder_path, const char *token)
{
	CLEANUP(closep) int folder = open_folder(folder_path);
	char name[INDEX_FILE_NAME];

	file_name(name, token, "");
	if (folder >= 0)
		(void)unlinkat(folder, name, 0);
}

/* "TOKEN.index" or "TOKEN.index.part". */
static bool is_ours(const char *name)
{
	size_t n = strspn(name, "0123456789abcdef");

	return n == STORE_TOKEN_LEN &&
	       (strcmp(name + n, ".index") == 0 || strcmp(name + n, ".index.part") == 0);
}

static bool index_file_is_wanted(const char *name, const char (*wanted)[STORE_TOKEN_LEN + 1],
				 size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strncmp(name, wanted[i], STORE_TOKEN_LEN) == 0)
			return strcmp(name + STORE_TOKEN_LEN, ".index") == 0;
	}
	return false;
}

void index_files_sweep(const char *folder, const char (*wanted)[STORE_TOKEN_LEN + 1], size_t n)
{
	int fd = open_folder(folder);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!dir) {
		closep(&fd);
		return;
	}
	while ((entry = readdir(dir))) {
		if (is_ours(entry->d_name) && !index_file_is_wanted(entry->d_name, wanted, n))
			(void)unlinkat(fd, entry->d_name, 0);
	}
	closedir(dir);
}
