/* A memory: what an agent learnt. Its schema says how its members are stored and shown. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/schema.h"

#define MEMORY_NEVER INT64_MAX

/* Whether somebody has to look at a memory that an agent made; the numbers are the store's. */
enum memory_review {
	REVIEW_NONE,
	REVIEW_OPEN, /* it is found meanwhile */
	REVIEW_HELD, /* it is not found before */
	N_MEMORY_REVIEWS,
};

enum { MEMORY_WHY_WORDS = 8 };

/* Why a search found it: the parts of its score, which add up to 1, and words that it has. */
struct memory_why {
	double words;   /* the question's words in its text */
	double alike;   /* others in their place */
	double context; /* words of its neighbours in its chat */
	double names;   /* it is about, or mentions, a name of the question */
	double dates;   /* it is of a time that the question names */
	double kind;    /* it looks like the kind of answer that is asked for */
	struct text matched[MEMORY_WHY_WORDS];
	unsigned n_matched;
};

struct memory {
	int64_t seq;    /* assigned by the store: grows, and is never reused */
	struct text id; /* a UUID in lower case */
	struct text content;
	struct text source;
	struct text category;  /* preference, decision, fact, entity or other */
	double importance;     /* 0 to 1 */
	struct text subjects;  /* each terminated by a line feed */
	struct text owner;     /* a user; {NULL, 0}: nobody's */
	struct text chat;      /* where it was learnt, or whose it is; {NULL, 0}: no chat */
	struct text chat_type; /* of that chat, as its client said; {NULL, 0}: unknown */
	struct text project;   /* the same of a project: see model/project.h */
	bool shared;
	int64_t created_ms; /* its place in time; seq breaks ties */
	int64_t updated_ms;
	int64_t stored_ms;      /* when it reached us, whatever created_ms says */
	int64_t expires_ms;     /* or MEMORY_NEVER */
	struct text metadata;   /* the client's own, a JSON object on one line; empty: none */
	int64_t valid_from_ms;  /* since when it says this; 0: since created_ms */
	int64_t valid_until_ms; /* until when, if it was replaced; 0: it is valid */
	struct text replaces;   /* the id of the memory that it replaced; {NULL, 0}: none */
	struct text origin;     /* what it was drawn from: "conversation:ID"; {NULL, 0}: unknown */
	enum memory_review review;
	struct text replaced_by; /* the id of the one that replaced it; {NULL, 0}: none */

	/* Not stored: */
	double similarity;            /* of a search: 0 to 1, within one answer */
	bool repeated;                /* of memory_add: it already existed */
	struct texts duplicates;      /* of a search: ids of other spellings of it, behind it */
	const struct memory_why *why; /* of a search that explains; NULL: words did not find it */
	struct text tool_use_id; /* of a change, for its event: the agent's call that made it */
};

enum { N_MEMORY_CATEGORIES = 5 };

/* The category as a small number; an unknown one counts as "other", the last. */
unsigned char memory_category(struct text name);

/* Whether its owner sees it from everywhere, as the store's OWNED says with LEARNT_OPENLY. */
bool memory_is_open(const struct memory *m);

/* Counts of the memories that somebody sees. */
struct memory_totals {
	int64_t all; /* including those expired but not yet swept */
	int64_t expired;
	int64_t personal; /* have an owner */
	int64_t group;    /* with a chat and no owner */
	int64_t project;  /* with a project, and neither owner nor chat */
	int64_t common;   /* none of these */
	int64_t owners;
};

/* Flags of its members, in addition to those that all nouns share. */
enum {
	MEMORY_FOUND = MEMBER_OWN,      /* read for the hits of a search */
	MEMORY_TRACE = MEMBER_OWN << 1, /* reported when one is swept */
};

extern const struct schema memory_schema;
