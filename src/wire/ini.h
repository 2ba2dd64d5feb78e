/*
 * The lines of a settings file, as koine.conf(5) describes them:
 *
 *	[section]		whatever follows the bracket is ignored
 *	key = value ; comment	or "key: value"; the value may be empty
 *	; comment		or "# comment"
 *
 * A comment that follows a value begins with a semicolon after white space. White space around lines, keys and values
 * is skipped: an indented line does not continue the line before it. A byte order mark at the start is skipped, too.
 * Nothing is copied, and every other byte of the file belongs to a line, so a reader can also edit the file.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"

/* Bytes of a line without the white space around it. A longer line is invalid. */
enum { INI_LINE_MAX = 8192 };

enum ini_kind {
	INI_EMPTY, /* or a comment */
	INI_SECTION,
	INI_PAIR,
	INI_INVALID,
};

struct ini_line {
	enum ini_kind kind;
	unsigned number;   /* from 1 */
	struct text whole; /* with white space, without the end of the line */
	struct text end;   /* "\n", "\r\n" or "" */
	struct text name;  /* of the section, or the key */
	struct text value; /* of the key, without its comment */
	const char *error; /* why the line is invalid */
};

struct ini {
	struct text rest;
	unsigned n_lines;
};

void ini_init(struct ini *ini, struct text file);

/* Reads the next line, also after an invalid one. False at the end of the file. */
bool ini_next(struct ini *ini, struct ini_line *ret_line);

/* The text before a comment that follows a value, with the white space between them. */
struct text ini_uncommented(struct text t);
