/*
 * The target of a request: its path, and the name=value pairs of its query. Decoding is
 * strict: a '%' that is not followed by two hex digits, and invalid UTF-8, are refused.
 */
#pragma once

#include "base/text.h"

/* At the first '?'. Without one the query is {NULL, 0}. */
void http_target_split(struct text target, struct text *ret_path, struct text *ret_query);

/* As they are in the query, not decoded. One without '=' has the value "". */
struct http_pair {
	struct text name;
	struct text value;
};

/* Takes the next pair off *rest; empty ones are skipped. False at the end. */
bool http_query_next(struct text *rest, struct http_pair *ret_pair);

/* Writes at most t.len bytes: '+' is a space, "%41" an 'A'. */
bool http_query_decode(struct text t, char *out, size_t *ret_len);
