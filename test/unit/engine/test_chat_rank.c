/* Which sentences answer a question. */
#include "check.h"

#include "engine/chat/chat.h"

enum { MANY = 9000, BEST = 12 };

static unsigned best[BEST];
static unsigned n_best;

static void rank(const char *const *sentences, unsigned n, const char *question)
{
	struct text *texts = calloc(n + 1, sizeof(*texts));

	for (unsigned i = 0; i < n; i++)
		texts[i] = text_of(sentences[i]);
	n_best = 99;
	assert_int_equal(chat_rank(NULL, texts, n, text_of(question), best, BEST, &n_best), 0);
	free(texts);
}

#define RANK(question, ...)                                                                        \
	do {                                                                                       \
		const char *const s_[] = {__VA_ARGS__};                                            \
		rank(s_, sizeof(s_) / sizeof(s_[0]), question);                                    \
	} while (0)

TEST(the_one_content_word_finds_its_sentence)
{
	RANK("What is my name?", "I live in a house by the sea.", "My name is Alice.",
	     "Is it going to rain?", "The tea is too hot.");
	assert_int_equal(n_best, 1);
	assert_int_equal(best[0], 1);
}

TEST(my_name_is_not_the_name)
{
	RANK("What is my name?", "My name is Alice.", "Everybody knows the name of the rose.");
	assert_true(n_best > 0);
	assert_int_equal(best[0], 0);
}

TEST(what_was_said_last_comes_first)
{
	RANK("What is my name?", "My name is Alice.", "I like tea.", "Actually my name is Bob.");
	assert_int_equal(n_best, 2);
	assert_int_equal(best[0], 2);
	assert_int_equal(best[1], 0);
}

TEST(nothing_in_common_finds_nothing)
{
	RANK("How deep is the ocean?", "My name is Alice.", "I like tea.");
	assert_int_equal(n_best, 0);
	rank(NULL, 0, "What is my name?");
	assert_int_equal(n_best, 0);
	RANK("", "My name is Alice.");
	assert_int_equal(n_best, 0);
}

TEST(one_shared_word_of_many_is_not_enough)
{
	RANK("Which capital city of northern Europe has been called the Venice of the north?",
	     "My dog is called Rex.");
	assert_int_equal(n_best, 0);
}

TEST(other_forms_of_a_word_are_found)
{
	RANK("What did I buy?", "The weather was fine.",
	     "Yesterday I bought a bicycle and sold it again.");
	assert_int_equal(n_best, 1);
	assert_int_equal(best[0], 1);
}

TEST(a_question_of_small_words_only_is_compared_by_them)
{
	RANK("Who am I?", "Tea tastes best hot.", "I am Alice.");
	assert_int_equal(n_best, 1);
	assert_int_equal(best[0], 1);
}

TEST(of_too_many_the_last_are_looked_at)
{
	static const char *sentences[MANY];

	for (unsigned i = 0; i < MANY; i++)
		sentences[i] = "Nothing happened here.";
	sentences[0] = "The password is swordfish.";
	rank(sentences, MANY, "What is the password?");
	assert_int_equal(n_best, 0);
	sentences[MANY - 5000] = "The password is herring.";
	rank(sentences, MANY, "What is the password?");
	assert_int_equal(n_best, 1);
	assert_int_equal(best[0], MANY - 5000);
}

TEST(at_most_as_many_as_asked_for)
{
	struct text texts[40];
	unsigned some[3];

	for (unsigned i = 0; i < 40; i++)
		texts[i] = TEXT("A fox and a name.");
	assert_int_equal(chat_rank(NULL, texts, 40, TEXT("which name"), some, 3, &n_best), 0);
	assert_int_equal(n_best, 3);
	assert_int_equal(some[0], 39);
}
