/* Reaching the server, and turning failures into a sentence and an exit code. */
#pragma once

#include "base/text.h"
#include "cli/kit/cli.h"

/* Error codes of JSON-RPC and koined. */
enum {
	CODE_METHOD_NOT_FOUND = -32601,
	CODE_BAD_PARAMS = -32602,
	CODE_NOT_FOUND = -32001,
	CODE_CONFLICT = -32002,
	CODE_TOO_LARGE = -32004,
	CODE_UNAVAILABLE = -32005,
	CODE_STOPPING = -32008,
};

typedef void (*bytes_cb)(void *arg, bool out, const char *data, size_t len);

/* Dials the server of the options, for an additional connection. on_bytes may be NULL. */
int talk_dial(struct cli *cli, bytes_cb on_bytes, void *arg, struct koine_client **ret_client);

enum { TALK_ERROR = 1024 };

/* The same without a word: `error` gets the sentence. */
int talk_try(struct cli *cli, struct koine_client **ret_client, char error[TALK_ERROR]);

/* Dials cli->client, the connection that most commands need, unless it exists. */
int talk_connect(struct cli *cli);
void talk_hang_up(struct cli *cli);

/* An answer may take as long as people or agents do, unless the options set a limit. Closes
 * cli->client, so that the next call dials without a timeout. */
void talk_be_patient(struct cli *cli);

/* Whether nothing but the answer comes between a request and the next. */
bool talk_is_http(const struct cli *cli);

/* Whether the server is Go's net/rpc, which accepts any value as parameters. */
bool talk_is_gob(const struct cli *cli);

/* Whether a call with this result may succeed once the daemon is back. */
bool talk_may_come_back(int result, const struct koine_answer *a);

/* ---- what went wrong ---- */

/* For commands whose user names the method: errors are shown in full, with method, code and
 * data. */
void talk_be_exact(void);

/* The message of an error; {NULL, 0} where there is none. */
struct text talk_error(const struct koine_answer *a);

/* The same after ": ", if there is a reason, and a newline. */
void talk_print_reason(struct text error);

/* "koine: SENTENCE" on stderr; or everything, see talk_be_exact. */
void talk_print_error(const char *method, const struct koine_answer *answer);

/* Prints why a call failed, for any result but 0, and returns the exit code. */
int talk_failed(const struct koine_client *c, const char *method, int result,
		const struct koine_answer *answer);
