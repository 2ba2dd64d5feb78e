#include "made.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCABULARY = 100000, CHAT_LEN = 60, START_S = 1600000000 };

static const char *const people[] = {
	"Anna",   "Tomas",  "Priya",   "Jonas",  "Elif",   "Marco",  "Nina",    "Pavel",
	"Sofia",  "Kenji",  "Amina",   "Lukas",  "Ingrid", "Rafael", "Mei",     "Oskar",
	"Leila",  "Hugo",   "Clara",   "Dmitri", "Yara",   "Felix",  "Zofia",   "Samuel",
	"Irene",  "Bruno",  "Chiara",  "Anders", "Noor",   "Emil",   "Beatriz", "Viktor",
	"Hanna",  "Mateo",  "Freya",   "Ivan",   "Aisha",  "Paul",   "Greta",   "Omar",
	"Julia",  "Stefan", "Lena",    "Diego",  "Marta",  "Simon",  "Olga",    "Theo",
	"Carmen", "Nikos",  "Valerie", "Ravi",   "Astrid", "Milan",  "Teresa",  "Gustav"};

static const char *const places[] = {
	"Lisbon", "the harbour", "Vienna",  "the lake house", "Oslo",         "the office",
	"Porto",  "the station", "Krakow",  "the old market", "Kyoto",        "the clinic",
	"Ghent",  "the museum",  "Seville", "the allotment",  "Dublin",       "the library",
	"Turin",  "the airport", "Bergen",  "the workshop",   "Thessaloniki", "the gym"};

/* What people talk about most, most frequent first; the rest is made of syllables. */
static const char *const topics[] = {
	"time",     "work",     "house",    "family",    "train",     "project",     "dinner",
	"car",      "meeting",  "garden",   "book",      "coffee",    "school",      "money",
	"kitchen",  "dog",      "phone",    "music",     "ticket",    "release",     "letter",
	"doctor",   "birthday", "server",   "holiday",   "bread",     "bicycle",     "report",
	"price",    "cat",      "window",   "recipe",    "piano",     "contract",    "soup",
	"blue",     "painting", "key",      "concert",   "budget",    "cheese",      "lease",
	"teapot",   "quiet",    "camera",   "printer",   "invoice",   "jacket",      "small",
	"chess",    "lamp",     "password", "deadline",  "heating",   "green",       "insurance",
	"violin",   "tomato",   "laptop",   "choir",     "balcony",   "vegetarian",  "deposit",
	"marathon", "peanuts",  "warm",     "boat",      "glasses",   "lecture",     "plumber",
	"backup",   "umbrella", "wooden",   "novel",     "allergy",   "pottery",     "ladder",
	"database", "cello",    "mushroom", "passport",  "cheap",     "tent",        "router",
	"scarf",    "dentist",  "cinnamon", "schedule",  "rehearsal", "spare",       "interview",
	"wallet",   "compost",  "firewall", "sourdough", "telescope", "customs",     "harvest",
	"keyboard", "museum",   "pension",  "reading",   "swimming",  "translation", "visa",
	"walnut",   "archive",  "bakery",   "crossword", "drill",     "exhibition",  "ferry"};

static const char *const onsets[] = {"b",  "c",  "d",  "f",  "g",  "h",  "l",  "m",  "n",
				     "p",  "r",  "s",  "t",  "v",  "w",  "br", "cr", "dr",
				     "fl", "gr", "pl", "pr", "sh", "sl", "st", "th", "tr"};
static const char *const cores[] = {"a", "e", "i", "o", "u", "ai", "ea", "oo", "ou", "ie"};
static const char *const codas[] = {"",   "n",  "r",  "l",  "t",  "s",  "m", "ck",
				    "nd", "st", "rt", "ng", "lm", "sk", "p"};

static const char *const days[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
				   "Friday", "Saturday", "Sunday"};
static const char *const months[] = {"January",   "February", "March",    "April",
				     "May",       "June",     "July",     "August",
				     "September", "October",  "November", "December"};

static const char *const categories[] = {"preference", "decision", "fact", "entity", "other"};

