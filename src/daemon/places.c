/* koined --dialects: for programs, where each dialect would listen with these settings, where its
 * clients look, and who is there now. */
#include <stdio.h>
#include <sysexits.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "daemon/daemon.h"
#include "io/listener.h"
#include "wire/json.h"

enum { PLACES_MAX = 1 << 20 };

/* "unix:/run/ash/rpc.sock", or only its end where a project has it. False: there is none. */
static bool original_place(const struct dialect *d, char out[ADDRESS_TEXT_MAX])
{
	char path[PATH_LEN];

	if (d->home.address)
		snprintf(out, ADDRESS_TEXT_MAX, "%s", d->home.address);
	else if (d->home.in_project)
		snprintf(out, ADDRESS_TEXT_MAX, "%s", d->home.socket);
	else if (d->home.path && paths_expand(d->home.path, path))
		snprintf(out, ADDRESS_TEXT_MAX, "unix:%.*s", UNIX_PATH_MAX, path);
	else
		return false;
	return true;
}

static void write_occupant(struct json *j, const char *place)
{
	char text[OCCUPANT_TEXT_MAX];
	struct address address;
	struct occupant o;
	struct error error;

	json_key(j, "occupant");
	if (address_parse(place, &address, &error) != 0 || !occupant_find(&address, &o)) {
		json_null(j);
		return;
	}
	occupant_format(&o, text);
	json_begin_object(j);
	json_member_str(j, "text", text);
	json_member_int(j, "pid", o.pid);
	if (o.known)
		json_member_int(j, "uid", o.uid);
	json_end_object(j);
}

static void write_addresses(struct json *j, const struct plan *plan, const struct dialect *d)
{
	char address[ADDRESS_TEXT_MAX];

	json_member_array(j, "listen");
	for (unsigned i = 0; i < plan->n; i++) {
		if (plan->rows[i].dialect != d)
			continue;
		address_format(&plan->rows[i].address, address);
		json_str(j, address);
	}
	json_end_array(j);
}

static const char *setting_of(const struct settings *s, const struct dialect *d)
{
	const char *found = NULL;

	for (unsigned i = 0; i < s->n_listens; i++) {
		if (s->listens[i].dialect == d)
			found = s->listens[i].address;
	}
	return found;
}

static void write_dialect(struct json *j, const struct settings *s, const struct plan *plan,
			  const struct dialect *d)
{
	char place[ADDRESS_TEXT_MAX];

	json_begin_object(j);
	json_member_str(j, "name", d->name);
	json_member_str(j, "setting", setting_of(s, d));
	write_addresses(j, plan, d);
	if (original_place(d, place)) {
		json_member_str(j, "original", place);
		json_member_bool(j, "in_project", d->home.in_project);
		write_occupant(j, place);
	}
	json_end_object(j);
}

int daemon_dialects(const struct settings *s, const struct plan *plan)
{
	CLEANUP(buf_donep) struct buf out;
	char standard[PATH_LEN];
	struct json j;

	buf_init(&out, PLACES_MAX);
	j = json_writer(&out);
	paths_config(standard);
	json_begin_object(&j);
	json_member_str(&j, "config", s->config[0] ? s->config : standard);
	json_member_str(&j, "places", s->places == PLACES_OWN ? "own" : "original");
	json_member_array(&j, "dialects");
	for (unsigned i = 0; i < n_dialects; i++)
		write_dialect(&j, s, plan, dialects[i]);
	json_end_array(&j);
	json_end_object(&j);
	if (out.err != 0)
		return EX_OSERR;
	printf("%.*s\n", (int)out.len, out.data);
	return 0;
}
