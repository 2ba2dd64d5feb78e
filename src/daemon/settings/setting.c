#include "daemon/settings/setting.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/command/words.h"
#include "base/cleanup.h"
#include "io/process/child.h"

/* A row in use. */
struct use {
	const struct setting *row;
	const char *section;
	void *at;
	const char *value;
};

static int bad_value(const struct use *u, const char *want, struct error *error)
{
	/* A value that may hold a secret is not repeated. */
	if (u->row->type == SET_SECRET || u->row->type == SET_URL || u->row->type == SET_VARIABLES)
		return refuse(error, REFUSE_PARAMS, "invalid %s.%s: expected %s", u->section,
			      u->row->key, want);
	return refuse(error, REFUSE_PARAMS, "invalid %s.%s '%.60s': expected %s", u->section,
		      u->row->key, u->value, want);
}

int setting_parse_bool(const char *value, bool *ret)
{
	static const char *const yes[] = {"yes", "true", "on", "1"};
	static const char *const no[] = {"no", "false", "off", "0"};

	for (size_t i = 0; i < 4; i++) {
		if (strcasecmp(value, yes[i]) == 0 || strcasecmp(value, no[i]) == 0) {
			*ret = strcasecmp(value, yes[i]) == 0;
			return 0;
		}
	}
	return -EINVAL;
}

/* Digits; a size may end in k, m or g. */
static int parse_number(const char *value, bool size, uint64_t *ret)
{
	static const char units[] = "kmg";
	char *end;
	uint64_t n;

	if (!isdigit((unsigned char)value[0]))
		return -EINVAL;
	errno = 0;
	n = strtoull(value, &end, 10);
	if (errno != 0)
		return -EINVAL;
	if (size && *end) {
		const char *unit = strchr(units, tolower((unsigned char)*end));
		unsigned shift = unit ? 10U * (unsigned)(unit - units + 1) : 0;

		if (!unit || n > UINT64_MAX >> shift)
			return -EINVAL;
		n <<= shift;
		end++;
	}
	if (*end)
		return -EINVAL;
	*ret = n;
	return 0;
}

static int set_number(const struct use *u, struct error *error)
{
	const struct setting *row = u->row;
	char want[80];
	uint64_t n;

	if (parse_number(u->value, row->type == SET_SIZE, &n) != 0 || n < row->min ||
	    n > row->max) {
		snprintf(want, sizeof(want), "a number from %llu to %llu",
			 (unsigned long long)row->min, (unsigned long long)row->max);
		return bad_value(u, want, error);
	}
	if (row->type == SET_SIZE)
		*(size_t *)u->at = n;
	else
		*(unsigned *)u->at = (unsigned)(row->type == SET_SECONDS ? n * 1000 : n);
	return 0;
}

/* Only digits and a point; strtod would accept more. With at most four decimal places, %g writes
 * it back without an exponent. */
static bool parse_decimal(const char *value, double max, double *ret)
{
	const char *point = strchr(value, '.');
	char *end;

	if (strspn(value, "0123456789.") != strlen(value) || strlen(value) > 8 ||
	    (point && strlen(point) > 5))
		return false;
	*ret = strtod(value, &end);
	return end != value && !*end && *ret <= max;
}

static int set_decimal(const struct use *u, struct error *error)
{
	double n = -1;
	char want[60];

	if (u->value[0] && !parse_decimal(u->value, (double)u->row->max, &n)) {
		snprintf(want, sizeof(want), "a number from 0 to %u, such as 0.7",
			 (unsigned)u->row->max);
		return bad_value(u, want, error);
	}
	*(double *)u->at = n;
	return 0;
}

static int set_word(const struct use *u, struct error *error)
{
	char want[120] = "";

	for (unsigned i = 0; u->row->words[i]; i++) {
		size_t n = strlen(want);

		if (strcmp(u->row->words[i], u->value) == 0) {
			*(unsigned *)u->at = i;
			return 0;
		}
		snprintf(want + n, sizeof(want) - n, "%s%s",
			 i == 0                 ? ""
			 : u->row->words[i + 1] ? ", "
						: " or ",
			 u->row->words[i]);
	}
	return bad_value(u, want, error);
}

/* A number, or the name of a user of this machine. */
static bool parse_uid(const char *word, uid_t *ret)
{
	const struct passwd *user;
	uint64_t uid;

	if (parse_number(word, false, &uid) == 0 && uid < UINT32_MAX) {
		*ret = (uid_t)uid;
		return true;
	}
	user = isdigit((unsigned char)word[0]) ? NULL : getpwnam(word);
	if (user)
		*ret = user->pw_uid;
	return user;
}

static int set_uids(const struct use *u, struct error *error)
{
	struct uids uids = {.n = 0};
	char copy[256];
	char *rest = NULL;

	if (strlen(u->value) >= sizeof(copy))
		return bad_value(u, "a list of users of at most 255 bytes", error);
	memcpy(copy, u->value, strlen(u->value) + 1);
	for (char *word = strtok_r(copy, " ,\t", &rest); word;
	     word = strtok_r(NULL, " ,\t", &rest)) {
		if (uids.n == UIDS_MAX || !parse_uid(word, &uids.list[uids.n]))
			return bad_value(u, "at most 32 user names or uids", error);
		uids.n++;
	}
	*(struct uids *)u->at = uids;
	return 0;
}

static int set_text(const struct use *u, struct error *error)
{
	char want[60];

	if (strlen(u->value) >= u->row->max) {
		snprintf(want, sizeof(want), "a string of at most %u bytes",
			 (unsigned)u->row->max - 1);
		return bad_value(u, want, error);
	}
	memcpy(u->at, u->value, strlen(u->value) + 1);
	return 0;
}

