/* Where the table of word vectors is: as set, or in the first default place that has one. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "daemon/life.h"
#include "search/vector/word_table.h"

enum { PLACES = 2 };

/* Below --root only there: what else is on this machine must make no difference. */
static unsigned default_places(const struct settings *s, char places[PLACES][PATH_LEN])
{
	if (s->root[0]) {
		snprintf(places[0], PATH_LEN, "%.*s/words.bin", PATH_LEN - 12, s->root);
		return 1;
	}
	paths_words(places[0]);
	snprintf(places[1], PATH_LEN, "%s/words.bin", KOINE_DATA);
	return PLACES;
}

/* A table that nobody named is not worth refusing to start. */
static int open_default(const struct settings *s, struct word_file **ret_file)
{
	char places[PLACES][PATH_LEN];
	unsigned n = default_places(s, places);

	for (unsigned i = 0; i < n; i++) {
		struct why why = {0};
		int r = word_file_open(places[i], ret_file, &why);

		if (r <= 0)
			return r;
		if (r != REFUSE_NOT_FOUND)
			log_warn("word table not used", "reason=\"%s\"", why.text);
	}
	return 0;
}

int words_open(const struct settings *s, struct word_file **ret_file, struct why *why)
{
	char path[PATH_LEN];

	*ret_file = NULL;
	if (!s->memory_enabled || strcmp(s->words, "off") == 0)
		return 0;
	if (!s->words[0])
		return open_default(s, ret_file);
	if (!paths_expand(s->words, path))
		return refuse(why, REFUSE_PARAMS, "cannot expand memory.words = %s: no home folder",
			      s->words);
	return word_file_open(path, ret_file, why);
}
