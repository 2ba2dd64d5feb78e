/*
 * How koine's own methods write an agent session and its events. A member that a session lacks
 * is null. An event has only the members that apply, named as in the event log's
 * session.event.
 */
#pragma once

#include "base/arena.h"
#include "engine/session/session.h"
#include "wire/json.h"

/* Escaping may turn one byte into six; even then a page must fit into a message. */
enum {
	SESSION_SHOWN = 200,          /* bytes of each text in a list */
	SESSION_TEXT_MAX = 1 << 20,   /* bytes of one text or input in a page */
	SESSION_PAGE_BYTES = 1 << 20, /* bytes of text before the last event of a page */
};

/* Writes the whole session, with its configuration. */
void session_json_write(struct json *j, struct arena *a, const struct session *row);

/* For lists: texts are cut, and the result is left out. */
void session_json_write_short(struct json *j, const struct session *row);

void session_json_write_event(struct json *j, const struct session_event *e);