static int set_variables(const struct use *u, struct error *error)
{
	CLEANUP(freep) char **words = NULL;
	unsigned n = 0;

	if (u->value[strspn(u->value, " \t")] != '\0' &&
	    command_split(u->value, &words, &n, NULL) != 0)
		return bad_value(u, "a list of words with shell quoting", error);
	for (unsigned i = 0; i < n; i++) {
		if (!environment_is_word(words[i]))
			return bad_value(
				u, "a list of environment variables: NAME, NAME* or NAME=VALUE",
				error);
	}
	return set_text(u, error);
}

int setting_apply(const struct setting *row, void *base, const char *section, const char *value,
		  struct error *error)
{
	const struct use u = {row, section, (char *)base + row->offset, value};

	switch (row->type) {
	case SET_BOOL:
		if (setting_parse_bool(value, u.at) != 0)
			return bad_value(&u, "yes or no", error);
		return 0;
	case SET_UNSIGNED:
	case SET_SIZE:
	case SET_SECONDS:
		return set_number(&u, error);
	case SET_DECIMAL:
		return set_decimal(&u, error);
	case SET_WORD:
		return set_word(&u, error);
	case SET_UIDS:
		return set_uids(&u, error);
	case SET_URL:
		if (value[0] && row->check(value, NULL) > 0)
			return bad_value(&u, "http://HOST[:PORT][/PATH], https://… or unix:PATH",
					 error);
		return set_text(&u, error);
	case SET_VARIABLES:
		return set_variables(&u, error);
	case SET_TEXT:
	case SET_PATH:
	case SET_SECRET:
	case SET_VARIABLE:
		return set_text(&u, error);
	}
	return -EINVAL;
}

/* ---- out ---- */

static void write_uids(const struct uids *uids, FILE *out)
{
	for (unsigned i = 0; i < uids->n; i++)
		fprintf(out, "%s%u", i ? " " : "", (unsigned)uids->list[i]);
}

/* Show only names: a value may be a secret. */
static void write_variables(const char *value, FILE *out)
{
	CLEANUP(freep) char **words = NULL;
	unsigned n = 0;

	if (command_split(value, &words, &n, NULL) != 0)
		return;
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "%s%.*s%s", i ? " " : "", (int)strcspn(words[i], "="), words[i],
			strchr(words[i], '=') ? "=..." : "");
}

void setting_write_value(const struct setting *row, const void *base, FILE *out)
{
	const void *at = (const char *)base + row->offset;

	switch (row->type) {
	case SET_BOOL:
		fprintf(out, "%s", *(const bool *)at ? "yes" : "no");
		break;
	case SET_UNSIGNED:
		fprintf(out, "%u", *(const unsigned *)at);
		break;
	case SET_SIZE:
		fprintf(out, "%zu", *(const size_t *)at);
		break;
	case SET_SECONDS:
		fprintf(out, "%u", *(const unsigned *)at / 1000);
		break;
	case SET_DECIMAL:
		if (*(const double *)at >= 0)
			fprintf(out, "%g", *(const double *)at);
		break;
	case SET_WORD:
		fprintf(out, "%s", row->words[*(const unsigned *)at] ?: "");
		break;
	case SET_UIDS:
		write_uids(at, out);
		break;
	case SET_VARIABLES:
		write_variables(at, out);
		break;
	case SET_TEXT:
	case SET_PATH:
	case SET_VARIABLE:
	case SET_URL:    /* setting_write_text */
	case SET_SECRET: /* never shown */
		break;
	}
}

/* What a setting is, for comparing. */
static struct text bytes_of(const struct setting *row, const void *base)
{
	static const size_t sizes[SET_VARIABLES + 1] = {
		[SET_BOOL] = sizeof(bool),      [SET_UNSIGNED] = sizeof(unsigned),
		[SET_SIZE] = sizeof(size_t),    [SET_SECONDS] = sizeof(unsigned),
		[SET_DECIMAL] = sizeof(double), [SET_WORD] = sizeof(unsigned),
	};
	const void *at = (const char *)base + row->offset;
	const struct uids *uids = at;

	if (row->type == SET_UIDS)
		return (struct text) {.data = (const char *)uids->list,
				      .len = uids->n * sizeof(uids->list[0])};
	if (sizes[row->type] > 0)
		return (struct text) {.data = at, .len = sizes[row->type]};
	return text_of(at);
}

bool setting_equal(const struct setting *row, const void *base, const void *other)
{
	return text_equal(bytes_of(row, base), bytes_of(row, other));
}

uint64_t setting_hash(const struct setting *row, const void *base)
{
	return text_hash(TEXT_HASH, bytes_of(row, base));
}

void setting_write_text(const char *key, const char *doc, const char *text, FILE *out)
{
	/* After a space, a semicolon begins a comment. */
	const bool tight = text[0] == ';';

	fprintf(out, "; %s\n%s%s", doc, key, tight ? "=" : " = ");
	/* A text from the environment may have several lines; in the file it has one. */
	for (; *text; text++)
		fputc(*text == '\n' ? ' ' : *text, out);
	fputc('\n', out);
}

bool setting_is_text(const struct setting *row)
{
	return row->type == SET_TEXT || row->type == SET_PATH || row->type == SET_URL ||
	       row->type == SET_VARIABLE;
}

void setting_write(const struct setting *row, const void *base, FILE *out)
{
	if (setting_is_text(row)) {
		setting_write_text(row->key, row->doc, (const char *)base + row->offset, out);
		return;
	}
	fprintf(out, "; %s\n%s = ", row->doc, row->key);
	setting_write_value(row, base, out);
	fputc('\n', out);
}
