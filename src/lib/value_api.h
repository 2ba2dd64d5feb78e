/* A document of the public API: one JSON text and the tree that was read from it. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/value.h"
#include "base/error.h"
#include "koine/koine.h"
#include "wire/json.h"

struct koine_doc {
	struct arena arena; /* holds the copy of the text, and the tree */
	struct value *root;
};

/* Fills a zeroed document. After any result but 0 there is nothing to undo. */
int doc_read(struct koine_doc *doc, const char *text, size_t len, struct error *error);
void doc_done(struct koine_doc *doc);

/* A public value is the inner one under another name. */
static inline const struct koine_value *value_public(const struct value *v)
{
	return (const struct koine_value *)v;
}

static inline const struct value *value_inner(const struct koine_value *v)
{
	return (const struct value *)v;
}

/* A JSON writer of the public API. It writes into its own buffer, or into another: a call's. */
struct koine_json {
	struct json json;
	struct buf *out; /* &own, or the buffer it was put over */
	struct buf own;
};

/* A writer over `out`, which outlives it; there is nothing to free. */
static inline void koine_json_over(struct koine_json *j, struct buf *out)
{
	*j = (struct koine_json) {.json = json_writer(out), .out = out};
}
