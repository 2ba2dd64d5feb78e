#include "search/rank/inner.h"

#include <pthread.h>

#include "search/mix.h"

enum { SLOTS = 2048, GROUPS_EACH = 3 };

/* How alike they are, where the cosine of a vector would be at most 1. */
static const float same = 1.0f;
static const float kind = 0.8f;

/* Each stands for all others of its line. */
static const char *const sets[] = {
	"job work occupation profession career",
	"boss manager supervisor",
	"colleague coworker teammate",
	"company firm employer business",
	"salary pay wage income",
	"quit resign leave",
	"hire employ recruit",
	"child kid",
	"mother mom mum mama",
	"father dad daddy papa",
	"wife husband spouse partner",
	"girlfriend boyfriend partner",
	"sister brother sibling",
	"grandmother grandma granny nana",
	"grandfather grandpa granddad",
	"baby infant newborn",
	"friend buddy pal mate",
	"doctor physician",
	"ill sick unwell",
	"illness disease sickness",
	"medicine medication pill drug",
	"hospital clinic",
	"pain ache hurt sore",
	"injury wound injure",
	"happy glad delighted",
	"sad unhappy upset",
	"angry mad furious",
	"afraid scared fear frightened",
	"worried anxious nervous anxiety",
	"tired exhausted",
	"excited thrilled",
	"proud pride",
	"like enjoy love",
	"hate dislike",
	"favorite favourite prefer",
	"home house place",
	"flat apartment",
	"live reside",
	"move relocate",
	"buy purchase bought",
	"shop store",
	"cost price",
	"money cash",
	"gift present",
	"car vehicle automobile",
	"truck lorry van",
	"bike bicycle",
	"plane flight airplane",
	"trip journey travel vacation holiday",
	"beach seaside shore coast",
	"forest woods",
	"city town",
	"street road",
	"picture photo photograph image",
	"film movie",
	"book novel",
	"author writer",
	"song tune track",
	"singer vocalist musician",
	"concert gig",
	"exercise workout gym fitness",
	"run jog",
	"walk hike stroll",
	"study learn",
	"university college",
	"teacher instructor professor",
	"student pupil",
	"class course lesson workshop",
	"degree diploma",
	"start begin",
	"stop quit",
	"finish complete",
	"make create build",
	"fix repair mend",
	"break damage broken",
	"help assist support",
	"donate charity",
	"talk speak chat",
	"tell mention",
	"answer reply respond",
	"call phone ring",
	"phone telephone mobile smartphone",
	"computer laptop",
	"website site",
	"party celebration celebrate",
	"wedding marriage marry married",
	"divorce separated split",
	"die death died passed",
	"born birth",
	"garden yard backyard",
	"clothes clothing outfit",
	"shoe boot sneaker",
	"trousers pants jeans",
	"autumn fall",
	"football soccer",
	"big large huge",
	"small little tiny",
	"beautiful pretty lovely gorgeous",
	"smart clever intelligent",
	"strange weird odd",
	"important crucial significant",
	"difficult hard tough challenging",
	"easy simple",
	"problem issue trouble",
	"idea thought suggestion",
	"plan intend",
	"decide decision chose choose",
	"try attempt",
	"competition contest tournament",
	"award prize medal trophy",
	"art painting drawing",
	"museum gallery exhibition",
	"pottery ceramics",
	"cook bake",
	"dessert cake",
	"restaurant cafe diner",
	"dinner supper",
	"vegetarian vegan",
	"allergy allergic",
	"developer programmer engineer",
	"bug defect error",
	"deploy release ship",
	"deadline due",
	"customer client",
	"invoice bill",
	"contract agreement",
	"meeting appointment",
	"accident crash",
	"steal stolen theft",
	"rent lease",
	"neighbour neighbor",
	"pet dog cat puppy kitten",
	"research study",
	"volunteer volunteering",
	"church faith religion religious",
	"camping camp tent",
	"nickname called",
	"age old birthday",
};

