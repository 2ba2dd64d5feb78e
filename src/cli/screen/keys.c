#include "cli/screen/keys.h"

#include <stddef.h>

#include "base/clock.h"

enum { PASTE_BEGIN = 200, PASTE_END = 201 }; /* ESC [ 200 ~ */

static int by_letter(char last)
{
	switch (last) {
	case 'A':
		return KEY_UP;
	case 'B':
		return KEY_DOWN;
	case 'H':
		return KEY_HOME;
	case 'F':
		return KEY_END;
	default:
		return 0;
	}
}

/* Home and End are 1 and 4 in tmux and on the console, 7 and 8 in rxvt. */
static int by_number(unsigned number)
{
	static const int keys[] = {
		[1] = KEY_HOME,      [4] = KEY_END,  [5] = KEY_PAGE_UP,
		[6] = KEY_PAGE_DOWN, [7] = KEY_HOME, [8] = KEY_END,
	};

	return number < sizeof(keys) / sizeof(keys[0]) ? keys[number] : 0;
}

/* ESC [ A, ESC O A, ESC [ 5 ~: numbers continue up to a letter or ~. */
static void escape_byte(struct keys *k, char byte, key_cb cb, void *arg)
{
	bool digit = byte >= '0' && byte <= '9';
	int key = 0;

	if (digit || byte == ';') {
		if (digit && k->number < 1000)
			k->number = 10 * k->number + (unsigned)(byte - '0');
		k->escape = 3;
		return;
	}
	if (byte == '~' && (k->number == PASTE_BEGIN || k->number == PASTE_END))
		k->pasting = k->number == PASTE_BEGIN;
	else
		key = byte == '~' ? by_number(k->number) : k->escape == 2 ? by_letter(byte) : 0;
	k->escape = 0;
	if (key && !k->pasting)
		cb(arg, key);
}

void keys_take(struct keys *k, char byte, key_cb cb, void *arg)
{
	if (k->escape == 0 && byte == '\033') {
		k->escape = 1;
		k->number = 0;
		k->escape_ms = clock_steady_ms();
	} else if (k->escape == 0) {
		cb(arg, (k->pasting ? KEY_PASTED : 0) | (unsigned char)byte);
	} else if (k->escape == 1 && (byte == '[' || byte == 'O')) {
		k->escape = 2;
	} else if (k->escape == 1) {
		keys_give_up(k, cb, arg);
		keys_take(k, byte, cb, arg);
	} else {
		escape_byte(k, byte, cb, arg);
	}
}

void keys_give_up(struct keys *k, key_cb cb, void *arg)
{
	bool alone = k->escape == 1 && !k->pasting;

	k->escape = 0;
	if (alone)
		cb(arg, KEY_ESCAPE);
}
