#include "daemon/dialects.h"

#include <string.h>

#include "daemon/settings/settings.h"
#include "dialect/aiwg/aiwg.h"
#include "dialect/ash/ash.h"
#include "dialect/embedding/embedding.h"
#include "dialect/gateway/gateway.h"
#include "dialect/hld/hld.h"
#include "dialect/koine/koine.h"
#include "dialect/mcp/server.h"
#include "dialect/metric/metric.h"
#include "dialect/nexus/nexus.h"
#include "dialect/ocg/ocg.h"
#include "dialect/page/page.h"

const struct dialect *const dialects[] = {
	&koine_dialect, &ash_dialect,    &hld_dialect,     &ocg_dialect,
	&nexus_dialect, &aiwg_dialect,   &gateway_dialect, &embedding_dialect,
	&mcp_dialect,   &metric_dialect, &page_dialect,
};

const unsigned n_dialects = sizeof(dialects) / sizeof(dialects[0]);

_Static_assert(sizeof(dialects) / sizeof(dialects[0]) <= DIALECTS_MAX, "room for all of them");

const struct dialect *dialect_find(const char *name)
{
	for (unsigned i = 0; i < n_dialects; i++) {
		if (strcmp(dialects[i]->name, name) == 0)
			return dialects[i];
	}
	return NULL;
}

int dialect_get(const char *name, const struct dialect **ret_dialect, struct error *error)
{
	const struct dialect *d = dialect_find(name);

	if (!d)
		return refuse(error, REFUSE_PARAMS, "unknown dialect '%.40s'", name);
	*ret_dialect = d;
	return 0;
}

const struct dialect *dialect_guest(const struct dialect *host)
{
	for (unsigned i = 0; i < n_dialects; i++) {
		if (dialects[i]->guest_of && strcmp(dialects[i]->guest_of, host->name) == 0)
			return dialects[i];
	}
	return NULL;
}

unsigned dialect_index(const struct dialect *d)
{
	unsigned i = 0;

	while (dialects[i] != d)
		i++;
	return i;
}

const struct dialect_token *dialect_token(const struct dialect *d)
{
	return d->life ? d->life->token : NULL;
}

const struct setting *dialect_variables(const struct dialect *d)
{
	for (unsigned i = 0; d->section && i < d->section->n_rows; i++) {
		if (d->section->rows[i].type == SET_VARIABLES)
			return &d->section->rows[i];
	}
	return NULL;
}

const void *dialects_first(size_t member)
{
	for (unsigned i = 0; i < n_dialects; i++) {
		const char *life = (const char *)dialects[i]->life;
		const void *found = life ? *(const void *const *)(life + member) : NULL;

		if (found)
			return found;
	}
	return NULL;
}
