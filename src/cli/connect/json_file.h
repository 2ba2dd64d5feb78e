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
int json_file_open(struct json_file *f, struct text text, bool comments, struct error *error);
void json_file_close(struct json_file *f);

struct span json_file_span(const struct json_file *f, const struct koine_value *v);

/* The member of an object; NULL: none. Refuses a key that is there twice. */
int json_file_member(const struct json_file *f, const struct koine_value *v, struct text key,
		     const struct koine_value **ret_member, struct error *error);

/* Whether both mean the same. */
bool json_value_equal(const struct koine_value *a, const struct koine_value *b);

/* ---- changes in the file's own layout ---- */

/* A path, followed as far as it exists. */
struct json_place {
	struct text keys[EDIT_PATH_MAX];
	unsigned n_keys;
	unsigned depth;                 /* so many of the keys exist */
	const struct koine_value *at;   /* the value of the last that exists, or the root */
	const struct koine_value *over; /* what it is a member of; NULL for the root */
};

/* How the file is laid out. */
struct json_style {
	struct text newline;
	struct text unit; /* of indentation */
	bool lines;       /* a thing to a line */
};

struct json_style json_style_of(const struct json_file *f);

/* The blanks that the line begins with. */
struct text json_indent(const struct json_file *f, size_t at);

/* Writes a value in the file's style. `indent` is that of the line where it begins, and `deeper` how
 * many units of the style follow it. */
void json_write(const struct json_style *s, const struct koine_value *v, struct text indent,
		unsigned deeper, struct buf *out);

/* Adds a child at the end of an object or array. The chain of keys leads to the value; with
 * `in_array` the value stands in an array. An element has no keys. */
struct json_child {
	const struct text *keys;
	unsigned n_keys;
	const struct koine_value *value;
	bool in_array;
};

int json_insert(const struct json_file *f, const struct koine_value *into,
		const struct json_child *child, struct buf *out);

/* Removes a child of `from`, with its comma and its line. */
int json_remove(const struct json_file *f, const struct koine_value *from,
		const struct koine_value *child, struct buf *out);
