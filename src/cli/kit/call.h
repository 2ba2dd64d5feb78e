/*
 * A call: its parameters, its answer, and what the user is told.
 *
 * The first call dials cli->client. A function here that returns an exit code has already said
 * what went wrong.
 */
#pragma once

#include "cli/kit/options.h"
#include "cli/kit/value.h"

/* ---- parameters: NULL is taken for memory that ran out, and shows when they are sent ---- */

struct koine_json *params_new(void);
/* A member that is left out if it is NULL or an empty list. */
void params_add(struct koine_json *j, const char *key, const char *text);
void params_add_text(struct koine_json *j, const char *key, struct text text);
void params_add_list(struct koine_json *j, const char *key, const struct option_list *list);
/* Never left out. */
void params_add_int(struct koine_json *j, const char *key, int64_t n);
void params_add_double(struct koine_json *j, const char *key, double d);
void params_add_bool(struct koine_json *j, const char *key, bool b);
/* As JSON, or a value of an answer; left out if it is NULL. */
void params_add_raw(struct koine_json *j, const char *key, struct text json);
void params_add_value(struct koine_json *j, const char *key, const struct koine_value *v);
/* False: memory ran out, and there is nothing to add to and to end. */
bool params_begin_object(struct koine_json *j, const char *key);
bool params_begin_array(struct koine_json *j, const char *key);
/* Ends them and prints them on one line. 0, or EX_SOFTWARE. */
int params_print(struct koine_json *j);
/* Ends them. NULL: out of memory. Valid until the params are freed. */
const char *params_end(struct koine_json *j);

/* ---- calls; all of them take the params ---- */

/* Like koine_client_call on cli->client, which must be connected. Prints nothing. */
int call_ask(struct cli *cli, const char *method, struct koine_json *params,
	     struct koine_answer **ret_answer);

/* Like koine_client_call_async. */
int call_async(struct koine_client *c, const char *method, struct koine_json *params,
	       koine_answer_cb cb, void *arg, int64_t *ret_id);

/* Connects, calls, and says what went wrong. On 0 the caller owns *ret_answer. */
int call_send(struct cli *cli, const char *method, struct koine_json *params,
	      struct koine_answer **ret_answer);

/* The same with the params as text; NULL: none. */
int call_plain(struct cli *cli, const char *method, const char *params,
	       struct koine_answer **ret_answer);

/* A method whose only parameter is a text. */
int call_with(struct cli *cli, const char *method, const char *key, const char *value,
	      struct koine_answer **ret_answer);

/* Prints a result in the way call_print describes. */
typedef int (*print_fn)(const struct cli *cli, const struct koine_value *result);

/* Prints the result, or that member of it: raw with --json, otherwise with `print`. */
int call_print_result(const struct cli *cli, const struct koine_answer *a, const char *member,
		      print_fn print);

/* Calls, and prints the result in the same way. */
int call_print(struct cli *cli, const char *method, struct koine_json *params, const char *member,
	       print_fn print);

/* Prints the raw result with --json, otherwise "NAME DID". */
void call_say(const struct cli *cli, const struct koine_answer *a, struct text name,
	      const char *did);

/* ---- requests ---- */

/*
 * Makes the call that a command's row describes (struct cli_request). request_run does all of it; a
 * command that needs more has a function that uses the other parts.
 */

/* Starts the params of the command's request. `arg` may be NULL. */
struct koine_json *request_begin(const struct cli *cli, const char *arg);

/* Adds the params of the noun and of the options; request_send does this, too. */
void request_options(const struct cli *cli, struct koine_json *params);

/* How many rows of a list are wanted, by its option_limit. */
int64_t request_limit(const struct cli *cli);

/* Adds those, and calls the command's method. It takes the params. */
int request_send(struct cli *cli, struct koine_json *params, struct koine_answer **ret_answer);

/* Prints the answer as the command's row describes; `arg` is the argument that was sent. */
int request_print(const struct cli *cli, const struct koine_answer *a, const char *arg);

/* Sends, and prints the answer. */
int request_finish(struct cli *cli, struct koine_json *params, const char *arg);

/* Begins, sends and prints, once for each argument. */
int request_run(struct cli *cli);

/* The same for another request and one argument, or NULL; and for each argument. A failure does not stop
	* it, unless the server is gone; the first exit code that is not 0 is returned. */
int request_run_as(struct cli *cli, const struct cli_request *q, const char *arg);
int request_run_each(struct cli *cli, const struct cli_request *q);
