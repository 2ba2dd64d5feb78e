#include "cli/connect/ours.h"

#include "cli/kit/value.h"

/* Takes the first word of a shell's line; single quotes may surround it. */
static struct text next_word(struct text *rest)
{
	struct text word = {.data = rest->data};
	char end = ' ';
	size_t skip = 0;

	if (rest->len > 0 && rest->data[0] == '\'') {
		end = '\'';
		skip = 1;
	}
	word.data += skip;
	while (skip + word.len < rest->len && word.data[word.len] != end)
		word.len++;
	skip = skip * 2 + word.len;
	while (skip < rest->len && rest->data[skip] == ' ')
		skip++;
	*rest = text_skip(*rest, skip < rest->len ? skip : rest->len);
	return word;
}

struct text ours_program(struct text command)
{
	return next_word(&command);
}

bool ours_is_command(struct text command)
{
	struct text program;

	if (!command.data)
		return false;
	program = next_word(&command);
	if (!text_is(text_base_name(program), "koine"))
		return false;
	return command.len == 0 || text_is(next_word(&command), "hook");
}

/* Some agents want the program and its arguments in one array. */
static bool is_our_array(const struct koine_value *v)
{
	const struct koine_value *first = koine_value_first(v);

	return text_is(text_base_name(text_of_value(first)), "koine") &&
	       value_is(koine_value_next(first), "mcp");
}

bool ours_is_posted(const struct koine_value *hook)
{
	static const struct text path = TEXT("/hook");
	struct text url = member_string(hook, "url");

	return text_begins(url, TEXT("http://")) && url.len > path.len &&
	       memcmp(url.data + url.len - path.len, path.data, path.len) == 0 &&
	       koine_value_get(koine_value_get(hook, "headers"), "Koine-Timeout");
}

static void count(const struct koine_value *v, unsigned *ours, unsigned *others)
{
	const struct koine_value *child;
	bool is_ours;

	if (text_is(text_of_key(v), "command") && koine_value_kind(v) != KOINE_OBJECT) {
		is_ours = koine_value_kind(v) == KOINE_ARRAY ? is_our_array(v)
							     : ours_is_command(text_of_value(v));
		*ours += is_ours;
		*others += !is_ours;
		return;
	}
	if (member_is(v, "type", "http")) {
		is_ours = ours_is_posted(v);
		*ours += is_ours;
		*others += !is_ours;
		return;
	}
	for (child = koine_value_first(v); child; child = koine_value_next(child))
		count(child, ours, others);
}

bool ours_is(const struct koine_value *v, bool *ret_mixed)
{
	unsigned ours = 0;
	unsigned others = 0;

	count(v, &ours, &others);
	*ret_mixed = ours > 0 && others > 0;
	return ours > 0 && others == 0;
}
