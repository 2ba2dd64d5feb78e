/* How English questions ask; see ask.h. */
#include "search/rank/ask.h"

#include <stddef.h>

/* Whether it is one of the list's words, which spaces divide. */
static bool is_in(struct text word, const char *list)
{
	while (*list) {
		size_t n = strcspn(list, " ");

		if (n == word.len && memcmp(list, word.data, n) == 0)
			return true;
		list += n;
		list += *list == ' ';
	}
	return false;
}

/* Nouns and verbs that ask rather than name what is asked for. */
static const char weak[] =
	"kind kinds type types sort sorts name names named called many much thing things mention "
	"mentioned mentions use used uses using way ways lot lots number different various "
	"specific "
	"particular certain recent recently current currently ever also actually really usually "
	"generally main something someone anything";

/* Words that everybody uses of everything. In few memories they look rare. */
static const char common[] =
	"go goes going gone went come comes coming came get gets getting got take takes taking "
	"taken took make makes making made give gives giving given gave do doing done have having "
	"want wants wanted need needs needed keep keeps kept put let say says said tell told talk "
	"talked ask asked know knew think thought feel felt like liked find found see saw seen "
	"look "
	"looked show try tried start started happen happened happens become became leave left stay "
	"stays stayed hold held bring brought meet met help plan planned work new old good first "
	"last long time year people";

enum ask_weight ask_weight(struct text word)
{
	return is_in(word, weak) ? ASK_WEAK : is_in(word, common) ? ASK_COMMON : ASK_FULL;
}

struct want {
	const char *words;
	unsigned kind;
};

/* One word is enough. */
static const struct want by_one[] = {
	{"where city country town place location", TRAIT_PLACE},
	{"who whom whose", TRAIT_NAME},
	{"why reason reasons", TRAIT_REASON},
	{"title titled", TRAIT_QUOTES},
	{"when", ASK_TIME},
};

/* Words after "what" or "which". */
static const struct want by_what[] = {
	{"year month day date time week season", ASK_TIME},
	{"books book song songs movie movies film films", TRAIT_QUOTES},
	{"name", TRAIT_NAME},
	{"number price amount", TRAIT_NUMBER},
};

/* Words after "how". */
static const struct want by_how[] = {
	{"long", ASK_TIME},
	{"many much old often far tall big", TRAIT_NUMBER},
};

static unsigned look_up(const struct want *wants, size_t n, struct text word)
{
	unsigned found = 0;

	for (size_t i = 0; i < n; i++) {
		if (is_in(word, wants[i].words))
			found |= wants[i].kind;
	}
	return found;
}

#define LOOK_UP(wants, word) look_up(wants, sizeof(wants) / sizeof((wants)[0]), word)

unsigned ask_wants(struct text before, struct text word)
{
	unsigned found = LOOK_UP(by_one, word);

	if (text_is(before, "what") || text_is(before, "which"))
		found |= LOOK_UP(by_what, word);
	if (text_is(before, "how"))
		found |= LOOK_UP(by_how, word);
	return found;
}

bool ask_frames(struct text before, struct text word, bool *ret_second)
{
	*ret_second = is_in(word, "know remember recall");
	if (*ret_second)
		return is_in(before, "you we");
	return is_in(before, "tell remind show give") && is_in(word, "me us");
}

static const char vague[] =
	"happen happened happening happens occurred event events news say said talk talked discuss "
	"discussed mention mentioned note noted notes write wrote remember memory memories "
	"anything "
	"something everything thing things stuff going go new "
	"passiert passierte geschah geschehen los gemacht getan "
	"passe arrive fait paso hice hicimos hizo";

bool ask_is_vague(struct text folded)
{
	return is_in(folded, vague);
}
