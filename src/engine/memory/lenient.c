#include "engine/memory/lenient.h"
#include "engine/memory/duplicates.h"

#include <math.h>

enum {
	USUAL_LIMIT = 5,
	ALIKE_MAX = 3,
	ALIKE_LOOKED_AT = 10,
	ALIKE_TEXT_MAX = 2048, /* bytes that are compared */
};

static const double alike_overlap = 0.6;

static const double usual_score = 0.7;
static const double usual_importance = 0.7;

struct text memory_lenient_category(struct text given)
{
	static const struct {
		const char *name, *plural;
	} known[] = {{"preference", "preferences"},
		     {"decision", "decisions"},
		     {"fact", "facts"},
		     {"entity", "entities"}};

	if (given.len == 0)
		return (struct text) {0};
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (text_is(given, known[i].name) || text_is(given, known[i].plural))
			return text_of(known[i].name);
	}
	return TEXT("other");
}

double memory_lenient_importance(double given)
{
	if (!(given > 0) || !isfinite(given))
		return usual_importance;
	return given < 1 ? given : 1;
}

int64_t memory_lenient_limit(int64_t given)
{
	return given > 0 ? given : USUAL_LIMIT;
}

void memory_lenient_least(double given, struct memory_query *q)
{
	q->least_of_words = given > 0 && isfinite(given);
	q->least = q->least_of_words ? given : usual_score;
}

int memory_lenient_known(struct memories *m, int lane, struct arena *a, struct text content,
			 const struct memory_asker *by, struct memory_wait *wait,
			 struct memory *ret_memory, bool *ret_known, struct error *error)
{
	const struct memory_query q = {
		.text = content, .limit = ALIKE_MAX, .by = *by, .wait = wait};
	struct memory *hits;
	unsigned n;
	int r = memory_search(m, lane, a, &q, &hits, &n, error);

	*ret_known = false;
	for (unsigned i = 0; r == 0 && i < n && !*ret_known; i++) {
		*ret_known = text_equal(text_trim(hits[i].content, TEXT_SPACE),
					text_trim(content, TEXT_SPACE));
		*ret_memory = hits[i];
	}
	return r;
}

static struct text compared(struct text content)
{
	return text_cut(content, ALIKE_TEXT_MAX);
}

int memory_lenient_alike(struct memories *m, int lane, struct arena *a, struct text content,
			 const struct memory_asker *by, struct memory_wait *wait,
			 struct memory **ret_rows, unsigned *ret_n, struct error *error)
{
	const struct memory_query q = {
		.text = compared(content), .limit = ALIKE_LOOKED_AT, .by = *by, .wait = wait};
	struct memory *hits;
	unsigned n;
	unsigned alike = 0;
	int r = memory_search(m, lane, a, &q, &hits, &n, error);

	if (r != 0)
		return r;
	for (unsigned i = 0; i < n && alike < MEMORY_ALIKE_MAX; i++) {
		if (duplicates_overlap(q.text, compared(hits[i].content)) >= alike_overlap)
			hits[alike++] = hits[i];
	}
	*ret_rows = hits;
	*ret_n = alike;
	return 0;
}
