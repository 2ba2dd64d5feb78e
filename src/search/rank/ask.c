/* How English questions ask; see inner.h. */
#include "search/rank/inner.h"

#include <stddef.h>
#include <stdint.h>

struct ask_word {
	const char *word;
	uint8_t weight;    /* enum ask_weight */
	uint16_t wants;    /* enum ask_want */
	uint16_t whatever; /* wanted after "what" or "which" */
	uint16_t how;      /* wanted after "how" */
};

/* clang-format off */

/* In the order of strcmp: see `find`. */
static const struct ask_word ask_words[] = {
	{"actually", ASK_WEAK},
	{"age", .wants = TRAIT_NUMBER},
	{"also", ASK_WEAK},
	{"amount", .whatever = TRAIT_NUMBER},
	{"anything", ASK_WEAK},
	{"ask", ASK_COMMON},
	{"asked", ASK_COMMON},
	{"became", ASK_COMMON},
	{"become", ASK_COMMON},
	{"big", .how = TRAIT_NUMBER},
	{"book", .whatever = TRAIT_QUOTES},
	{"books", .whatever = TRAIT_QUOTES},
	{"bring", ASK_COMMON},
	{"brought", ASK_COMMON},
	{"called", ASK_WEAK, .wants = TRAIT_NAME},
	{"came", ASK_COMMON},
	{"certain", ASK_WEAK},
	{"city", .wants = TRAIT_PLACE},
	{"come", ASK_COMMON},
	{"comes", ASK_COMMON},
	{"coming", ASK_COMMON},
	{"cost", .wants = TRAIT_NUMBER},
	{"costs", .wants = TRAIT_NUMBER},
	{"country", .wants = TRAIT_PLACE},
	{"current", ASK_WEAK},
	{"currently", ASK_WEAK},
	{"date", .whatever = ASK_TIME},
	{"day", .whatever = ASK_TIME},
	{"days", .whatever = ASK_TIME},
	{"different", ASK_WEAK},
	{"do", ASK_COMMON},
	{"doing", ASK_COMMON},
	{"done", ASK_COMMON},
	{"ever", ASK_WEAK},
	{"far", .how = TRAIT_NUMBER},
	{"feel", ASK_COMMON},
	{"felt", ASK_COMMON},
	{"film", .whatever = TRAIT_QUOTES},
	{"films", .whatever = TRAIT_QUOTES},
	{"find", ASK_COMMON},
	{"first", ASK_COMMON},
	{"found", ASK_COMMON},
	{"gave", ASK_COMMON},
	{"generally", ASK_WEAK},
	{"get", ASK_COMMON},
	{"gets", ASK_COMMON},
	{"getting", ASK_COMMON},
	{"give", ASK_COMMON},
	{"given", ASK_COMMON},
	{"gives", ASK_COMMON},
	{"giving", ASK_COMMON},
	{"go", ASK_COMMON},
	{"goes", ASK_COMMON},
	{"going", ASK_COMMON},
	{"gone", ASK_COMMON},
	{"good", ASK_COMMON},
	{"got", ASK_COMMON},
	{"happen", ASK_COMMON},
	{"happened", ASK_COMMON},
	{"happens", ASK_COMMON},
	{"have", ASK_COMMON},
	{"having", ASK_COMMON},
	{"held", ASK_COMMON},
	{"help", ASK_COMMON},
	{"hold", ASK_COMMON},
	{"keep", ASK_COMMON},
	{"keeps", ASK_COMMON},
	{"kept", ASK_COMMON},
	{"kind", ASK_WEAK},
	{"kinds", ASK_WEAK},
	{"knew", ASK_COMMON},
	{"know", ASK_COMMON},
	{"last", ASK_COMMON},
	{"leave", ASK_COMMON},
	{"left", ASK_COMMON},
	{"let", ASK_COMMON},
	{"like", ASK_COMMON},
	{"liked", ASK_COMMON},
	{"location", .wants = TRAIT_PLACE},
	{"long", ASK_COMMON, .how = ASK_TIME},
	{"look", ASK_COMMON},
	{"looked", ASK_COMMON},
	{"lot", ASK_WEAK},
	{"lots", ASK_WEAK},
	{"made", ASK_COMMON},
	{"main", ASK_WEAK},
	{"make", ASK_COMMON},
	{"makes", ASK_COMMON},
	{"making", ASK_COMMON},
	{"many", ASK_WEAK, .how = TRAIT_NUMBER},
	{"meet", ASK_COMMON},
	{"mention", ASK_WEAK},
	{"mentioned", ASK_WEAK},
	{"mentions", ASK_WEAK},
	{"met", ASK_COMMON},
	{"month", .whatever = ASK_TIME},
	{"months", .whatever = ASK_TIME},
	{"movie", .whatever = TRAIT_QUOTES},
	{"movies", .whatever = TRAIT_QUOTES},
	{"much", ASK_WEAK, .how = TRAIT_NUMBER},
	{"name", ASK_WEAK, .whatever = TRAIT_NAME},
	{"named", ASK_WEAK, .wants = TRAIT_NAME},
	{"names", ASK_WEAK},
	{"need", ASK_COMMON},
	{"needed", ASK_COMMON},
	{"needs", ASK_COMMON},
	{"new", ASK_COMMON},
	{"number", ASK_WEAK, .whatever = TRAIT_NUMBER},
	{"often", .how = TRAIT_NUMBER},
	{"old", ASK_COMMON, .how = TRAIT_NUMBER},
	{"particular", ASK_WEAK},
	{"people", ASK_COMMON},
	{"place", .wants = TRAIT_PLACE},
	{"plan", ASK_COMMON},
	{"planned", ASK_COMMON},
	{"price", .wants = TRAIT_NUMBER},
	{"put", ASK_COMMON},
	{"really", ASK_WEAK},
	{"reason", .wants = TRAIT_REASON},
	{"reasons", .wants = TRAIT_REASON},
	{"recent", ASK_WEAK},
	{"recently", ASK_WEAK},
	{"said", ASK_COMMON},
	{"saw", ASK_COMMON},
	{"say", ASK_COMMON},
	{"says", ASK_COMMON},
	{"season", .whatever = ASK_TIME},
	{"see", ASK_COMMON},
	{"seen", ASK_COMMON},
	{"show", ASK_COMMON},
	{"someone", ASK_WEAK},
	{"something", ASK_WEAK},
	{"song", .whatever = TRAIT_QUOTES},
	{"songs", .whatever = TRAIT_QUOTES},
	{"sort", ASK_WEAK},
	{"sorts", ASK_WEAK},
	{"specific", ASK_WEAK},
	{"start", ASK_COMMON},
	{"started", ASK_COMMON},
	{"stay", ASK_COMMON},
	{"stayed", ASK_COMMON},
	{"stays", ASK_COMMON},
	{"take", ASK_COMMON},
	{"taken", ASK_COMMON},
	{"takes", ASK_COMMON},
	{"taking", ASK_COMMON},
	{"talk", ASK_COMMON},
	{"talked", ASK_COMMON},
	{"tall", .how = TRAIT_NUMBER},
	{"tell", ASK_COMMON},
	{"thing", ASK_WEAK},
	{"things", ASK_WEAK},
	{"think", ASK_COMMON},
	{"thought", ASK_COMMON},
	{"time", ASK_COMMON, .whatever = ASK_TIME},
	{"title", .wants = TRAIT_QUOTES},
	{"titled", .wants = TRAIT_QUOTES},
	{"told", ASK_COMMON},
	{"took", ASK_COMMON},
	{"town", .wants = TRAIT_PLACE},
	{"tried", ASK_COMMON},
	{"try", ASK_COMMON},
	{"type", ASK_WEAK},
	{"types", ASK_WEAK},
	{"use", ASK_WEAK},
	{"used", ASK_WEAK},
	{"uses", ASK_WEAK},
	{"using", ASK_WEAK},
	{"usually", ASK_WEAK},
	{"various", ASK_WEAK},
	{"want", ASK_COMMON},
	{"wanted", ASK_COMMON},
	{"wants", ASK_COMMON},
	{"way", ASK_WEAK},
	{"ways", ASK_WEAK},
	{"week", .whatever = ASK_TIME},
	{"went", ASK_COMMON},
	{"when", .wants = ASK_TIME},
	{"where", .wants = TRAIT_PLACE},
	{"who", .wants = TRAIT_NAME},
	{"whom", .wants = TRAIT_NAME},
	{"whose", .wants = TRAIT_NAME},
	{"why", .wants = TRAIT_REASON},
	{"work", ASK_COMMON},
	{"year", ASK_COMMON, .whatever = ASK_TIME},
	{"years", .whatever = ASK_TIME},
};

/* clang-format on */

enum { N_WORDS = sizeof(ask_words) / sizeof(ask_words[0]) };

static int compare(struct text word, const char *other)
{
	int order = strncmp(word.data, other, word.len);

	return order ? order : -(other[word.len] != 0);
}

/* What is known of a word; NULL for most. */
static const struct ask_word *find(struct text word)
{
	size_t low = 0;
	size_t high = N_WORDS;

	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = compare(word, ask_words[mid].word);

		if (order == 0)
			return &ask_words[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

enum ask_weight ask_weight(struct text word)
{
	const struct ask_word *known = find(word);

	return known ? known->weight : ASK_FULL;
}

unsigned ask_wants(struct text before, struct text word)
{
	const struct ask_word *known = find(word);

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
	"anything "
	"something everything thing things stuff going go new "
	"passiert passierte geschah geschehen los gemacht getan "
	"passe arrive fait paso hice hicimos hizo";

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