/* The first stands for all others of its line, and not the other way round. */
static const char *const kinds[] = {
	"instrument guitar piano violin drum flute clarinet cello saxophone trumpet ukulele",
	"pet dog cat puppy kitten hamster rabbit parrot turtle fish",
	"animal dog cat horse bird cow sheep bear",
	"sport football soccer basketball tennis hockey swimming volleyball baseball climbing",
	"hobby painting reading gardening hiking knitting photography pottery cooking",
	"colour red blue green yellow purple orange black white pink",
	"color red blue green yellow purple orange black white pink",
	"relative aunt uncle cousin nephew niece grandmother grandfather",
	"sibling brother sister",
	"parent mother father mom dad",
	"fruit apple banana orange strawberry mango peach pear",
	"vegetable carrot tomato potato spinach onion",
	"meal breakfast lunch dinner",
	"drink coffee tea juice wine beer",
	"food pasta pizza soup salad bread cheese rice curry",
	"vehicle car truck bike bus van",
	"transport car bus train bike tram",
	"weather rain snow sun storm wind",
	"season spring summer autumn winter",
	"furniture table chair sofa bed desk shelf",
	"subject math physics chemistry history biology",
	"language english french spanish german italian japanese",
	"country france germany spain italy japan canada sweden",
	"flower rose tulip lily daisy sunflower",
	"dance ballet salsa tango",
	"jewelry ring necklace bracelet",
	"symptom fever cough headache pain rash",
};

/* ---- by what indexes call them ---- */

struct synonyms_slot {
	uint32_t hash; /* 0: free */
	uint8_t n;
	int16_t groups[GROUPS_EACH]; /* of sets, or -1 - of kinds */
};

static struct synonyms_slot slots[SLOTS];

static struct synonyms_slot *slot_of(uint32_t hash)
{
	uint32_t at = hash % SLOTS;

	while (slots[at].hash != 0 && slots[at].hash != hash)
		at = (at + 1) % SLOTS;
	return &slots[at];
}

static uint32_t hash_term(struct text term)
{
	return (uint32_t)mix_bytes(term.data, term.len, 7) | 1;
}

static void synonyms_note(struct words *w, struct text word, int16_t group)
{
	uint8_t flags;
	uint32_t hash = hash_term(words_term(w, word, 0, &flags));
	struct synonyms_slot *s = slot_of(hash);

	s->hash = hash;
	if (s->n < GROUPS_EACH && (s->n == 0 || s->groups[s->n - 1] != group))
		s->groups[s->n++] = group;
}

static void learn(void)
{
	struct words *w = words_new();
	struct text word;

	for (size_t i = 0; w && i < sizeof(sets) / sizeof(sets[0]); i++) {
		struct text rest = text_of(sets[i]);

		while (text_next(&rest, ' ', &word))
			synonyms_note(w, word, (int16_t)i);
	}
	for (size_t i = 0; w && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct text rest = text_of(kinds[i]);

		if (text_next(&rest, ' ', &word))
			synonyms_note(w, word, (int16_t)(-1 - (int)i));
	}
	words_free(w);
}

/* ---- finding ---- */

static size_t add_group(struct words *w, struct text term, int16_t group, size_t n,
			struct near_word near[SYNONYMS_MAX])
{
	struct text rest = text_of(group >= 0 ? sets[group] : kinds[-1 - group]);
	struct text word;
	uint8_t flags;

	while (n < SYNONYMS_MAX && text_next(&rest, ' ', &word)) {
		struct text other = words_term(w, word, 0, &flags);

		if (text_equal(other, term) || other.len > WORD_BYTES_MAX)
			continue;
		near[n].cosine = group >= 0 ? same : kind;
		near[n].len = (uint8_t)other.len;
		memcpy(near[n++].term, other.data, other.len);
	}
	return n;
}

size_t synonyms_find(struct words *w, struct text term, struct near_word ret_near[SYNONYMS_MAX])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct synonyms_slot *s;
	size_t n = 0;

	pthread_once(&once, learn);
	s = slot_of(hash_term(term));
	for (unsigned i = 0; i < s->n; i++)
		n = add_group(w, term, s->groups[i], n, ret_near);
	return n;
}