/* %p a person, %q another, %l a place, %d a date, %t a word, %n a number. */
static const char *const memories[] = {
	"%p prefers %t %t over %t, at least in the %t",
	"%p is allergic to %t, so there will be no %t when we cook the %t",
	"%p and %q are going to %l %d to see the %t about the %t",
	"We decided to move the %t %t %d because the %t was late",
	"The %t for the %t costs %n euros, %p paid it %d",
	"%p works on the %t %t at %l together with %q",
	"%p said that the %t in %l was %t and that we should try the %t",
	"Please remember to send %p the %t about the %t, it is due %d",
	"%p's birthday is %d, and a %t %t would be a good present",
	"Did %p find the %t that %q left at %l?",
	"Yes, it was under the %t, next to %n %t and a %t",
	"%p moved to %l %d and took the %t and the %t along",
	"My %t broke %d and %p knows somebody who repairs every %t %t",
	"The new %t is called %t, and its %t is kept at %l",
	"%p does not eat %t but likes %t with %t and a lot of %t",
	"I booked %n seats for the %t %d, %p and %q come too",
	"For the %t we agreed on %t instead of %t, %p was against it",
	"%p started to learn the %t %d, with the %t that belonged to %q",
	"The %t %t at %l opens at %n, ask %p for the %t",
	"When the %t is over, %p wants to visit %q in %l and write about the %t %t",
	"How long did %p stay at %l with the %t?",
	"About %n weeks, until the %t %t was done",
	"Thanks for the %t %t, %p!",
	"The %t %t needs a %t and %n of the %t %t that %p brought from %l %d, %q has the %t",
};

static const char *const questions[] = {
	"What did %p say about the %t and the %t?",
	"Which %t does %p prefer?",
	"When is the %t %t?",
	"Who paid for the %t?",
	"Where did %p and %q see the %t?",
	"What was decided about the %t and the %t?",
	"How much is the %t for the %t?",
	"Who keeps the %t %t at %l?",
	"What does %p think of the %t %t in %l?",
	"%t %t",
	"Why did %p need the %t with the %t and the %t?",
	"What happened with the %t %d?",
};

#define COUNT(list)   (sizeof(list) / sizeof((list)[0]))
#define PICK(list, n) ((list)[(n) % COUNT(list)])

struct maker {
	uint64_t state;
	struct made *out;
	const struct made *about; /* a question's memory; NULL: everything is drawn anew */
	size_t n_asked;
};

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15U;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
	x = (x ^ x >> 27) * 0x94d049bb133111ebU;
	return x ^ x >> 31;
}

static uint64_t draw(struct maker *m, uint64_t below)
{
	m->state = mix(m->state);
	return (m->state >> 32) * below >> 32;
}

/* Of low numbers more than of high ones: some people are mentioned all the time. */
static size_t draw_skewed(struct maker *m, size_t n)
{
	double u = (double)draw(m, 1 << 30) / (1 << 30);

	return (size_t)(u * u * (double)n);
}

static void word_of(size_t rank, char *to, size_t size)
{
	uint64_t h = mix(rank);
	size_t len = 0;

	if (rank < COUNT(topics)) {
		snprintf(to, size, "%s", topics[rank]);
		return;
	}
	for (size_t i = 0; i < 2 + h % 2 && len < size; i++) {
		uint64_t part = h >> (8 + 18 * i);

		len += (size_t)snprintf(to + len, size - len, "%s%s%s", PICK(onsets, part),
					PICK(cores, part / 32), PICK(codas, part / 512));
	}
}

/* Zipf over the vocabulary, by the inverse of the integral of 1/x. */
static size_t draw_rank(struct maker *m)
{
	double u = (double)draw(m, 1 << 30) / (1 << 30);

	return (size_t)pow(VOCABULARY, u) - 1;
}

static void put(struct made *out, const char *text)
{
	size_t n = strlen(text);

	if (n > sizeof(out->text) - out->len)
		n = sizeof(out->text) - out->len;
	memcpy(out->text + out->len, text, n);
	out->len += n;
}

