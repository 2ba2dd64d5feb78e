/* How English questions ask; see inner.h. */
#include "search/rank/inner.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "search/language.h"

static const struct ask_list {
	const char *words;
	uint8_t weight;    /* enum ask_weight */
	uint16_t wants;    /* enum ask_want */
	uint16_t whatever; /* wanted after "what" or "which" */
	uint16_t how;      /* wanted after "how" */
} ask_lists[] = {
	{"actually also anything certain current currently different ever generally kind "
	 "kinds lot lots main mention mentioned mentions names particular really recent "
	 "recently someone something sort sorts specific thing things type types use "
	 "used uses using usually various way ways",
	 ASK_WEAK},
	{"age cost costs price", .wants = TRAIT_NUMBER},
	{"amount", .whatever = TRAIT_NUMBER},
	{"ask asked became become bring brought came come comes coming do doing done "
	 "feel felt find first found gave get gets getting give given gives giving go "
	 "goes going gone good got happen happened happens have having held help hold "
	 "keep keeps kept knew know last leave left let like liked look looked made make "
	 "makes making meet met need needed needs new people plan planned put said saw "
	 "say says see seen show start started stay stayed stays take taken takes taking "
	 "talk talked tell think thought told took tried try want wanted wants went work",
	 ASK_COMMON},
	{"big far often tall", .how = TRAIT_NUMBER},
	{"book books film films movie movies song songs", .whatever = TRAIT_QUOTES},
	{"called named", ASK_WEAK, .wants = TRAIT_NAME},
	{"city country location place town where", .wants = TRAIT_PLACE},
	{"date day days month months season week years", .whatever = ASK_TIME},
	{"long", ASK_COMMON, .how = ASK_TIME},
	{"many much", ASK_WEAK, .how = TRAIT_NUMBER},
	{"name", ASK_WEAK, .whatever = TRAIT_NAME},
	{"number", ASK_WEAK, .whatever = TRAIT_NUMBER},
	{"old", ASK_COMMON, .how = TRAIT_NUMBER},
	{"reason reasons why", .wants = TRAIT_REASON},
	{"time year", ASK_COMMON, .whatever = ASK_TIME},
	{"title titled", .wants = TRAIT_QUOTES},
	{"when", .wants = ASK_TIME},
	{"who whom whose", .wants = TRAIT_NAME},
};

enum { SLOTS = 512 };
static struct word_slot slots[SLOTS];
static const struct word_lists table = {ask_lists, sizeof(ask_lists[0]),
					sizeof(ask_lists) / sizeof(ask_lists[0]), slots, SLOTS};

static void learn(void)
{
	word_lists_fill(&table);
}

/* What is known of a word; NULL for most. */
static const struct ask_list *rank_ask_find(struct text word)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct word_slot *slot;

	pthread_once(&once, learn);
	slot = word_lists_find(&table, word, NULL);
	return slot ? &ask_lists[slot->list] : NULL;
}

enum ask_weight ask_weight(struct text word)
{
	const struct ask_list *known = rank_ask_find(word);

	return known ? known->weight : ASK_FULL;
}

unsigned ask_wants(struct text before, struct text word)
{
	const struct ask_list *known = rank_ask_find(word);

	if (!known)
		return 0;
	if (text_is(before, "what") || text_is(before, "which"))
		return known->wants | known->whatever;
	return text_is(before, "how") ? known->wants | known->how : known->wants;
}

bool ask_frames(struct text before, struct text word, bool *ret_second)
{
	*ret_second = text_is(before, "you") || text_is(before, "we");
	if (*ret_second)
		return text_is(word, "know") || text_is(word, "remember") ||
		       text_is(word, "recall");
	if (!text_is(word, "me") && !text_is(word, "us"))
		return false;
	return text_is(before, "tell") || text_is(before, "remind") || text_is(before, "show") ||
	       text_is(before, "give");
}

static const char vague[] =
	"happen happened happening happens occurred event events news say said talk talked discuss "
	"discussed mention mentioned note noted notes write wrote remember memory memories "
	"anything something everything thing things stuff going go new passiert passierte geschah "
	"geschehen los gemacht getan passe arrive fait paso hice hicimos hizo";

bool ask_is_vague(struct text folded)
{
	for (const char *at = vague; *at; at += *at == ' ') {
		size_t n = strcspn(at, " ");

		if (n == folded.len && memcmp(at, folded.data, n) == 0)
			return true;
		at += n;
	}
	return false;
}
