/*
 * Turns a terminal's bytes into keys: keys of several bytes, a lone Escape, and pasted text,
 * which must never act as keys.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Other keys are their byte. */
enum {
	KEY_UP = 0x100,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_ESCAPE,
	KEY_PASTED = 0x1000, /* | a byte */
};

enum { KEYS_ESCAPE_MS = 50 }; /* an Escape that nothing follows is a key */

struct keys {
	unsigned escape; /* how many bytes of a key have arrived */
	unsigned number; /* in ESC [ 5 ~ */
	uint64_t escape_ms;
	bool pasting;
};

typedef void (*key_cb)(void *arg, int key);

void keys_take(struct keys *k, char byte, key_cb cb, void *arg);

/* Call it once KEYS_ESCAPE_MS have passed since escape_ms, while escape is not 0. */
void keys_give_up(struct keys *k, key_cb cb, void *arg);
