/* "Did you mean": the distance between two words in typing mistakes. */
#include <string.h>

#include "cli/kit/cli.h"

enum { LONGEST = 63 };

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Letters left out, added or changed; two that changed places count as one. */
static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned rows[3][LONGEST + 1];
	unsigned *before = rows[0];
	unsigned *last = rows[1];
	unsigned *now = rows[2];

	for (size_t j = 0; j <= b_len; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		unsigned *spare = before;

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			unsigned change = a[i - 1] == b[j - 1] ? 0 : 1;

			now[j] = smallest(last[j] + 1, now[j - 1] + 1, last[j - 1] + change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[b_len];
}

void nearest_init(struct nearest *n, const char *wanted)
{
	size_t len = strlen(wanted);

	/* A third of the letters may be wrong, and always one. */
	*n = (struct nearest) {.wanted = wanted, .within = len < 6 ? 2 : (unsigned)(len / 3 + 1)};
}

void nearest_offer(struct nearest *n, const char *name, size_t len)
{
	unsigned d;

	if (len > LONGEST)
		return;
	d = distance(n->wanted, strlen(n->wanted), name, len);
	/* Whoever mistypes twice still begins as the word does: version is no session. */
	if (d >= n->within || (d > 1 && n->wanted[0] != name[0]))
		return;
	n->within = d;
	memcpy(n->name, name, len);
	n->name[len] = '\0';
}
