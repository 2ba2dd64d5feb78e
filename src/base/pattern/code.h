/* The program that an expression becomes: parse.c writes it, pattern.c runs it. */
#pragma once

#include "base/pattern/pattern.h"

enum pattern_op {
	OP_BYTE,     /* this one */
	OP_SET,      /* one of these */
	OP_BEGIN,    /* at the start of the text; like the next three it consumes no byte */
	OP_END,      /* at its end */
	OP_WORD,     /* at a word boundary */
	OP_NOT_WORD, /* anywhere but at one */
	OP_SPLIT,    /* continues at both */
	OP_JUMP,
	OP_FOUND,
};

/* Jumps are relative, so that code can be moved and copied. */
struct pattern_step {
	uint8_t op;
	uint8_t byte;
	uint16_t set;
	int16_t to;
	int16_t or_to; /* OP_SPLIT */
};

struct pattern_set {
	uint64_t bits[4];
};

struct pattern_code {
	struct pattern_step steps[PATTERN_CODE_MAX];
	unsigned n;
	struct pattern_set sets[PATTERN_MAX];
	unsigned n_sets;
};

static inline void set_add(struct pattern_set *s, unsigned char c)
{
	s->bits[c >> 6] |= 1ULL << (c & 63);
}

static inline bool set_has(const struct pattern_set *s, unsigned char c)
{
	return s->bits[c >> 6] >> (c & 63) & 1;
}

static inline bool is_word_byte(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_';
}

/* Refuses what is not an expression, or too large. */
int pattern_parse(struct text expression, struct pattern_code *code, struct error *error);
