#include "agent/argv.h"

#include <stdlib.h>
#include <string.h>

struct argv {
	char **words; /* NULL: it is measured */
	char *at;
	unsigned n;
	size_t size; /* of the words, NULs included */
};

static void put(struct argv *a, const char *data, size_t len)
{
	if (a->words && len > 0)
		a->at = mempcpy(a->at, data, len);
	a->size += len;
}

static void begin(struct argv *a)
{
	if (a->words)
		a->words[a->n] = a->at;
	a->n++;
}

static void end(struct argv *a)
{
	put(a, "", 1);
}

void argv_add(struct argv *a, struct text word)
{
	begin(a);
	put(a, word.data, word.len);
	end(a);
}

void argv_add_words(struct argv *a, const char *const *words)
{
	for (; *words; words++)
		argv_add(a, text_of(*words));
}

static void begin_value(struct argv *a, const char *flag, bool dash)
{
	begin(a);
	put(a, flag, strlen(flag));
	if (dash) {
		put(a, "=", 1);
		return;
	}
	end(a);
	begin(a);
}

void argv_add_list(struct argv *a, const char *flag, const struct text *list, unsigned n)
{
	if (n == 0)
		return;
	begin_value(a, flag, list[0].len > 0 && list[0].data[0] == '-');
	for (unsigned i = 0; i < n; i++) {
		if (i > 0)
			put(a, ",", 1);
		put(a, list[i].data, list[i].len);
	}
	end(a);
}

void argv_add_flag(struct argv *a, const char *flag, struct text value)
{
	argv_add_list(a, flag, &value, value.len > 0);
}

char **argv_make(void (*fill)(struct argv *a, const void *arg), const void *arg)
{
	struct argv measured = {0};
	struct argv a = {0};

	fill(&measured, arg);
	a.words = malloc((measured.n + 1) * sizeof(a.words[0]) + measured.size);
	if (!a.words)
		return NULL;
	a.at = (char *)&a.words[measured.n + 1];
	fill(&a, arg);
	a.words[a.n] = NULL;
	return a.words;
}
