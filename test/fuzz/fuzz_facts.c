/* Any answer of an agent that was asked for facts: few, short, plain, and within the answer. */
#include "../feed.h"

#include "base/utf8.h"
#include "engine/extract/facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct text t, struct text answer)
{
	FEED_CHECK(t.data >= answer.data && t.data + t.len <= answer.data + answer.len);
	FEED_CHECK(utf8_is_valid(t.data, t.len));
	for (size_t i = 0; i < t.len; i++)
		FEED_CHECK((unsigned char)t.data[i] >= ' ' && t.data[i] != 0x7f &&
			   t.data[i] != '|');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int64_t now_ms = 1700000000000;
	struct fact facts[FACTS_MAX];
	char *exact = malloc(size ? size : 1);
	const struct text answer = {.data = exact, .len = size};
	unsigned n;

	FEED_CHECK(exact);
	if (size > 0)
		memcpy(exact, data, size);
	n = facts_read(answer, now_ms, facts);
	FEED_CHECK(n <= FACTS_MAX);
	for (unsigned i = 0; i < n; i++) {
		check_within(facts[i].text, answer);
		FEED_CHECK(facts[i].text.len > 0 && facts[i].text.len <= FACT_BYTES_MAX);
		FEED_CHECK(facts[i].time_ms >= 0 && facts[i].time_ms <= now_ms);
		FEED_CHECK(facts[i].n_subjects <= FACT_SUBJECTS_MAX);
		for (unsigned k = 0; k < facts[i].n_subjects; k++)
			check_within(facts[i].subjects[k], answer);
	}
	free(exact);
	return 0;
}
