/*
 * A command's request: its parameters, its call, and the result as the command's row describes.
 * A command that takes more than that has a function, and uses parts of this.
 */
#pragma once

#include "cli/kit/call.h"

/* Starts the params of the command's own request; `arg` is its argument. NULL: there is none. */
struct koine_json *request_begin(const struct cli *cli, const char *arg);

/* Adds the params of the noun, and those that the options fill. */
void request_options(const struct cli *cli, struct koine_json *params);

/* Calls the command's method with these params, which it takes, and those of the options. */
int request_send(struct cli *cli, struct koine_json *params, struct koine_answer **ret_answer);

/* Prints the answer as the command's row says; `arg` is the argument that was sent. */
int request_print(const struct cli *cli, const struct koine_answer *a, const char *arg);

/* Both. */
int request_finish(struct cli *cli, struct koine_json *params, const char *arg);

/* All of it, for each argument. */
int request_run(struct cli *cli);

/* All of another request, for one argument. */
int request_run_as(struct cli *cli, const struct request *q, const char *arg);
