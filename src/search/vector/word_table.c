/* Words that are used alike; see word_table.h. */
#include "search/vector/word_table.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "search/vector.h"

enum {
	HEAD = 32,
	VERSION = 1,
	NAME_MAX_BYTES = 24,
	FORMS = 16,   /* words with the same beginning that are tried for another form */
	CLOSEST = 96, /* rows that are looked at for similar words: forms of one word are several */
};

/* Less is chance. */
static const float LEAST_COSINE = 0.4f;

/* The similar words of a word, packed: the cosine in a byte, the length, the term. */
struct near_list {
	uint8_t n;
	uint8_t packed[];
};

struct word_table {
	size_t n;
	size_t dim;
	const char *scales;
	const char *ends;
	const int8_t *rows;
	const char *names;
	_Atomic(struct near_list *) *near; /* NULL until somebody asks for it */
};

/* ---- reading ---- */

static uint32_t number_at(const char *at)
{
	uint32_t n;

	memcpy(&n, at, sizeof(n));
	return le32toh(n);
}

static uint64_t long_at(const char *at)
{
	uint64_t n;

	memcpy(&n, at, sizeof(n));
	return le64toh(n);
}

static float float_at(const char *at)
{
	uint32_t bits = number_at(at);
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

uint64_t word_table_checksum(const char *data, size_t len)
{
	uint64_t sum = 0xcbf29ce484222325U;

	for (size_t i = 0; i + 8 <= len; i += 8) {
		sum = (sum ^ long_at(data + i)) * 0x100000001b3U;
		sum ^= sum >> 32;
	}
	return sum;
}

static int refuse_table(struct error *error, const char *what)
{
	return refuse(error, REFUSE_PARSE, "not a word table: %s", what);
}

static size_t padded(size_t n)
{
	return (n + 7) / 8 * 8;
}

static int read_head(struct word_table *t, struct text file, size_t *ret_names, struct error *error)
{
	if (file.len < HEAD || memcmp(file.data, "koinewrd", 8) != 0)
		return refuse_table(error, "invalid header");
	if (number_at(file.data + 8) != VERSION)
		return refuse(error, REFUSE_PARSE,
			      "word table version %u is not supported (expected %d)",
			      number_at(file.data + 8), VERSION);
	t->dim = number_at(file.data + 12);
	t->n = number_at(file.data + 16);
	*ret_names = number_at(file.data + 20);
	if (t->dim == 0 || t->dim > WORD_TABLE_DIM_MAX || t->n == 0 ||
	    t->n > WORD_TABLE_WORDS_MAX || *ret_names > t->n * NAME_MAX_BYTES)
		return refuse_table(error, "the header contains invalid sizes");
	if (file.len != padded(HEAD + t->n * (8 + t->dim) + *ret_names))
		return refuse_table(error, "the file's length does not match its header");
	if (long_at(file.data + 24) != word_table_checksum(file.data + HEAD, file.len - HEAD))
		return refuse_table(error, "checksum mismatch");
	return 0;
}

static struct text name_of(const struct word_table *t, size_t row)
{
	uint32_t from = row > 0 ? number_at(t->ends + 4 * (row - 1)) : 0;

	return (struct text) {t->names + from, number_at(t->ends + 4 * row) - from};
}

static int compare(struct text a, struct text b)
{
	size_t len = a.len < b.len ? a.len : b.len;
	int order = memcmp(a.data, b.data, len);

	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static bool is_name(struct text name)
{
	for (size_t i = 0; i < name.len; i++) {
		if (name.data[i] < 'a' || name.data[i] > 'z')
			return false;
	}
	return true;
}

static int check_names(const struct word_table *t, size_t bytes, struct error *error)
{
	uint32_t before = 0;

	for (size_t i = 0; i < t->n; i++) {
		uint32_t end = number_at(t->ends + 4 * i);

		if (end <= before || end - before > NAME_MAX_BYTES || end > bytes)
			return refuse_table(error, "the words overlap");
		before = end;
	}
	if (before != bytes)
		return refuse_table(error, "a word is missing");
	for (size_t i = 0; i < t->n; i++) {
		if (!is_name(name_of(t, i)))
			return refuse_table(
				error, "a word contains characters other than lowercase letters");
		if (i > 0 && compare(name_of(t, i - 1), name_of(t, i)) >= 0)
			return refuse_table(error, "the words are not sorted");
	}
	return 0;
}

/* A vector has at most the length one, so no number of it is larger than one. */
static int check_vectors(const struct word_table *t, struct error *error)
{
	size_t n_bad = 0;

	for (size_t i = 0; i < t->n; i++) {
		float scale = float_at(t->scales + 4 * i);

		if (!(scale > 0 && scale <= 1.0f / 127))
			return refuse_table(error, "a vector has a scale that is out of range");
	}
	for (size_t i = 0; i < t->n * t->dim; i++)
		n_bad += t->rows[i] == INT8_MIN;
	return n_bad > 0 ? refuse_table(error, "a vector contains a value that is out of range")
			 : 0;
}

int word_table_read(struct text file, struct word_table **ret_table, struct error *error)
{
	CLEANUP(freep) struct word_table *t = calloc(1, sizeof(*t));
	size_t n_names = 0;
	int r;

	if (!t)
		return -ENOMEM;
	r = read_head(t, file, &n_names, error);
	if (r != 0)
		return r;
	t->scales = file.data + HEAD;
	t->ends = t->scales + 4 * t->n;
	t->rows = (const int8_t *)t->ends + 4 * t->n;
	t->names = (const char *)t->rows + t->n * t->dim;
	r = check_names(t, n_names, error) ?: check_vectors(t, error);
	if (r != 0)
		return r;
	t->near = calloc(t->n, sizeof(t->near[0]));
	if (!t->near)
		return -ENOMEM;
	*ret_table = TAKE(t);
	return 0;
}

void word_table_free(struct word_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		free(atomic_load(&t->near[i]));
	free(t->near);
	free(t);
}

size_t word_table_size(const struct word_table *t)
{
	return t->n;
}

/* ---- similar words ---- */

/* The first row whose name is not before the word. */
static size_t lower_row(const struct word_table *t, struct text word)
{
	size_t low = 0;
	size_t high = t->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (compare(name_of(t, mid), word) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The word's row, or n. */
static size_t word_table_find_row(const struct word_table *t, struct text word)
{
	size_t row = lower_row(t, word);

	return row < t->n && compare(name_of(t, row), word) == 0 ? row : t->n;
}

/* The row of a form of the word that an index calls so, or n: of those that begin like it. */
static size_t find_form(const struct word_table *t, struct words *w, struct text term)
{
	size_t row = lower_row(t, term);

	for (size_t end = row + FORMS; row < end && row < t->n; row++) {
		struct text name = name_of(t, row);
		uint8_t flags;

		if (name.len < term.len || memcmp(name.data, term.data, term.len) != 0)
			break;
		if (compare(words_term(w, name, 0, &flags), term) == 0)
			return row;
	}
	return t->n;
}

bool word_table_has(const struct word_table *t, struct text folded)
{
	return word_table_find_row(t, folded) < t->n;
}

struct close_row {
	size_t row;
	float cosine;
};

/* The closest rows, best first; there are few, so each is moved into its place. */
static size_t find_close(const struct word_table *t, size_t row, struct close_row close[CLOSEST])
{
	const int8_t *own = t->rows + row * t->dim;
	float scale = float_at(t->scales + 4 * row);
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		int32_t dot = vector_dot_bytes(own, t->rows + i * t->dim, t->dim);
		float cosine = (float)dot * scale * float_at(t->scales + 4 * i);
		size_t at = n;

		if (cosine < LEAST_COSINE || i == row ||
		    (n == CLOSEST && cosine <= close[n - 1].cosine))
			continue;
		if (n < CLOSEST)
			n++;
		else
			at--;
		for (; at > 0 && close[at - 1].cosine < cosine; at--)
			close[at] = close[at - 1];
		close[at] = (struct close_row) {i, cosine};
	}
	return n;
}

static bool is_known(const struct near_word *near, size_t n, struct text term)
{
	for (size_t i = 0; i < n; i++) {
		if (near[i].len == term.len && memcmp(near[i].term, term.data, term.len) == 0)
			return true;
	}
	return false;
}

/* Other forms of the word, or of one that is there already, add nothing. */
static size_t find_near(const struct word_table *t, struct words *w, size_t row,
			struct near_word near[WORD_TABLE_NEAR_MAX])
{
	struct close_row close[CLOSEST];
	size_t n_close = find_close(t, row, close);
	uint8_t flags;
	struct text own = words_term(w, name_of(t, row), 0, &flags);
	char own_bytes[WORD_BYTES_MAX];
	size_t own_len = own.len;
	size_t n = 0;

	memcpy(own_bytes, own.data, own.len);
	for (size_t i = 0; i < n_close && n < WORD_TABLE_NEAR_MAX; i++) {
		struct text term = words_term(w, name_of(t, close[i].row), 0, &flags);

		if ((flags & (WORD_STOP | WORD_TIME)) || is_known(near, n, term) ||
		    (term.len == own_len && memcmp(term.data, own_bytes, own_len) == 0))
			continue;
		near[n].cosine = fminf(close[i].cosine, 1);
		near[n].len = (uint8_t)term.len;
		memcpy(near[n++].term, term.data, term.len);
	}
	return n;
}

static struct near_list *pack(const struct near_word *near, size_t n)
{
	struct near_list *list;
	size_t bytes = 0;
	uint8_t *at;

	for (size_t i = 0; i < n; i++)
		bytes += 2U + near[i].len;
	list = malloc(sizeof(*list) + bytes);
	if (!list)
		return NULL;
	list->n = (uint8_t)n;
	at = list->packed;
	for (size_t i = 0; i < n; i++) {
		*at++ = (uint8_t)lrintf(near[i].cosine * UINT8_MAX);
		*at++ = near[i].len;
		memcpy(at, near[i].term, near[i].len);
		at += near[i].len;
	}
	return list;
}

static void unpack(const struct near_list *list, struct near_word *near)
{
	const uint8_t *at = list->packed;

	for (size_t i = 0; i < list->n; i++) {
		near[i].cosine = (float)*at++ / UINT8_MAX;
		near[i].len = *at++;
		memcpy(near[i].term, at, near[i].len);
		at += near[i].len;
	}
}

/* Two threads may find out the same at once; the second one's list is dropped. */
static const struct near_list *list_of(struct word_table *t, struct words *w, size_t row)
{
	struct near_list *list = atomic_load_explicit(&t->near[row], memory_order_acquire);
	struct near_list *known = NULL;
	struct near_word near[WORD_TABLE_NEAR_MAX];

	if (list)
		return list;
	list = pack(near, find_near(t, w, row, near));
	if (!list || atomic_compare_exchange_strong(&t->near[row], &known, list))
		return list;
	free(list);
	return known;
}

size_t word_table_near(struct word_table *t, struct words *w, struct text folded, struct text term,
		       struct near_word ret_near[WORD_TABLE_NEAR_MAX])
{
	size_t row = word_table_find_row(t, folded);
	const struct near_list *list;

	if (row == t->n && term.len > 0)
		row = find_form(t, w, term);
	list = row < t->n ? list_of(t, w, row) : NULL;
	if (!list)
		return 0;
	unpack(list, ret_near);
	return list->n;
}
