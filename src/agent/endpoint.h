/*
 * Where a model is: a URL, or a Unix socket whose server has the usual paths.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum { ENDPOINT_URL_MAX = 600, ENDPOINT_SOCKET_MAX = 108 };

struct endpoint {
	char url[ENDPOINT_URL_MAX];
	char socket[ENDPOINT_SOCKET_MAX]; /* "" for none */
};

/*
 * Takes http://HOST[:PORT][/PATH], https://… and unix:PATH. Without a path it means /v1
 * followed by `usual` ("/embeddings"); one that ends in /v1 is completed; any other path is
 * used as it is. Refuses the rest, without repeating it: it may hold a password. `what` says
 * what the URL is for ("embedding").
 */
int endpoint_parse(const char *url, const char *what, const char *usual,
		   struct endpoint *ret_endpoint, struct error *error);

/* Another usual path of the same server. An unusual path stays as it is. */
void endpoint_beside(const struct endpoint *e, const char *usual, const char *other,
		     struct endpoint *ret_endpoint);

/* Wipes and frees a key, or a line with one. Accepts NULL. */
void secret_free(char *secret);

/* Whether a key can stand in a header: a newline in it would start a header of its own. */
bool endpoint_key_fits(const char *key);
