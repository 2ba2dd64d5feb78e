/*
 * An agent session as koine's own methods write it, and what it said. What a session has none of
 * is null; an event has only what it has, under the names that the event log's session.event has
 * for it.
 */
#pragma once

#include "base/arena.h"
#include "engine/session/session.h"
#include "wire/json.h"

/* Escapes may make six bytes of one: a page must fit into a message even so. */
enum {
	SESSION_SHOWN = 200,          /* bytes of its texts in a list */
	SESSION_TEXT_MAX = 1 << 20,   /* bytes of one text, or of an input, in a page */
	SESSION_PAGE_BYTES = 1 << 20, /* of text before the last in a page */
};

/* All of it, with its configuration. */
void session_json_write(struct json *j, struct arena *a, const struct session *row);

/* For lists: texts are cut, and what it ended with is left out. */
void session_json_write_short(struct json *j, const struct session *row);

void session_json_write_event(struct json *j, const struct session_event *e);