static void put_word(struct maker *m)
{
	struct made *out = m->out;
	char word[32];

	if (m->about && m->about->n_words > 0) {
		put(out, m->about->words[m->n_asked++ % m->about->n_words]);
		return;
	}
	word_of(draw_rank(m), word, sizeof(word));
	put(out, word);
	if (out->n_words < MADE_WORDS_MAX)
		memcpy(out->words[out->n_words++], word, sizeof(word));
}

static void put_person(struct maker *m, size_t which)
{
	const char *name = m->about ? m->about->people[which] : NULL;

	if (!name)
		name = people[draw_skewed(m, COUNT(people))];
	m->out->people[which] = name;
	put(m->out, name);
}

static void put_place(struct maker *m)
{
	m->out->place = m->about && m->about->place ? m->about->place
						    : places[draw_skewed(m, COUNT(places))];
	put(m->out, m->out->place);
}

static void put_number(struct maker *m, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	put(m->out, text);
}

static void put_date(struct maker *m)
{
	char text[64];

	switch (draw(m, 4)) {
	case 0:
		snprintf(text, sizeof(text), "on %u %s", (unsigned)draw(m, 28) + 1,
			 months[draw(m, COUNT(months))]);
		break;
	case 1:
		snprintf(text, sizeof(text), "in %s %u", months[draw(m, COUNT(months))],
			 2020 + (unsigned)draw(m, 3));
		break;
	case 2:
		snprintf(text, sizeof(text), "next %s", days[draw(m, COUNT(days))]);
		break;
	default:
		snprintf(text, sizeof(text), "last %s", draw(m, 2) ? "week" : "summer");
		break;
	}
	put(m->out, text);
}

static void put_form(struct maker *m, const char *form)
{
	for (; *form; form++) {
		char plain[2] = {*form, 0};

		if (*form != '%') {
			put(m->out, plain);
			continue;
		}
		switch (*++form) {
		case 't':
			put_word(m);
			break;
		case 'p':
			put_person(m, 0);
			break;
		case 'q':
			put_person(m, 1);
			break;
		case 'l':
			put_place(m);
			break;
		case 'd':
			put_date(m);
			break;
		case 'n':
			put_number(m, draw(m, 90) + 2);
			break;
		}
	}
}

static uint64_t user_of(const struct made_set *set, uint64_t number)
{
	if (set->n_users <= 1 || number % (set->n_memories / set->n_own) == 0)
		return 0;
	return 1 + mix(number) % (set->n_users - 1);
}

void made_memory(const struct made_set *set, uint64_t number, struct made *ret)
{
	struct maker m = {.state = mix(number), .out = ret};

	ret->len = 0;
	ret->n_words = 0;
	ret->place = NULL;
	ret->people[0] = ret->people[1] = NULL;
	ret->user = user_of(set, number);
	ret->chat = number / CHAT_LEN;
	ret->time_s = START_S + (int64_t)number * 60;
	ret->category = categories[draw(&m, COUNT(categories))];
	put_form(&m, memories[draw(&m, COUNT(memories))]);
	ret->person = draw(&m, 3) == 0 ? ret->people[0] : NULL;
}

void made_question(const struct made_set *set, uint64_t number, struct made *ret)
{
	struct maker m = {.state = mix(~number), .out = ret};
	uint64_t step = set->n_users <= 1 ? 1 : set->n_memories / set->n_own;
	struct made about;

	made_memory(set, draw(&m, set->n_memories / step) * step, &about);
	*ret = (struct made) {.user = 0};
	m.about = &about;
	m.n_asked = about.n_words ? draw(&m, about.n_words) : 0;
	put_form(&m, questions[draw(&m, COUNT(questions))]);
}

static bool take(const char **at, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(*at, &end, 10);
	if (end == *at || errno != 0 || *ret == 0 || (*end != 0 && *end != ','))
		return false;
	*at = *end ? end + 1 : end;
	return true;
}

int made_set_parse(const char *text, struct made_set *ret)
{
	struct made_set set = {.n_users = 1};

	if (!take(&text, &set.n_memories))
		return -EINVAL;
	set.n_own = set.n_memories;
	if (*text && (!take(&text, &set.n_users) || !take(&text, &set.n_own) || *text))
		return -EINVAL;
	if (set.n_own > set.n_memories)
		return -EINVAL;
	*ret = set;
	return 0;
}
