/*
 * Made-up memories and questions, the same on every machine: people, places,
 * plans, tastes and dates in sentences whose words are spread as in real text
 * (few are frequent, most are rare).
 *
 * Each is made from its number alone, so that a question can be about a memory
 * that another program has stored.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { MADE_TEXT_MAX = 1024, MADE_WORDS_MAX = 16 };

/* Who has how many. User 0 is the one who asks. */
struct made_set {
	uint64_t n_memories;
	uint64_t n_users;
	uint64_t n_own; /* user 0's, spread evenly over the others */
};

struct made {
	char text[MADE_TEXT_MAX];
	size_t len;
	uint64_t user;
	uint64_t chat;
	int64_t time_s;
	const char *category;
	const char *person; /* whom it is about; NULL: nobody named as a subject */

	/* What it is made of. */
	const char *people[2];
	const char *place;
	char words[MADE_WORDS_MAX][32];
	size_t n_words;
};

void made_memory(const struct made_set *set, uint64_t number, struct made *ret);

/* A question about one of user 0's memories. */
void made_question(const struct made_set *set, uint64_t number, struct made *ret);

/* "MEMORIES[,USERS,OWN]"; -EINVAL for anything else. */
int made_set_parse(const char *text, struct made_set *ret);
