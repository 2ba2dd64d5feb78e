/*
 * Makes the call that a command's row describes (struct request). request_run does all of it; a
 * command that needs more has a function that uses the other parts.
 */
#pragma once

#include "cli/kit/call.h"

/* Starts the params of the command's request. `arg` may be NULL. */
struct koine_json *request_begin(const struct cli *cli, const char *arg);

/* Adds the params of the noun and of the options; request_send does this, too. */
void request_options(const struct cli *cli, struct koine_json *params);

/* Adds those, and calls the command's method. It takes the params. */
int request_send(struct cli *cli, struct koine_json *params, struct koine_answer **ret_answer);

/* Prints the answer as the command's row describes; `arg` is the argument that was sent. */
int request_print(const struct cli *cli, const struct koine_answer *a, const char *arg);

/* Sends, and prints the answer. */
int request_finish(struct cli *cli, struct koine_json *params, const char *arg);

/* Begins, sends and prints, once for each argument. */
int request_run(struct cli *cli);

/* The same for another request and one argument, or NULL. */
int request_run_as(struct cli *cli, const struct request *q, const char *arg);
