/* The tables that the file, the environment, --set and --check use. */
#pragma once

#include "daemon/settings/settings.h"

struct settings_table {
	const struct setting *rows; /* NULL: the dialects' tables come here */
	unsigned n;
};

extern const struct settings_table settings_tables[];
extern const unsigned n_settings_tables;

/* Settings that no longer exist, and what to tell those who still have them. */
struct setting_gone {
	const char *section;
	const char *key;
	const char *text;
};

extern const struct setting_gone settings_gone[];
extern const unsigned n_settings_gone;

/* The row with that number, counted through all tables, and the struct that it is about; NULL
 * after the last. */
const struct setting *settings_row(const struct settings *s, unsigned i, void **ret_base);

enum { ENV_NAME_MAX = 128 };

/* KOINE_SECTION_KEY. */
void setting_variable(const char *section, const char *key, char out[ENV_NAME_MAX]);
