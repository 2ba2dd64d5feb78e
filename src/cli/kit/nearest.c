#include "cli/kit/nearest.h"

#include <string.h>

enum { LONGEST = 63 };

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* How many letters were omitted, added or changed; two swapped letters count as one. */
static unsigned distance(struct text a, struct text b)
{
	unsigned rows[3][LONGEST + 1];
	unsigned *before = rows[0];
	unsigned *last = rows[1];
	unsigned *now = rows[2];

	for (size_t j = 0; j <= b.len; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= a.len; i++) {
		unsigned *spare = before;

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b.len; j++) {
			unsigned change = a.data[i - 1] == b.data[j - 1] ? 0 : 1;

			now[j] = smallest(last[j] + 1, now[j - 1] + 1, last[j - 1] + change);
			if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
			    a.data[i - 2] == b.data[j - 1] && before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[b.len];
}

void nearest_init(struct nearest *n, const char *wanted)
{
	size_t len = strlen(wanted);

	/* A third of the letters may be wrong, and always one. */
	*n = (struct nearest) {.wanted = wanted, .within = len < 6 ? 2 : (unsigned)(len / 3 + 1)};
}

void nearest_offer(struct nearest *n, struct text name)
{
	unsigned d;

	if (name.len > LONGEST)
		return;
	d = distance(text_of(n->wanted), name);
	/* With two mistakes the first letter must be right: version does not mean session. */
	if (d >= n->within || (d > 1 && n->wanted[0] != name.data[0]))
		return;
	n->within = d;
	memcpy(n->name, name.data, name.len);
	n->name[name.len] = '\0';
}
