/* What can be done with a setting, given its row. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/setting.h"
#include "base/error.h"

enum { UIDS_MAX = 32 };

struct uids {
	uid_t list[UIDS_MAX];
	unsigned n;
};

/* `section` is what refusals call it. */
int setting_apply(const struct setting *row, void *base, const char *section, const char *value,
		  struct error *error);

/* Whether both have the same value there. */
bool setting_equal(const struct setting *row, const void *base, const void *other);
uint64_t setting_hash(const struct setting *row, const void *base);

/* Whether it is text that may be shown. */
bool setting_is_text(const struct setting *row);

/* The value alone, as a file has it; nothing for texts and secrets. */
void setting_write_value(const struct setting *row, const void *base, FILE *out);

/* Comment, key and value, in the form of a file. */
void setting_write(const struct setting *row, const void *base, FILE *out);
void setting_write_text(const char *key, const char *doc, const char *text, FILE *out);

int setting_parse_bool(const char *value, bool *ret);
