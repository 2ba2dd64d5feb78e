#!/usr/bin/env python3
"""Memories are found by what people ask: in their language, of a time, after pages of text."""
import datetime

from harness import Daemon, check, main, same

# Memories of one user, and questions for which each comes first.
SPOKEN = [
    ("Meine Krankenversicherungskarte liegt in der Schublade", ["Wo ist die Versicherung?", "Versicherungskarte"]),
    ("Elle a oublié son chapeau au musée", ["Où sont les chapeaux ?", "musee"]),
    ("Nos operaron a la perra en la clínica", ["¿Cuándo fue la operación?"]),
    ("Вчера мы говорили с врачом", ["врач"]),
    ("Bu yaz İstanbul'da kaldık, çok güzeldi", ["istanbul"]),
    ("ذهبنا إلى المدرسة صباحا", ["مدرسة"]),
    ("我家的猫叫豆腐", ["猫的名字"]),
    ("ﾗｰﾒﾝを食べた", ["ラーメン"]),
    ("the fault is in parseHttpRequest", ["http request", "parse_http_request"]),
    ("set max_rise_mm before everything", ["maxRiseMm"]),
]


def first(c, query):
    hits = c.call("memory.search", {"query": query, "user_id": "ann"})
    return hits[0]["content"] if hits else None


def today():
    return datetime.datetime.now(datetime.timezone.utc).date()


def stamp(day):
    return "%sT12:00:00Z" % day.isoformat()


def test_each_language_is_found():
    with Daemon() as d:
        c = d.connect()
        for i in range(40):
            c.call("memory.add", {"content": "somebody walked to a garden, number %d" % i, "user_id": "ann"})
        for content, _ in SPOKEN:
            c.call("memory.add", {"content": content, "user_id": "ann"})
        for content, questions in SPOKEN:
            for question in questions:
                same(first(c, question), content, question)


def test_times_are_found():
    day = datetime.timedelta(days=1)
    with Daemon() as d:
        c = d.connect()
        now = today()
        for content, at in (("we had a picnic", now - day), ("we had a coffee", datetime.date(2024, 5, 20)),
                            ("we had a quarrel", datetime.date(2021, 4, 2)), ("we had soup", now - 2 * day)):
            c.call("memory.add", {"content": content, "user_id": "ann", "created_at": stamp(at)})
        found = [first(c, q) for q in ("What happened yesterday?", "What happened the day before yesterday?",
                                       "Was ist gestern passiert?")]
        # Around midnight yesterday is another day.
        if today() == now:
            same(found, ["we had a picnic", "we had soup", "we had a picnic"])
        same(first(c, "what was on 20/05/2024"), "we had a coffee")
        same(first(c, "what happened before 2022?"), "we had a quarrel")
        same(first(c, "what did we have between March and April"), "we had a quarrel")
        same(first(c, "the first time that we had coffee or a quarrel"), "we had a quarrel")


def test_a_question_after_pages_of_text_is_found():
    page = " ".join("word%d" % (i % 3000) for i in range(10000))
    with Daemon() as d:
        c = d.connect()
        for i in range(0, 3000, 5):
            c.call("memory.add", {"content": " ".join("word%d" % (i + k) for k in range(5)), "user_id": "ann"})
        c.call("memory.add", {"content": "the kettle is in the cellar", "user_id": "ann"})
        same(first(c, page + ".\n\nWhere is the kettle?"), "the kettle is in the cellar")
        check(first(c, page), "nothing was found for a page")


def test_the_last_word_of_a_long_memory_is_found():
    text = " ".join("w%d" % i for i in range(100000)) + " kettle"
    with Daemon() as d:
        c = d.connect()
        c.call("memory.add", {"content": text, "user_id": "ann"})
        c.call("memory.add", {"content": "nothing of that kind", "user_id": "ann"})
        check(first(c, "kettle").endswith(" kettle"), "another was found")


if __name__ == "__main__":
    main(globals())
