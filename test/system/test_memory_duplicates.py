#!/usr/bin/env python3
"""Five spellings of one fact take one place in an answer; what only looks alike keeps its own."""
from harness import Daemon, check, main, same

SPELLINGS = ["Ann's favourite colour is blue", "ann's favorite color is Blue!", "Ann\u2019s favorite  color is blue.",
             "Ann's favourite colour really is blue", "ANN'S FAVOURITE COLOUR IS SO VERY BLUE"]

# Each pair must stay two hits.
APART = [
    ("Ann moved to Oslo", "Ann moved to Bergen"),
    ("the deposit is 2400 euros", "the deposit is 2500 euros"),
    ("Ann likes green tea", "Ann likes tea"),
    ("Ann likes milk in tea", "Ann likes tea in milk"),
    ("Tom gave Ann the car keys", "Ann gave Tom the car keys"),
    ("Ann likes spinach", "Ann does not like spinach"),
    ("the shop is open on Sundays", "the shop isn't open on Sundays"),
    ("Ann writes games in C", "Ann writes games in C++"),
    ("the freezer is at -18 degrees", "the freezer is at 18 degrees"),
    ("the heater is at \u22123 degrees", "the heater is at 3 degrees"),
    ("the ticket costs 5 \u20ac", "the ticket costs 5 \u00a3"),
    ("the yard has 12 m\u00b2", "the yard has 12 m\u00b3"),
    ("alpha \u2264 beta for all users", "alpha \u2265 beta for all users"),
    ("take 1/2 cup of oil", "take 1.2 cup of oil"),
    ("enable fast && safe mode", "enable fast || safe mode"),
    ("the branch is feature/login", "the branch is feature_login"),
    ("the branch is feature/login", "the branch is feature-login"),
    ("ignore *.log files", "ignore .log files"),
    ("call f[x] with alpha", "call f(x) with alpha"),
    ("print !done tasks twice", "print done tasks twice"),
    ("Ann lives in the harbour quarter", "Ann lived in the harbour quarter"),
    ("Anna \u017eije v Praze", "Anna ne\u017eije v Praze"),
    ("\u732b\u306f\u9b5a\u304c\u597d\u304d", "\u72ac\u306f\u9b5a\u304c\u597d\u304d"),
]


def add(c, content, **params):
    return c.call("memory.add", dict(params, content=content))["id"]


def contents(rows):
    return [r["content"] for r in rows]


def test_spellings_of_one_fact_are_one_hit():
    with Daemon(listen=("unix:ROOT/koine.sock",)) as d:
        c = d.connect()
        ids = [add(c, text, user_id="ann", created_at="2024-05-%02dT10:00:00Z" % (i + 1))
               for i, text in enumerate(SPELLINGS)]
        add(c, "Ann's favourite colour was green", user_id="ann", created_at="2023-01-01T00:00:00Z")
        for who in ({}, {"user_id": "ann"}):
            hits = c.call("memory.search", dict(who, query="what is Ann's favourite colour?"))
            same(sorted(contents(hits)), sorted([SPELLINGS[4], "Ann's favourite colour was green"]), repr(who))
            same([list(h) for h in hits], [["id", "content", "similarity", "metadata", "created_at"]] * 2,
                 "members")
        hits = c.call("memory.search", {"query": "Ann's favourite colour is blue", "duplicates": True})
        same(hits[0]["id"], ids[4], "the newest")
        same(sorted(hits[0]["duplicates"]), sorted(ids[:4]), "those behind it")
        same(hits[1]["duplicates"], [], "none behind it")
        # When the newest goes, the next one stands for them.
        c.call("memory.delete", {"memory_id": ids[4]})
        hits = c.call("memory.search", {"query": "Ann's favourite colour is blue", "limit": 1})
        same(contents(hits), [SPELLINGS[3]])
        # Lists and exports have all of them.
        same(len(c.call("memory.list", {})), 5)


