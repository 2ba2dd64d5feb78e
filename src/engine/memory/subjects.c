#include "engine/memory/subjects.h"

struct text memory_subjects_join(struct arena *a, const struct text *subjects, unsigned n)
{
	size_t room = 1;
	size_t len = 0;
	char *out;

	for (unsigned i = 0; i < n; i++)
		room += subjects[i].len + 1;
	out = arena_alloc(a, room);
	if (!out)
		return (struct text) {0};
	for (unsigned i = 0; i < n; i++) {
		for (size_t at = 0; at < subjects[i].len; at++) {
			char c = subjects[i].data[at];

			out[len++] = c;
			if (c == '\n' || c == '\r')
				out[len - 1] = ' ';
		}
		if (subjects[i].len > 0)
			out[len++] = '\n';
	}
	return (struct text) {.data = out, .len = len};
}

unsigned memory_subjects_split(struct text joined, struct text *ret, unsigned max)
{
	const char *at = joined.data;
	const char *end = at + joined.len;
	unsigned n = 0;

	while (at < end && n < max) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		if (stop > at)
			ret[n++] = (struct text) {.data = at, .len = (size_t)(stop - at)};
		at = stop + 1;
	}
	return n;
}
