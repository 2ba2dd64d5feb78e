/* Times that questions name, and what of those times is found. Now is Friday, 5 January 2024. */
#include "search_fixture.h"

#include "search/dates.h"

FIXTURE(setup, teardown);

static void add_at(uint64_t key, const char *text, int64_t time_ms)
{
	struct search_doc doc = {.key = key, .text = text_of(text), .time_ms = time_ms};

	assert_int_equal(search_index_add(ix, scratch, &doc), 0);
}

static void assert_date_finds(const char *question, int64_t right, int64_t wrong)
{
	search_index_free(ix);
	ix = search_index_new(NULL);
	add_at(1, "we had a picnic", right);
	add_at(2, "we had a picnic", wrong);
	assert_int_equal(first(question), 1);
	add_at(3, "we had a picnic", right);
	search_index_remove(ix, 1);
	assert_int_equal(first(question), 3);
}

TEST(a_date_named_lifts_what_is_of_it)
{
	assert_date_finds("picnic in May 2023", at(2023, 5, 30), at(2023, 6, 1));
	assert_date_finds("the picnic on 7 May", at(2021, 5, 7), at(2023, 5, 8));
	assert_date_finds("the picnic on May 7th, 2022", at(2022, 5, 7), at(2023, 5, 7));
	assert_date_finds("picnic on the 7th of May", at(2022, 5, 7), at(2023, 5, 6));
	assert_date_finds("picnic last March", at(2023, 3, 9), at(2023, 4, 9));
	assert_date_finds("picnic 2022-12-24", at(2022, 12, 24), at(2023, 12, 24));
	assert_date_finds("the picnic of 2021", at(2021, 12, 31), at(2022, 1, 1));
	assert_date_finds("picnic yesterday", at(2024, 1, 4), at(2024, 1, 5));
	assert_date_finds("picnic today", at(2024, 1, 5) - 1, at(2024, 1, 4));
	assert_date_finds("picnic last week", at(2023, 12, 31), at(2024, 1, 1));
	assert_date_finds("picnic this week", at(2024, 1, 1), at(2023, 12, 31));
	assert_date_finds("picnic last month", at(2023, 12, 1), at(2024, 1, 1));
	assert_date_finds("picnic last year", at(2023, 1, 1), at(2024, 1, 1));
	assert_date_finds("picnic last Tuesday", at(2024, 1, 2), at(2024, 1, 3));
	assert_date_finds("picnic last Friday", at(2023, 12, 29), at(2024, 1, 5) - 1);
	assert_date_finds("picnic on Friday", at(2024, 1, 5) - 1, at(2024, 1, 4));
	assert_date_finds("picnic three weeks ago", at(2023, 12, 15), at(2023, 12, 25));
	assert_date_finds("picnic a year ago", at(2023, 1, 5), at(2023, 9, 1));
	assert_date_finds("picnic last summer", at(2023, 8, 31), at(2023, 9, 1));
	assert_date_finds("picnic in the winter of 2022", at(2023, 2, 1), at(2023, 3, 1));
}

