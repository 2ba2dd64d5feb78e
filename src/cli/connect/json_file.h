/*
 * A JSON file as it is: the tree of its values, and where each stands.
 *
 * Comments and trailing commas are replaced with as many blanks before it is parsed, so places in
 * the tree are places in the file.
 */
#pragma once

#include <koine/koine.h>

#include "cli/connect/edit.h"

struct span {
	size_t start;
	size_t end;
};

struct json_file {
	struct text text;
	struct buf plain;  /* without comments; line ends inside of them are blanks, too */
	struct buf strict; /* and without trailing commas: what was parsed */
	struct koine_doc *doc;
	const struct koine_value *root; /* NULL: there is none, only blanks and comments */
	struct span span;               /* of the root */
};

/* The text must outlive it. Without `comments` they are refused. */
int json_file_open(struct json_file *f, struct text text, bool comments, struct why *why);
void json_file_close(struct json_file *f);

struct span json_file_span(const struct json_file *f, const struct koine_value *v);
/* With its key, if it is a member. */
struct span json_file_whole(const struct json_file *f, const struct koine_value *v);

/* The member of an object; NULL: none. Refuses a key that is there twice. */
int json_file_member(const struct json_file *f, const struct koine_value *v, struct text key,
		     const struct koine_value **ret_member, struct why *why);

/* Where the next thing that is no blank stands, in either form; `end` if there is nothing. */
size_t json_file_skip(const struct buf *b, size_t at, size_t end);

/* Whether both mean the same. */
bool json_value_equal(const struct koine_value *a, const struct koine_value *b);
