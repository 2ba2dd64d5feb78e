/*
 * A TOML file as it is: its headers and keys, and where each stands.
 *
 * Values are only measured: strings of all four kinds, lists and inline tables over several
 * lines are stepped over as what they are, so that nothing in them is taken for a key.
 */
#pragma once

#include "cli/connect/edit.h"

enum toml_kind {
	TOML_TABLE,       /* [a.b] */
	TOML_TABLE_ARRAY, /* [[a.b]] */
	TOML_KEY,         /* a.b = value */
};

enum { TOML_DEPTH_MAX = 16 };

/* The keys from the top of the file on, each without its quotes. */
struct toml_path {
	struct text keys[TOML_DEPTH_MAX];
	unsigned n;
};

struct toml_item {
	enum toml_kind kind;
	struct toml_path path;
	unsigned header; /* how many keys of the path are the header's */
	unsigned line;
	size_t start; /* of its first line */
	size_t end;   /* of its last, with the line's end */
	struct text value;
};

struct toml_file {
	struct text text;
	struct toml_item *items;
	size_t n_items;
};

/* The text must outlive it. */
int toml_file_open(struct toml_file *f, struct text text, struct error *error);
void toml_file_close(struct toml_file *f);

/* Whether one is at or below the other. */
bool toml_path_begins(const struct toml_path *p, const struct toml_path *with);
bool toml_path_equal(const struct toml_path *a, const struct toml_path *b);
