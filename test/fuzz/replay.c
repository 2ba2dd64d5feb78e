/*
 * Feeds a harness with its seeds, without a fuzzer, for ./dev test: each seed whole, cut at up to 200 places, and with
 * small changes. Each run feeds the same inputs, so a failure is repeatable, and it needs no build of its own.
 *
 *	fuzz_NAME FOLDER [CHANGES]
 *
 * CHANGES is the number of changed inputs, which all seeds share; 1000 without it. A fault prints the input that caused it.
 */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sanitizer/common_interface_defs.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEED_MAX = 64 * 1024, N_CUTS = 200, N_SHOWN = 2048 };

struct input {
	unsigned char data[2 * SEED_MAX];
	size_t len;
};

static struct input seed, other, changed;
static const char *seed_name = "";
static uint64_t random_state = 0x9e3779b97f4a7c15;

/* The input that the harness is reading. */
static const struct input *fed;
static size_t fed_len;

static void show_input(void)
{
	fprintf(stderr, "\nan input of %zu bytes, made of the seed %s:", fed_len, seed_name);
	for (size_t i = 0; fed && i < fed_len && i < N_SHOWN; i++)
		fprintf(stderr, "%s%02x", i % 32 ? " " : "\n", fed->data[i]);
	fprintf(stderr, "\n");
}

static void on_abort(int number)
{
	show_input();
	signal(number, SIG_DFL);
	raise(number);
}

/* In a block of its exact size, so that a read past the end is noticed. */
static void feed(const struct input *in, size_t len)
{
	uint8_t *data = malloc(len ? len : 1);

	if (!data)
		abort();
	memcpy(data, in->data, len);
	fed = in;
	fed_len = len;
	LLVMFuzzerTestOneInput(data, len);
	free(data);
}

static size_t below(size_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return n ? (size_t)(random_state % n) : 0;
}

static void feed_cuts(void)
{
	size_t step = seed.len / N_CUTS + 1;

	for (size_t len = 0; len < seed.len; len += step)
		feed(&seed, len);
}

/* ---- small changes ---- */

static void set_byte(struct input *in)
{
	static const unsigned char bytes[] =
		"\0\1\x7f\x80\xff \t\r\n\"'\\/{}[]():;,.=-+#&%<>09aZ\xc3\xe2\xf0";

	if (in->len > 0)
		in->data[below(in->len)] =
			below(2) ? bytes[below(sizeof(bytes) - 1)] : (unsigned char)below(256);
}

static void flip_bit(struct input *in)
{
	if (in->len > 0)
		in->data[below(in->len)] ^= (unsigned char)(1U << below(8));
}

static void remove_some(struct input *in)
{
	size_t from = below(in->len), n = 1 + below(8);

	if (n > in->len - from)
		n = in->len - from;
	memmove(in->data + from, in->data + from + n, in->len - from - n);
	in->len -= n;
}

/* Inserts a copy of n bytes of `source` at a place of `in`. */
static void insert(struct input *in, const struct input *source, size_t most)
{
	unsigned char copy[256];
	size_t at = below(in->len + 1), from = below(source->len), n = 1 + below(most);

	if (n > source->len - from)
		n = source->len - from;
	if (n > sizeof(copy) || in->len + n > SEED_MAX)
		return;
	memcpy(copy, source->data + from, n);
	memmove(in->data + at + n, in->data + at, in->len - at);
	memcpy(in->data + at, copy, n);
	in->len += n;
}

static void repeat_some(struct input *in)
{
	insert(in, in, 16);
}

static void take_of_another_seed(struct input *in)
{
	insert(in, &other, 256);
}

static void feed_changed(unsigned n)
{
	static void (*const changes[])(struct input * in) = {
		set_byte, set_byte, flip_bit, remove_some, repeat_some, take_of_another_seed};

	for (unsigned i = 0; i < n; i++) {
		memcpy(changed.data, seed.data, seed.len);
		changed.len = seed.len;
		for (size_t k = 1 + below(4); k > 0; k--)
			changes[below(sizeof(changes) / sizeof(changes[0]))](&changed);
		feed(&changed, changed.len);
	}
}

/* ---- seeds ---- */

static void read_seed(const char *folder, const char *name, struct input *ret)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "rb");
	if (!f) {
		perror(path);
		exit(1);
	}
	ret->len = fread(ret->data, 1, SEED_MAX, f);
	fclose(f);
}

static int is_seed(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	unsigned n_changed = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
	struct dirent **names;
	int n = argc > 1 ? scandir(argv[1], &names, is_seed, alphasort) : 0;

	if (n <= 0) {
		fprintf(stderr, "usage: %s FOLDER [CHANGES], with seeds in FOLDER\n", argv[0]);
		return 2;
	}
	signal(SIGABRT, on_abort);
	__sanitizer_set_death_callback(show_input);
	for (int i = 0; i < n; i++) {
		seed_name = names[i]->d_name;
		read_seed(argv[1], seed_name, &seed);
		read_seed(argv[1], names[(i + 1) % n]->d_name, &other);
		feed(&seed, seed.len);
		feed_cuts();
		feed_changed(n_changed / (unsigned)n);
	}
	printf("%d seeds\n", n);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return 0;
}
