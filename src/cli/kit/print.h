/* Output for people and programs: text, and JSON in two forms. */
#pragma once

#include <stdio.h>

#include "base/text.h"
#include "cli/kit/cli.h"

/* "koine: ..." on stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Complains, and returns the exit code. */
int fail_with(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
int out_of_memory(void);

/* Text from elsewhere: anything that could steer a terminal is shown as \xNN. */
void print_text(FILE *out, struct text t);
/* Several of them: PRINT(stdout, TEXT("group "), name, TEXT("\n")). */
void print_texts(FILE *out, const struct text *texts, size_t n);
#define PRINT(out, ...)                                                                            \
	print_texts((out), (const struct text[]) {__VA_ARGS__},                                    \
		    sizeof((const struct text[]) {__VA_ARGS__}) / sizeof(struct text))
/* Each line of it that is not empty, with this before it. */
void print_lines(FILE *out, const char *before, struct text t);

/* "100,000" */
void print_count(FILE *out, int64_t n);

enum { TIME_SHOWN = 32 };

/* A time from the server, in the user's time zone, to the minute or the second; "-" for none. */
void format_time(const struct koine_value *v, char shown[TIME_SHOWN]);
/* The hour alone if it is within half a day from now: "17:41". */
void format_soon(const struct koine_value *v, char shown[TIME_SHOWN]);
void format_second(const struct koine_value *v, char shown[TIME_SHOWN]);

enum color { COLOR_NONE, COLOR_RED, COLOR_GREEN, COLOR_YELLOW, COLOR_BLUE, COLOR_GREY };

/* The sequence that starts this colour on a terminal; "" for none. */
const char *color_begin(enum color color);

/* The colour that a table gives to a word; the last row has no word. */
struct word_color {
	const char *word;
	enum color color;
};

enum color color_of_word(const struct word_color *rows, struct text word);

/* Printed on stdout if the options ask for colours: any sequence, and the one that ends them
 * all. */
void print_style(const struct cli *cli, const char *begin);
void print_plain(const struct cli *cli);
/* A text in that style. */
void print_styled(const struct cli *cli, const char *begin, struct text t);
extern const char style_bold[];
extern const char style_faint[];

/* On one line, without spaces. */
void print_json_compact(FILE *out, const struct koine_value *v);
/* The same on stdout, if the options ask for it, for a command of ours: times and names that one of
 * the five dialects writes in its own way become those of koine. So do the two below. */
bool print_if_json(const struct cli *cli, const struct koine_value *v);
/* The items of one page of an array, with commas; first: nothing of it was printed yet. */
void print_json_items(FILE *out, const struct koine_value *array, bool first);

/* The same for an object, without that member. */
void print_json_without(FILE *out, const struct koine_value *v, const char *without);

/* Indented; in colour if asked for. */
void print_json_pretty(FILE *out, const struct koine_value *v, bool color);