def test_verbatim_match_is_first_behind_many_duplicates():
    texts = ["the lab door is open", "the lab door is not open"]
    for old, new in (texts, texts[::-1]):
        with Daemon() as d, d.connect() as c:
            add(c, old, created_at="2021-01-01T00:00:00Z")
            for i in range(40):
                add(c, new, created_at="2024-02-%02dT%02d:00:00Z" % (i % 28 + 1, i // 28))
            for limit in (1, 5, 10, 50):
                for text in texts:
                    same(contents(c.call("memory.search", {"query": text, "limit": limit}))[0], text)


# A text, and others that a search for it puts first by their words, importance, or kind.
BETTER = [
    ("green tea", {"content": "green tea, green tea, green tea %d"}),
    ("rotate keys", {"content": "rotate keys %d", "importance": 1}),
    ("who feeds the cat?", {"content": "Maria x%d feeds the cat"}),
    ("Where the keys are", {"content": "the keys are in Paris, in drawer %d"}),
    ("it is up", {"content": "it was up to me %d"}),
    ("C++", {"content": "C %d C C"}),
    ("Anna is here", {"content": "here comes note %d", "subjects": ["Anna"]}),
]


def test_verbatim_match_is_first_behind_many_better_ones():
    with Daemon() as d, d.connect() as c:
        for n, (text, other) in enumerate(BETTER):
            user = {"user_id": "u%d" % n}
            add(c, text, importance=0, created_at="2020-01-01T00:00:00Z", **user)
            c.call("memory.import", {"entries": [
                dict(other, type="memory", content=other["content"] % i, **user) for i in range(220)]})
            for query in (text, " %s\n" % text.upper()):
                for limit in (1, 10, 250):
                    hits = c.call("memory.search", dict(user, query=query, limit=limit, explain=True))
                    same(contents(hits)[0], text, "first of %d for %r" % (limit, query))
                    check(all("why" in h for h in hits), "not explained: %r", hits[0])
                    same(len({h["id"] for h in hits}), len(hits), "different hits")
                    check(limit > 10 or len(hits) == limit, "%d hits for %r", len(hits), query)
                    scores = [h["similarity"] for h in hits]
                    same(scores, sorted(scores, reverse=True), "similarities")


def test_further_hits_fill_the_limit():
    with Daemon() as d:
        c = d.connect()
        for i in range(6):
            add(c, "the blue boat needs paint" + "!" * i)
        for i in range(6):
            add(c, "boat number %d needs paint" % i)
        hits = contents(c.call("memory.search", {"query": "blue boat paint", "limit": 5}))
        same(len(hits), 5, "hits of %r" % hits)
        same(sum("blue" in h for h in hits), 1, "spellings in %r" % hits)
        same(len(set(hits)), 5, "%r" % hits)


def test_what_differs_keeps_its_place():
    with Daemon() as d:
        c = d.connect()
        for n, pair in enumerate(APART):
            for text in pair:
                add(c, text, user_id="u%d" % n)
            same(sorted(contents(c.call("memory.search", {"query": " ".join(pair), "user_id": "u%d" % n}))),
                 sorted(pair))


def test_turns_of_a_conversation_stay():
    with Daemon() as d:
        c = d.connect()
        turns = [("Yes, I did!", 1), ("Yes, I did.", 2), ("Thanks, that means a lot!", 3), ("Thanks, that means a lot", 4),
                 ("I went running by the river today", 5), ("I went running by the river today!", 6),
                 ("Did you see the new film at the harbour cinema?", 7),
                 ("Did you see the new film at the harbour cinema?", 8)]
        for text, day in turns:
            add(c, text, chat_id="c1", subjects=["Ann"], created_at="2024-05-%02dT10:00:00Z" % day)
        for query, n in (("did", 4), ("thanks a lot", 2), ("running by the river", 2)):
            hits = c.call("memory.search", {"query": query, "chat_id": "c1"})
            words = query.split()[0]
            check(sum(words in h["content"].lower() for h in hits) >= n, "%s: %r", query, contents(hits))
        # Another speaker, another fact.
        for name in ("Ann", "Bob"):
            add(c, "I play the old violin", chat_id="c2", subjects=[name])
        same(len(c.call("memory.search", {"query": "violin", "chat_id": "c2"})), 2)


def test_scopes_do_not_stand_for_each_other():
    with Daemon() as d:
        c = d.connect()
        for who in ({"user_id": "ann"}, {"user_id": "bob"}, {"chat_id": "c1"}, {"project": "p"}, {}):
            add(c, "the heating code is 1234 blue", **who)
        same(len(c.call("memory.search", {"query": "heating code"})), 5)
        same(len(c.call("memory.search", {"query": "heating code", "user_id": "ann"})), 2)


def test_of_two_about_one_thing_the_newer_comes_first():
    with Daemon() as d:
        c = d.connect()
        pairs = [("Ann moved to Oslo", "Ann moved to Bergen", "where did Ann move to?"),
                 ("Tom works as a baker", "Tom works as a pilot", "what does Tom work as?"),
                 ("our wifi password is tulip", "our wifi password is daisy", "wifi password")]
        for n, (old, new, question) in enumerate(pairs):
            # Whichever is stored first.
            for user, order in (("a%d" % n, (old, new)), ("b%d" % n, (new, old))):
                for text in order:
                    add(c, text, user_id=user, subjects=[old.split()[0]],
                        created_at="2024-01-01T00:00:00Z" if text == old else "2024-09-01T00:00:00Z")
                same(contents(c.call("memory.search", {"query": question, "user_id": user})), [new, old], question)


# The question, the memory that matches it more closely, and one with the same content words.
CLOSER = [
    ("zebraX from cli", "zebraX from cli", "zebraX group cli"),
    ("Bob is allowed in", "Bob is allowed in", "Bob is not allowed in"),
    ("Bob is not allowed in", "Bob is not allowed in", "Bob is allowed in"),
    ("is Tilda allowed to deploy?", "Tilda is allowed to deploy", "Tilda is no longer allowed to deploy"),
    ("retry 3 times after 30 seconds", "retry 3 times after 30 seconds", "retry 30 times after 3 seconds"),
    ("Mallory pays Trent", "Mallory pays Trent", "Trent pays Mallory"),
    ("les tests ne passent pas", "les tests ne passent pas", "les tests passent"),
]


def test_closer_match_comes_first_whichever_is_newer():
    with Daemon() as d:
        c = d.connect()
        for n, (question, right, wrong) in enumerate(CLOSER):
            for k, (first, second) in enumerate(((right, wrong), (wrong, right))):
                for newer in (right, wrong):
                    user = "u%d-%d-%s" % (n, k, newer == right)
                    for text in (first, second):
                        add(c, text, user_id=user,
                            created_at="2024-09-01T00:00:00Z" if text == newer else "2024-01-01T00:00:00Z")
                    hits = c.call("memory.search", {"query": question, "user_id": user})
                    same(contents(hits), [right, wrong], "%r, stored %r first, %r is newer" % (question, first, newer))
                    check(hits[0]["similarity"] >= hits[1]["similarity"], "similarities ascend: %r", hits)


if __name__ == "__main__":
    main(globals())
