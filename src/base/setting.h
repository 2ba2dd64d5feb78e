/*
 * One setting: a row with its name, its type and where its value is kept. The file, the
 * environment, --set and --check all use tables of such rows.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct error;

enum { PATH_LEN = 512, VARIABLES_MAX = 1024 };

enum setting_type {
	SET_BOOL,     /* bool */
	SET_UNSIGNED, /* unsigned */
	SET_SIZE,     /* size_t; may end in k, m or g */
	SET_SECONDS,  /* unsigned, in milliseconds */
	SET_DECIMAL,  /* double, or -1 for none: written as nothing */
	SET_WORD,     /* unsigned: index of the word */
	SET_UIDS,     /* struct uids */
	SET_TEXT,     /* char[max], one line */
	SET_PATH,     /* char[max] */
	SET_URL,      /* char[max], validated by the row's check */
	SET_SECRET,   /* char[max], never shown */
	SET_VARIABLE, /* char[max], the name of a variable of ours that holds a secret */
	SET_VARIABLES /* char[max]: NAME, NAME* and NAME=VALUE for a program; no value is shown */
};

struct setting {
	const char *section;
	const char *key;
	enum setting_type type;
	size_t offset; /* offset in the table's struct */
	uint64_t min;
	uint64_t max;
	const char *doc;
	const char *const *words;                             /* SET_WORD: NULL-terminated */
	int (*check)(const char *value, struct error *error); /* SET_URL */
	unsigned kinds; /* as bits, the kinds of the table's struct that it applies to; 0: all */
	/* A variable that holds a secret: the value of a SET_SECRET, or what stands in for it.
	 * As with SET_VARIABLE, programs that we start do not get it. NULL: none. */
	const char *secret;
};

/* For a row of text: its offset in the struct, and its size there. */
#define SETTING_TEXT(in, member) offsetof(in, member), 0, sizeof(((in *)0)->member)
