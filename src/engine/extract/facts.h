/*
 * Internal to extract/: what an agent is asked, and what it answers: one fact in a line,
 *
 *	NAMES | TIME | FACT
 *
 * The answer is a stranger's text: lines that are not like this are ignored, and nothing in them
 * is more than text.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/text.h"
#include "store/history/extract.h"

enum {
	FACTS_MAX = 20, /* of one answer */
	FACT_SUBJECTS_MAX = 8,
	FACT_BYTES_MAX = 400,
	FACT_NAME_BYTES_MAX = 80,
};

struct fact {
	struct text text;
	struct text subjects[FACT_SUBJECTS_MAX];
	unsigned n_subjects;
	int64_t time_ms; /* 0: not said */
	bool known;      /* it is in memory already */
};

/* The question about what was said. */
void facts_ask(struct buf *out, const struct store_said *said, unsigned n);

/* The facts of an answer, which must stay; at most FACTS_MAX. Times after now_ms do not count. */
unsigned facts_read(struct text answer, int64_t now_ms, struct fact facts[FACTS_MAX]);
