/* Memory, and the model that makes its vectors, as the settings say. */
#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "call/server.h"
#include "daemon/life.h"
#include "engine/index/embedding.h"
#include "engine/memory/memory.h"
#include "search/vector/word_table.h"

enum { KEY_MAX = 4096 };

static int read_key(const struct settings *s, char key[KEY_MAX], struct error *error)
{
	key[0] = '\0';
	return s->embedding_key_file[0]
		       ? secret_read(s->embedding_key_file, "embedding key", key, KEY_MAX, error)
		       : 0;
}

int model_check(const struct settings *s, struct error *error)
{
	char key[KEY_MAX];
	int r = s->embedding_url[0] ? read_key(s, key, error) : 0;

	explicit_bzero(key, sizeof(key));
	return r;
}

/* ---- ourselves ---- */

struct model_target {
	char host[128];
	unsigned port;
};

/* Reads http://[USER@]HOST[:PORT][/PATH]; false for anything else. */
static bool read_target(const char *url, struct model_target *ret)
{
	static const char scheme[] = "http://";
	const char *host = url + sizeof(scheme) - 1;
	const char *end, *at, *port;

	if (strncasecmp(url, scheme, sizeof(scheme) - 1) != 0)
		return false;
	end = host + strcspn(host, "/?#");
	at = memrchr(host, '@', (size_t)(end - host));
	host = at ? at + 1 : host;
	port = host + (host[0] == '[' ? strcspn(host, "]") : 0);
	port = port < end ? memchr(port, ':', (size_t)(end - port)) : NULL;
	ret->port = port ? (unsigned)strtoul(port + 1, NULL, 10) : 80;
	if (port)
		end = port;
	if (host[0] == '[' && end - host >= 2) {
		host++;
		end--;
	}
	snprintf(ret->host, sizeof(ret->host), "%.*s", (int)(end - host), host);
	return true;
}

static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name);
	size_t n = strlen(end);

	return len >= n && strcasecmp(name + len - n, end) == 0;
}

static bool is_this_machine(char *name)
{
	static const char *const names[] = {"localhost", "ip6-localhost", "ip6-loopback"};
	char own[128] = "";

	/* A host name may end with a dot, for the DNS root. */
	if (ends_with(name, "."))
		name[strlen(name) - 1] = '\0';
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(name, names[i]) == 0)
			return true;
	}
	gethostname(own, sizeof(own) - 1);
	return ends_with(name, ".localhost") || strcasecmp(name, own) == 0;
}

/* Any spelling of an address, as an IPv6 address; the wildcard address counts as loopback. */
static bool read_address(const char *host, struct in6_addr *ret)
{
	static const struct in6_addr any = IN6ADDR_ANY_INIT;
	struct in_addr four;

	if (inet_pton(AF_INET6, host, ret) == 1) {
		if (memcmp(ret, &any, sizeof(any)) == 0)
			*ret = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
		return true;
	}
	if (inet_aton(host, &four) == 0)
		return false;
	if (four.s_addr == htonl(INADDR_ANY))
		four.s_addr = htonl(INADDR_LOOPBACK);
	*ret = (struct in6_addr) {.s6_addr = {[10] = 0xff, [11] = 0xff}};
	memcpy(&ret->s6_addr[12], &four, sizeof(four));
	return true;
}

bool model_is_at(const char *url, const struct address *listener)
{
	struct in6_addr asked, ours;
	struct model_target target;

	if (listener->kind == ADDRESS_UNIX)
		return strncmp(url, "unix:", 5) == 0 && strcmp(url + 5, listener->path) == 0;
	if (!read_target(url, &target) || target.port != listener->port)
		return false;
	if (!read_address(target.host, &asked))
		return is_this_machine(target.host);
	/* A listener with a host name may have any loopback address. */
	return !read_address(listener->host, &ours) || memcmp(&asked, &ours, sizeof(ours)) == 0;
}

static bool is_ourselves(const struct daemon *d)
{
	list_for_each (at, following, &d->server->endpoints) {
		const struct endpoint *e = list_entry(at, struct endpoint, link);
		struct address address;
		struct error error;

		if (!e->dialect->makes_vectors ||
		    address_parse(e->address, &address, &error) != 0 ||
		    !model_is_at(d->settings->embedding_url, &address))
			continue;
		log_warn("ignoring embedding_url",
			 "reason=\"the URL is koined's own listener\" "
			 "address=%s",
			 e->address);
		return true;
	}
	return false;
}

int memories_begin(struct daemon *d, struct error *error)
{
	const struct settings *s = d->settings;
	char key[KEY_MAX];
	char folder[PATH_MAX];
	const struct embedding_opts model = {
		.loop = d->loop,
		.workers = d->workers,
		.url = s->embedding_url,
		.model = s->embedding_model,
		.key = key,
		.timeout_ms = s->embedding_timeout_ms,
	};
	struct memories_opts opts = {
		.store = d->engine->store,
		.events = d->engine->events,
		.n_readers = N_READERS,
		.workers = d->workers,
		.loop = d->loop,
		.shared = d->engine->node != NULL,
		.index_bytes = s->index_bytes,
		.index_folder = folder,
		.index_file_bytes = s->index_file_bytes,
		.keep_deleted_days = s->keep_deleted_days,
		.off = !s->memory_enabled,
	};
	int r = 0;

	if (daemon_beside_store(d, "-index", folder) != 0)
		opts.index_folder = NULL;
	if (s->embedding_url[0] && !is_ourselves(d)) {
		opts.model = &model;
		r = read_key(s, key, error);
	}
	r = r
		?: words_open(s, &opts.words, error)
		?: memories_start(&opts, &d->engine->memories, error);
	explicit_bzero(key, sizeof(key));
	return r;
}

/* Where the table of word vectors is: as set, or in the first default place that has one. */

enum { PLACES = 2 };

/* Below --root only there: what else is on this machine must make no difference. */
static unsigned default_places(const struct settings *s, char places[PLACES][PATH_LEN])
{
	if (s->root[0]) {
		snprintf(places[0], PATH_LEN, "%.*s/words.bin", PATH_LEN - 12, s->root);
		return 1;
	}
	paths_state("words.bin", places[0]);
	snprintf(places[1], PATH_LEN, "%s/words.bin", KOINE_DATA);
	return PLACES;
}

/* A table that nobody named is not worth refusing to start. */
static int open_default(const struct settings *s, struct word_file **ret_file)
{
	char places[PLACES][PATH_LEN];
	unsigned n = default_places(s, places);

	for (unsigned i = 0; i < n; i++) {
		struct error error = {0};
		int r = word_file_open(places[i], ret_file, &error);

		if (r <= 0)
			return r;
		if (r != REFUSE_NOT_FOUND)
			log_warn("could not use word table", "reason=\"%s\"", error.text);
	}
	return 0;
}

int words_open(const struct settings *s, struct word_file **ret_file, struct error *error)
{
	char path[PATH_LEN];

	*ret_file = NULL;
	if (!s->memory_enabled || strcmp(s->words, "off") == 0)
		return 0;
	if (!s->words[0])
		return open_default(s, ret_file);
	if (!paths_expand(s->words, path))
		return refuse(error, REFUSE_PARAMS,
			      "cannot expand memory.words = %s: no home directory", s->words);
	return word_file_open(path, ret_file, error);
}