TEST(dates_are_written_in_many_ways)
{
	assert_date_finds("picnic on 20/05/2021", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("picnic on 05/20/2021", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("picnic on 20.05.2021", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("picnic on 20.5.21", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("picnic 2021/05/20", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("picnic at 2021-05-20T10:30:00Z", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("picnic in 2021-05", at(2021, 5, 31), at(2021, 6, 1));
	assert_date_finds("picnic in 05/2021", at(2021, 5, 31), at(2021, 6, 1));
	/* Either day may be meant. */
	assert_date_finds("picnic on 5/6/2021", at(2021, 6, 5), at(2021, 6, 6));
	assert_date_finds("picnic on 5/6/2021", at(2021, 5, 6), at(2021, 6, 6));
	assert_date_finds("picnic on May 20th 2021", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("picnic of 20 May", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("picnic on 20/5", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("picnic on 5/20", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("picnic on 6/5", at(2021, 5, 6), at(2022, 5, 5));
	assert_date_finds("Picknick am 20.5.", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("was war am 20.05.?", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("Picknick am 3. Okt", at(2021, 10, 3), at(2021, 10, 4));
	assert_date_finds("picnic el 14 de ene", at(2021, 1, 14), at(2021, 1, 15));
	assert_date_finds("14 mar", at(2021, 3, 14), at(2021, 3, 15));
	assert_date_finds("picnic on the first of May", at(2021, 5, 1), at(2021, 5, 2));
	assert_date_finds("picnic in Q3 2021", at(2021, 9, 30), at(2021, 10, 1));
	assert_date_finds("picnic in the third quarter of 2021", at(2021, 7, 1), at(2021, 6, 30));
	assert_date_finds("picnics in the 1990s", at(1999, 12, 31), at(2000, 1, 1));
	assert_date_finds("picnics in the '90s", at(1990, 1, 1), at(1989, 12, 31));
	assert_date_finds("picnics of the nineties", at(1990, 1, 1), at(2000, 1, 1));
}

TEST(dates_may_be_open_or_have_two_ends)
{
	assert_date_finds("picnic before 2022", at(2021, 12, 31), at(2022, 1, 1));
	assert_date_finds("picnic after 2021", at(2022, 1, 1), at(2021, 12, 31));
	assert_date_finds("picnic after June", at(2023, 7, 1), at(2023, 6, 30));
	assert_date_finds("picnic since March", at(2023, 3, 1), at(2023, 2, 28));
	assert_date_finds("picnic since the summer of 2022", at(2022, 6, 1), at(2022, 5, 31));
	assert_date_finds("picnic until 2021", at(2021, 12, 31), at(2022, 1, 1));
	assert_date_finds("picnic before May 7 2021", at(2021, 5, 6), at(2021, 5, 7));
	assert_date_finds("picnic between March and May", at(2021, 5, 31), at(2021, 6, 1));
	assert_date_finds("picnic between March and May", at(2022, 3, 1), at(2022, 2, 28));
	assert_date_finds("picnic between November and January", at(2022, 1, 31), at(2022, 2, 1));
	assert_date_finds("picnic from March to May 2021", at(2021, 3, 1), at(2022, 3, 1));
	assert_date_finds("picnic from November to May 2021", at(2020, 11, 1), at(2021, 11, 1));
	assert_date_finds("picnic between 2019 and 2021", at(2020, 5, 5), at(2022, 1, 1));
	assert_date_finds("picnic 2019-2021", at(2020, 5, 5), at(2022, 1, 1));
	assert_date_finds("picnic from 3 May 2021 until 5 May 2021", at(2021, 5, 5),
			  at(2021, 5, 6));
}

TEST(dates_may_count_from_now)
{
	assert_date_finds("picnic the day before yesterday", at(2024, 1, 3), at(2024, 1, 4));
	assert_date_finds("picnic the day after tomorrow", at(2024, 1, 7), at(2024, 1, 6));
	assert_date_finds("picnic tomorrow", at(2024, 1, 6), at(2024, 1, 5));
	assert_date_finds("picnic two weeks ago", at(2023, 12, 22), at(2023, 12, 29));
	assert_date_finds("picnic a few days ago", at(2024, 1, 2), at(2024, 1, 4));
	assert_date_finds("picnic a couple of weeks ago", at(2023, 12, 22), at(2023, 12, 29));
	assert_date_finds("picnics of the last three weeks", at(2023, 12, 20), at(2023, 12, 1));
	assert_date_finds("picnic in the past 10 days", at(2023, 12, 28), at(2023, 12, 20));
	assert_date_finds("picnic next week", at(2024, 1, 8), at(2024, 1, 7));
	assert_date_finds("picnic next Friday", at(2024, 1, 12), at(2024, 1, 5));
	assert_date_finds("picnic next March", at(2024, 3, 5), at(2023, 3, 5));
	assert_date_finds("picnic this weekend", at(2024, 1, 7), at(2024, 1, 5));
	assert_date_finds("picnic last quarter", at(2023, 12, 31), at(2024, 1, 1));
	assert_date_finds("picnic on the weekend of 20 May 2021", at(2021, 5, 22), at(2021, 5, 20));
	assert_date_finds("picnic in the week of 2021-05-20", at(2021, 5, 17), at(2021, 5, 24));
	assert_date_finds("picnic since Monday", at(2024, 1, 1), at(2023, 12, 31));
	assert_date_finds("picnic next summer", at(2024, 6, 1), at(2023, 6, 1));
}

TEST(dates_are_found_in_other_languages)
{
	assert_date_finds("Was war gestern mit dem picnic?", at(2024, 1, 4), at(2024, 1, 5));
	assert_date_finds("picnic vorgestern", at(2024, 1, 3), at(2024, 1, 4));
	assert_date_finds("Das picnic letzten Monat", at(2023, 12, 5), at(2024, 1, 1));
	assert_date_finds("Das picnic vor drei Wochen", at(2023, 12, 15), at(2023, 12, 29));
	assert_date_finds("Das picnic am 20. Mai 2021", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("Das picnic im März", at(2021, 3, 20), at(2021, 5, 21));
	assert_date_finds("Das picnic vor 2022", at(2021, 12, 31), at(2022, 1, 1));
	assert_date_finds("Das picnic zwischen März und Mai", at(2021, 5, 31), at(2021, 6, 1));
	assert_date_finds("Das picnic letzten Sommer", at(2023, 8, 5), at(2023, 10, 1));
	assert_date_finds("Das picnic seit letztem Freitag", at(2023, 12, 29), at(2023, 12, 28));
	assert_date_finds("Le picnic d'hier est dans le parc", at(2024, 1, 4), at(2024, 1, 5));
	assert_date_finds("Le picnic d'avant-hier", at(2024, 1, 3), at(2024, 1, 4));
	assert_date_finds("le picnic du mois dernier", at(2023, 12, 5), at(2024, 1, 1));
	assert_date_finds("le picnic il y a trois semaines", at(2023, 12, 15), at(2023, 12, 29));
	assert_date_finds("le picnic du 20 mai 2021", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("le picnic de l'été dernier", at(2023, 8, 5), at(2023, 10, 1));
	assert_date_finds("le picnic entre mars et mai", at(2021, 5, 31), at(2021, 6, 1));
	assert_date_finds("le picnic depuis mars", at(2023, 3, 1), at(2023, 2, 1));
	assert_date_finds("le picnic avant 2022", at(2021, 12, 31), at(2022, 1, 1));
	assert_date_finds("el picnic de ayer", at(2024, 1, 4), at(2024, 1, 5));
	assert_date_finds("el picnic de anteayer", at(2024, 1, 3), at(2024, 1, 4));
	assert_date_finds("el picnic del mes pasado", at(2023, 12, 5), at(2024, 1, 1));
	assert_date_finds("el picnic de hace tres semanas", at(2023, 12, 15), at(2023, 12, 29));
	assert_date_finds("el picnic del 20 de mayo de 2021", at(2021, 5, 20), at(2021, 5, 21));
	assert_date_finds("el picnic de la semana que viene", at(2024, 1, 8), at(2024, 1, 7));
	assert_date_finds("el picnic antes de 2022", at(2021, 12, 31), at(2022, 1, 1));
	assert_date_finds("el picnic entre marzo y mayo", at(2021, 5, 31), at(2021, 6, 1));
}

TEST(what_happened_then_is_found)
{
	static const char *const asking[] = {"What happened yesterday?",
					     "what's new since yesterday",
					     "Was ist gestern passiert?", "¿Qué pasó ayer?"};

	add_at(1, "we had a picnic", at(2024, 1, 4));
	add_at(2, "the kettle broke", at(2024, 1, 4));
	add_at(3, "it happened before: something new happened", at(2024, 1, 2));
	for (size_t i = 0; i < sizeof(asking) / sizeof(asking[0]); i++) {
		first(asking[i]);
		assert_int_equal(n_hits, 2);
		assert_false(found(3));
	}
	first("What happened before 2024-01-03?");
	assert_int_equal(n_hits, 1);
	assert_true(found(3));
}

/* The digits of a date are rare words, and must not weigh as such. */
TEST(the_words_of_a_date_do_not_drown_the_others)
{
	for (uint64_t key = 10; key < 40; key++)
		add_at(key, "coffee with friends", at(2021, 1, (int)key - 9));
	add_at(1, "coffee at the station", at(2021, 5, 20));
	add_at(2, "bus 20 leaves at 05 in 2021", at(2022, 3, 3));
	assert_int_equal(first("coffee on 2021-05-20"), 1);
	assert_int_equal(first("coffee on 20/05/2021"), 1);
}

TEST(the_first_and_the_last_time_are_found)
{
	add_at(1, "we met Bob at the pool", at(2021, 5, 1));
	add_at(2, "we met Bob at the lake", at(2022, 5, 1));
	add_at(3, "we met Bob at the beach", at(2023, 5, 1));
	add_at(4, "it was a good time for many things and names", at(2023, 7, 1));
	assert_int_equal(first("the first time we met Bob"), 1);
	assert_int_equal(first("When did we first meet Bob?"), 1);
	assert_int_equal(first("When did we last meet Bob?"), 3);
	assert_int_equal(first("the last time we met Bob"), 3);
	assert_int_equal(first("our earliest meeting with Bob, when we met"), 1);
	assert_int_equal(first("the most recent time when we met Bob"), 3);
	assert_int_equal(first("Wann waren wir zum ersten Mal mit Bob am pool oder lake?"), 1);
}

TEST(not_every_first_is_an_order)
{
	add_at(1, "her violin is made of maple", at(2021, 5, 1));
	add_at(2, "her first violin is made of spruce", at(2023, 5, 1));
	assert_int_equal(first("What is her first violin made of?"), 2);
}

TEST(order_of_a_thing_finds_the_newest_or_the_oldest)
{
	add_at(1, "release 1.0 is out", at(2021, 5, 1));
	add_at(2, "with all tests green the team tagged release 1.4 on the server", at(2022, 5, 1));
	add_at(3, "release 2.0 came out, with a long list of small repairs for the printers",
	       at(2023, 5, 1));
	add_at(4, "at last we ate pizza", at(2022, 7, 1));
	add_at(5, "the printers are on the first floor", at(2022, 8, 1));
	assert_int_equal(first("last release"), 3);
	assert_int_equal(first("the last release"), 3);
	assert_int_equal(first("What was in our last release?"), 3);
	assert_int_equal(first("most recent release"), 3);
	assert_int_equal(first("latest release"), 3);
	assert_int_equal(first("first release"), 1);
	assert_int_equal(first("When was the first release?"), 1);
	assert_int_equal(first("letzter release"), 3);
	add_at(6, "release 0.9 was the first", at(2022, 9, 1));
	assert_int_equal(first("first release"), 6);
}

TEST(order_of_a_thing_with_more_words_finds_those_with_all_of_them)
{
	add_at(1, "the backup of the mail server took 3 hours", at(2021, 5, 1));
	add_at(2, "the backup of the mail server took 4 hours", at(2022, 5, 1));
	add_at(3, "the backup of the mail server took 2 hours", at(2023, 5, 1));
	add_at(4, "the backup of the web server took 1 hour", at(2020, 5, 1));
	add_at(5, "the backup of the mail of Ann is late", at(2024, 5, 1));
	assert_int_equal(first("first backup of the mail server"), 1);
	assert_int_equal(first("How long did the first mail server backup take?"), 1);
	assert_int_equal(first("last backup of the mail server"), 3);
}

TEST(not_every_last_is_an_order)
{
	add_at(1, "Ann's last name is Miller", at(2021, 5, 1));
	add_at(2, "the name of Ann's boat is Otter, says a sign", at(2023, 5, 1));
	assert_int_equal(first("What is Ann's last name?"), 1);
	add_at(3, "the last harbour before the open sea is Lerwick", at(2021, 6, 1));
	add_at(4, "the harbour of Malmo has a crane", at(2023, 6, 1));
	assert_int_equal(first("Which is the last harbour?"), 3);
}

/* Whatever it says, what is of a named day is found, also beside other words. */
TEST(a_named_day_finds_what_is_of_it)
{
	for (uint64_t key = 100; key < 1400; key++)
		add_at(key, "coffee with friends", at(2021, 6, 1) + (int64_t)key * 60000);
	add_at(1, "coffee at the station", at(2022, 5, 20));
	add_at(2, "Tom broke his arm", at(2023, 5, 20));
	add_at(3, "the roof was mended", at(2023, 5, 21));
	assert_int_equal(first("coffee on 20 May"), 1);
	assert_true(found(2));
	assert_true(!found(3));
	assert_int_equal(first("coffee on 20 May 2023"), 2);
	first("What about the garden on 20 May?");
	assert_true(found(1) && found(2) && !found(3));
	first("the 20th of May");
	assert_true(found(1) && found(2) && !found(3));
	/* Of a longer time only what has the words, if there is any. */
	first("coffee in May");
	assert_true(found(1) && !found(2));
}

TEST(dates_decide_only_when_they_are_looked_for)
{
	add_at(1, "we had a picnic", at(2021, 5, 7));
	add_at(2, "we had a picnic", at(2023, 6, 1));
	assert_int_equal(first("picnic in May 2021"), 1);
	assert_int_equal(first_without(SEARCH_NO_DATES, "picnic in May 2021"), 2);
	/* Not every may is a month. */
	assert_int_equal(first("I may picnic"), 2);
}

TEST(a_date_alone_finds_its_time)
{
	add_at(1, "we had a picnic", at(2024, 1, 4));
	add_at(2, "the kettle broke", at(2024, 1, 4));
	add_at(3, "it rained", at(2024, 1, 3));
	first("What did we do yesterday?");
	assert_int_equal(n_hits, 2);
	assert_false(found(3));
}
