/* The tables that all ways to a setting go through: the file, the environment, --set and --check. */
#pragma once

#include "daemon/settings/settings.h"

struct settings_table {
	const struct setting *rows; /* NULL: those of the dialects come here, each its own */
	unsigned n;
};

extern const struct settings_table settings_tables[];
extern const unsigned n_settings_tables;

/* What there was once, and what to say to who still has it. */
struct setting_gone {
	const char *section;
	const char *key;
	const char *text;
};

extern const struct setting_gone settings_gone[];
extern const unsigned n_settings_gone;

/* The row of that number, counted through all tables, and what it is about; NULL behind the last. */
const struct setting *settings_row(const struct settings *s, unsigned i, void **ret_base);
