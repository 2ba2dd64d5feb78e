#include "daemon/model.h"

#include <string.h>

#include "base/secret.h"
#include "daemon/daemon.h"
#include "service/embedding.h"

enum { KEY_MAX = 4096 };

static int read_key(const struct settings *s, char key[KEY_MAX], struct why *why)
{
	int r;

	key[0] = '\0';
	if (!s->embedding_key_file[0])
		return 0;
	r = secret_read(s->embedding_key_file, "embedding key", key, KEY_MAX, why);
	if (r == 0 && !key[0])
		r = refuse(why, REFUSE_PARAMS, "the embedding key file %.100s is empty",
			   s->embedding_key_file);
	return r;
}

int model_check(const struct settings *s, struct why *why)
{
	char key[KEY_MAX];
	int r = s->embedding_url[0] ? read_key(s, key, why) : 0;

	explicit_bzero(key, sizeof(key));
	return r;
}

int model_start(const struct settings *s, struct backstage *stage, struct services *services,
		struct why *why)
{
	char key[KEY_MAX];
	const struct embedding_opts opts = {
		.loop = stage->server->loop,
		.background = backstage(stage),
		.url = s->embedding_url,
		.model = s->embedding_model,
		.key = key,
		.timeout_ms = s->embedding_timeout_ms,
	};
	int r;

	if (!s->embedding_url[0])
		return 0;
	r = read_key(s, key, why);
	if (r == 0)
		r = embedding_start(services, &opts, why);
	explicit_bzero(key, sizeof(key));
	return r;
}
