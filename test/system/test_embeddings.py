"""Searches by meaning: a real daemon and a model over HTTP, well and badly behaved."""
import json
import os
import re
import signal
import sqlite3
import time

from embedding_server import Model, embed_angle
from harness import (PATIENCE, Daemon, Folder, check, main, only_in_a_file, run_koined, same,
                     wait_until)

FAILS = "embedding failed  model=test"


def daemon_with(model, *args, root=None, announced=(), timeout=5000, name="test", **opts):
    """A model that hangs is late after `timeout`; long where a test wants its answer."""
    return Daemon("--set", "memory.embedding_url=" + model.url,
                  "--set", "memory.embedding_model=" + name,
                  "--set", "memory.embedding_timeout=%d" % timeout,
                  *args, root=root, announced=announced, **opts)


def add(client, *contents, **params):
    return [client.call("memory.add", dict(params, content=c))["id"] for c in contents]


def search(client, query, **params):
    hits = client.call("memory.search", dict(params, query=query))
    for before, after in zip(hits, hits[1:]):
        check(before["similarity"] >= after["similarity"], "not in order: %r", hits)
    for hit in hits:
        check(0 < hit["similarity"] <= 1, "similarity %r", hit["similarity"])
    return [hit["content"] for hit in hits]


def stats(client, **params):
    return client.call("memory.stats", params)


def all_done(client, n, wait=wait_until, **params):
    """Waits until n memories have a vector and none lacks one."""
    def done():
        s = stats(client, **params)
        return s["vectors"] == n and s["vectors_pending"] == 0 and s
    return wait(done, "%d vectors" % n)


def fill(client, n, start=0):
    add(client, *["note number %d about thing%d" % (i, i) for i in range(start, start + n)])


def test_finds_a_paraphrase_that_words_alone_do_not():
    with Model() as model, daemon_with(model) as d:
        c = d.connect()
        add(c, "the limousine needs new tyres", "soup tastes best on sundays",
            "our physician moved to Ghent")
        all_done(c, 3)
        same(search(c, "vehicle")[0], "the limousine needs new tyres", "first hit")
        same(search(c, "which medic")[0], "our physician moved to Ghent", "first hit")
        same(stats(c)["embedding"], "ok")
    with Daemon() as d:
        c = d.connect()
        add(c, "the limousine needs new tyres", "our physician moved to Ghent")
        same(search(c, "vehicle"), [], "hits by words")
        same(stats(c)["embedding"], "off")


def test_words_still_count():
    with Model() as model, daemon_with(model) as d:
        c = d.connect()
        add(c, "the sedan is parked at quay seven", "an limousine is red", "a vehicle is blue")
        all_done(c, 3)
        same(search(c, "car quay seven")[0], "the sedan is parked at quay seven", "first hit")


def loosely(client, query, **params):
    """What an ocg client is told: text, score and the line for people of each."""
    answer = client.call("Agent.MemorySearch", dict(params, Query=query))
    found = json.loads(answer["Result"])
    items = found.get("items", [])
    lines = found["result"].splitlines()[2:]
    same((found["count"], len(lines)), (len(items), len(items)), "count")
    return [(i["text"], i["score"], re.search(r"similarity (.*)%", line).group(1))
            for i, line in zip(items, lines)]


def test_a_least_score_is_a_cosine():
    near = ["bramble %d at 10" % i for i in range(12)]
    with Model(embed=embed_angle) as model, daemon_with(model) as d:
        c = d.connect()
        add(c, "quokka stands far away at 89", *near)
        all_done(c, 13)
        # Without a word in common ...
        hits = loosely(c, "zzzz", Limit=20)
        same(sorted(text for text, _, _ in hits), sorted(near), "what is near")
        same({hit[1:] for hit in hits}, {("0.9848", "98")}, "scores")
        # ... and with nothing but that.
        same(loosely(c, "quokka", MinScore=0.99), [], "what is not near enough")
        check("quokka" not in str(loosely(c, "quokka", Limit=20)), "cosine 0.017")
        same(loosely(c, "quokka", MinScore=0.01)[0],
             ("quokka stands far away at 89", "0.0175", "2"), "the first by words")
        same(len(loosely(c, "bramble", Limit=20)), 12, "near, and with a word in common")
        # As it is told, so it counts; and what is not finite is none.
        same(len(loosely(c, "zzzz", Limit=20, MinScore=0.9848)), 12, "the least as it is told")
        c.send(b'{"jsonrpc":"2.0","id":1,"method":"Agent.MemorySearch",'
               b'"params":{"Query":"zzzz","MinScore":1e999}}\n')
        same(json.loads(json.loads(c.read_line())["result"]["Result"])["count"], 5, "a least of infinity")
        # What is left out makes room.
        same(len(loosely(c, "quokka", Limit=12)), 12, "limit")


def test_what_has_no_vector_yet_is_judged_by_its_words():
    with Model(embed=embed_angle) as model, daemon_with(model) as d:
        c = d.connect()
        add(c, "wombats lead nowhere", "a plain one")
        wait_until(lambda: stats(c)["vectors"] == 1, "a vector")
        hits = loosely(c, "wombats")
        same([text for text, _, _ in hits], ["wombats lead nowhere", "a plain one"], "hits")
        same(hits[1][1], "1.0000", "cosine")
        # A least that was given is compared with what is told.
        same([text for text, _, _ in loosely(c, "wombats", MinScore=0.99)], ["a plain one"], "hits")
        same(loosely(c, "wombats", MinScore=float(hits[0][1])), hits, "the least as it is told")


def test_a_least_score_counts_without_a_model():
    with Daemon() as d:
        c = d.connect()
        add(c, "wombats lead nowhere", "a plain one", "of wombats and wallabies, and of wombats")
        hits = loosely(c, "wombats wallabies")
        same(len(hits), 2, "hits by default, whatever their score")
        check(float(hits[1][1]) < 0.7, "scores: %r", hits)
        for i, hit in enumerate(hits):
            same(loosely(c, "wombats wallabies", MinScore=float(hit[1])), hits[:i + 1], hit)
        same(loosely(c, "wombats wallabies", MinScore=1), [], "none is so near")


def test_memories_from_before_get_vectors_in_batches():
    with Folder() as root, Model() as model:
        with Daemon(root=root.path) as d:
            fill(d.connect(), 150)
        with daemon_with(model, root=root.path) as d:
            all_done(d.connect(), 150)
        check(max(map(len, model.asked)) <= 64, "too large a batch")
        same(len(model.all_asked()), 150, "texts asked")
        same(len(set(model.all_asked())), 150, "different texts asked")
        same(model.models, {"test"}, "model")


def test_a_restart_goes_on_where_it_was():
    with Folder() as root, Model() as model:
        allowed = [2]

        def two_batches(handler, texts):
            allowed[0] -= 1
            if allowed[0] >= 0:
                return False
            model.send(handler, 503, b"{}")
            return True

        with Daemon(root=root.path) as d:
            fill(d.connect(), 200)
        model.behave = two_batches
        with daemon_with(model, root=root.path, announced=[FAILS]) as d:
            c = d.connect()
            wait_until(lambda: stats(c)["embedding"] == "failing", "a failure")
            wait_until(lambda: stats(c)["vectors"] == 128, "two batches")
        done = set(text for texts in model.asked[:2] for text in texts)
        same(len(done), 128, "texts of the first two batches")
        model.asked.clear()
        model.behave = lambda handler, texts: False
        with daemon_with(model, root=root.path) as d:
            all_done(d.connect(), 200)
        same(len(model.all_asked()), 72, "texts asked after the restart")
        check(not done & set(model.all_asked()), "asked again for what was done")


def test_a_silent_model_leaves_the_search_to_words():
    with Model() as model:
        with daemon_with(model, timeout=200) as d:
            c = d.connect()
            add(c, "the limousine needs new tyres")
            all_done(c, 1)
            model.behave = model.hold
            # Nobody lets the model answer before the search has.
            same(search(c, "new tyres"), ["the limousine needs new tyres"], "hits by words")
            same(search(c, "vehicle"), [], "hits by words")
            check(model.waiting.acquire(timeout=PATIENCE), "the model was not asked")
            check(not model.open.is_set(), "the model has answered")


def test_a_dribbling_model_leaves_the_search_to_words():
    with Model() as model:
        with daemon_with(model, timeout=200) as d:
            c = d.connect()
            add(c, "the limousine needs new tyres")
            all_done(c, 1)

            def dribble(handler, texts):
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                handler.wfile.flush()
                while not model.open.wait(0.02):
                    handler.wfile.write(b" ")
                    handler.wfile.flush()
                handler.close_connection = True
                return True

            model.behave = dribble
            same(search(c, "new tyres"), ["the limousine needs new tyres"], "hits by words")


def test_a_model_that_is_not_there_is_tried_again_until_it_is():
    with Folder() as root:
        with Model() as model:
            pass  # its port is free again
        with daemon_with(model, root=root.path, announced=[FAILS]) as d:
            c = d.connect()
            add(c, "the limousine needs new tyres")
            wait_until(lambda: stats(c)["embedding"] == "failing", "a failure")
            same(search(c, "tyres"), ["the limousine needs new tyres"], "hits by words")
            same(stats(c)["vectors_pending"], 1, "pending")


def recovers_from(behave, n=70, times=2, announced=(FAILS,), least=1, clock=0):
    """Misbehaves the first times it is asked, for as many texts as `least`, then never. Without a clock it takes its time."""
    with Model() as model:
        left = [times]

        def some_times(handler, texts):
            if len(texts) < least:
                return False
            left[0] -= 1
            return left[0] >= 0 and behave(model, handler, texts)

        model.behave = some_times
        with daemon_with(model, announced=announced, timeout=60000, clock=clock) as d:
            c = d.connect()
            fill(c, n)
            wait = wait_until if clock is None else d.hurry
            all_done(c, n, wait)
            same(search(c, "thing0")[0], "note number 0 about thing0", "first hit")
            wait(lambda: stats(c)["embedding"] == "ok", "a recovery")
            check(left[0] < 0, "did not misbehave")
        return model


def raw(model, handler, data):
    handler.wfile.write(data)
    handler.wfile.flush()
    handler.close_connection = True
    return True


def whole(model, handler, status, body, headers=()):
    model.send(handler, status, body, headers)
    return True


def test_an_error_is_tried_again():
    recovers_from(lambda m, h, t: whole(m, h, 500, b"oops"))


def test_a_rate_limit_is_heeded():
    times = []

    def busy(model, handler, texts):
        times.append(time.monotonic())
        return len(times) == 1 and whole(model, handler, 429, b"{}", [("Retry-After", "2")])

    recovers_from(busy, n=1, times=2, clock=None)
    check(times[1] - times[0] >= 1.9, "asked again after %.2f s", times[1] - times[0])


def test_garbage_is_tried_again():
    for body in (b"", b"no json", b"{}", b'{"data":[]}', b'{"data":[{"embedding":"x"}]}'):
        recovers_from(lambda m, h, t: whole(m, h, 200, body), n=1, times=1)


def test_what_is_not_http_is_tried_again():
    recovers_from(lambda m, h, t: raw(m, h, b"\x00\x01 hello\r\n\r\n"), n=1, times=1)


def test_a_cut_answer_is_tried_again():
    recovers_from(lambda m, h, t: raw(m, h, b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"),
                  n=1, times=1)


def test_vectors_of_different_lengths_are_tried_again():
    def uneven(model, handler, texts):
        answer = model.vectors(texts)
        answer["data"][0]["embedding"].append(1.0)
        return whole(model, handler, 200, json.dumps(answer).encode())

    # One vector alone has no other length beside it.
    recovers_from(uneven, times=1, least=2)


def test_a_wrong_key_is_said_and_tried_again():
    recovers_from(lambda m, h, t: whole(m, h, 401, b"{}"), n=1, times=1,
                  announced=['embedding failed  model=test reason="the endpoint returned HTTP 401"'])


def test_one_text_that_the_model_refuses_does_not_keep_the_others():
    with Model() as model:
        model.behave = lambda handler, texts: (
            any("poison" in t for t in texts) and whole(model, handler, 400, b"{}"))
        with daemon_with(model) as d:
            c = d.connect()
            fill(c, 40)
            add(c, "a poison text")
            fill(c, 40, start=40)
            wait_until(lambda: stats(c)["vectors"] == 80, "80 vectors")
            same(stats(c)["vectors_pending"], 1, "pending")
            same(search(c, "poison"), ["a poison text"] + search(c, "poison")[1:], "hits")
            add(c, "the limousine needs new tyres")
            wait_until(lambda: stats(c)["vectors"] == 81, "the next one's vector")


def test_batches_grow_again_but_not_beyond_their_limit():
    with Folder() as root, Model() as model:
        with Daemon(root=root.path) as d:
            fill(d.connect(), 63)
        model.behave = lambda handler, texts: (len(texts) == 63 and
                                               whole(model, handler, 400, b"{}"))
        with daemon_with(model, root=root.path) as d:
            c = d.connect()
            all_done(c, 63)
            entries = [{"content": "entry number %d" % i} for i in range(150)]
            same(c.call("memory.import", {"entries": entries})["imported"], 150, "imported")
            all_done(c, 213)
        check(max(map(len, model.asked)) == 64, "batches of %r", list(map(len, model.asked)))


def test_a_text_without_direction_is_passed_over():
    with Model() as model:
        def zeroes(handler, texts):
            answer = model.vectors(texts)
            for text, row in zip(texts, answer["data"]):
                if "nothing" in text:
                    row["embedding"] = [0] * model.dim
            return whole(model, handler, 200, json.dumps(answer).encode())

        model.behave = zeroes
        with daemon_with(model) as d:
            c = d.connect()
            add(c, "nothing at all", "the limousine needs new tyres")
            wait_until(lambda: stats(c)["vectors"] == 1, "a vector")
            same(search(c, "vehicle"), ["the limousine needs new tyres"], "hits")


def test_what_is_deleted_is_not_found_by_its_vector():
    only_in_a_file("it reads the store")
    with Folder() as root, Model() as model:
        with daemon_with(model, root=root.path) as d:
            c = d.connect()
            ids = add(c, "the limousine needs new tyres", "a sedan was sold")
            all_done(c, 2)
            same(len(search(c, "vehicle")), 2, "hits")
            same(c.call("memory.delete", {"memory_id": ids[0]}), {"deleted": True})
            same(search(c, "vehicle"), ["a sedan was sold"], "hits")
            all_done(c, 1)
        db = sqlite3.connect(root("koine.db"))
        for table in ("memory_vector", "memory_vector_bytes", "memory_vector_floats"):
            same(db.execute("SELECT count(*) FROM " + table).fetchone(), (1,), table)
        db.close()


def test_what_is_expired_is_not_found_by_its_vector():
    with Model() as model, daemon_with(model) as d:
        c = d.connect()
        add(c, "the limousine needs new tyres")
        add(c, "a sedan was sold", expires_days=-1)
        all_done(c, 1)
        same(search(c, "vehicle"), ["the limousine needs new tyres"], "hits")


def test_a_changed_text_gets_another_vector():
    with Model() as model, daemon_with(model) as d:
        c = d.connect()
        ids = add(c, "the limousine needs new tyres", "soup tastes best on sundays")
        all_done(c, 2)
        same(search(c, "vehicle")[0], "the limousine needs new tyres", "first hit")
        c.call("memory.update", {"memory_id": ids[0], "content": "our physician moved"})
        wait_until(lambda: model.times_asked("our physician moved") == 1, "the new text's vector")
        all_done(c, 2)
        same(search(c, "medic")[0], "our physician moved", "first hit")
        c.call("memory.update", {"memory_id": ids[0], "importance": 0.9})
        all_done(c, 2)
        same(model.times_asked("our physician moved"), 1, "times asked")


def test_nobody_finds_what_belongs_to_another():
    with Model() as model, daemon_with(model) as d:
        c = d.connect()
        add(c, "the limousine of ann", user_id="ann")
        add(c, "the sedan of bob", user_id="bob")
        add(c, "a vehicle of the team", user_id="ann", chat_id="team", shared=True)
        add(c, "a car for all")
        all_done(c, 4)
        same(set(search(c, "vehicle", user_id="ann")), {"the limousine of ann", "a car for all"})
        same(set(search(c, "vehicle", user_id="bob", chat_id="team")),
             {"the sedan of bob", "a vehicle of the team", "a car for all"})
        same(set(search(c, "vehicle", user_id="eve")), {"a car for all"})
        same(len(search(c, "vehicle")), 4, "hits of nobody in particular")
        same(stats(c, user_id="ann")["vectors"], 2, "vectors that ann sees")


def test_searches_see_what_comes_after_them():
    with Model() as model, daemon_with(model) as d:
        c = d.connect()
        add(c, "the limousine needs new tyres")
        all_done(c, 1)
        same(search(c, "vehicle"), ["the limousine needs new tyres"], "hits")
        for i in range(2, 90):
            add(c, "a sedan, number %d" % i)
        all_done(c, 89)
        same(len(search(c, "vehicle", limit=40)), 40, "hits")


def finds_in_time(c, question, wanted):
    """Vectors are made anew in the background, so the first answers may come without."""
    wait_until(lambda: search(c, question)[:1] == [wanted], "%r to find %r" % (question, wanted))


def test_another_length_under_the_same_name_makes_all_anew():
    with Folder() as root, Model(dim=64) as model:
        with daemon_with(model, root=root.path) as d:
            c = d.connect()
            fill(c, 100)
            add(c, "the limousine needs new tyres")
            all_done(c, 101)
            same(search(c, "vehicle")[0], "the limousine needs new tyres", "first hit")
            model.dim = 96
            same(search(c, "tyres")[0], "the limousine needs new tyres", "first hit by words")
            wait_until(lambda: model.times_asked("the limousine needs new tyres") == 2,
                       "new vectors")
            all_done(c, 101)
            finds_in_time(c, "vehicle", "the limousine needs new tyres")
        # The same, found out by a question after a restart.
        model.dim = 32
        with daemon_with(model, root=root.path) as d:
            c = d.connect()
            search(c, "vehicle")
            finds_in_time(c, "vehicle", "the limousine needs new tyres")
            all_done(c, 101)


def test_another_length_is_noticed_when_a_memory_comes():
    with Folder() as root, Model(dim=64) as model:
        with daemon_with(model, root=root.path) as d:
            c = d.connect()
            fill(c, 100)
            all_done(c, 100)
        model.dim = 96
        with daemon_with(model, root=root.path) as d:
            c = d.connect()
            add(c, "the limousine needs new tyres")
            wait_until(lambda: model.times_asked("note number 3 about thing3") == 2, "new vectors")
            all_done(c, 101)


def test_another_model_makes_all_anew():
    with Folder() as root, Model() as model:
        with daemon_with(model, root=root.path) as d:
            c = d.connect()
            fill(c, 10)
            all_done(c, 10)
        with daemon_with(model, root=root.path, name="other") as d:
            c = d.connect()
            all_done(c, 10)
            same(model.times_asked("note number 3 about thing3"), 2, "times asked")
            same(search(c, "thing3")[0], "note number 3 about thing3", "first hit")


def test_what_is_being_asked_is_not_asked_again():
    with Model() as model, daemon_with(model) as d:
        c = d.connect()
        first = c.call("memory.add", {"content": "the first note"})["id"]
        all_done(c, 1)

        def late(handler, texts):
            model.waiting.release()
            return not model.open.wait(PATIENCE)

        model.behave = late
        add(c, "another note")
        check(model.waiting.acquire(timeout=PATIENCE), "the model was not asked")
        # An older one has changed: everything from there on is looked at.
        c.call("memory.update", {"memory_id": first, "content": "the first note, changed"})
        check(model.waiting.acquire(timeout=PATIENCE), "the model was not asked for the change")
        model.open.set()
        all_done(c, 2)
        same(model.times_asked("the first note, changed"), 1, "times asked for the change")
        same(model.times_asked("another note"), 1, "times asked")


def test_many_search_and_add_at_once():
    with Model() as model, daemon_with(model) as d:
        clients = [d.connect() for _ in range(16)]
        for round in range(10):
            for i, c in enumerate(clients):
                method, params = (("memory.search", {"query": "vehicle %d" % i, "user_id": "u%d" % (i % 3)})
                                  if i % 2 else
                                  ("memory.add", {"content": "car %d of %d" % (round, i),
                                                  "user_id": "u%d" % (i % 3)}))
                c.send(json.dumps({"jsonrpc": "2.0", "id": round, "method": method,
                                   "params": params}).encode() + b"\n")
            for c in clients:
                check("result" in json.loads(c.read_line()), "no result")
        all_done(clients[0], 80)
        # A vector is in the store, and counted, a moment before the search knows it; and a model that
        # is late on a busy machine leaves a search to words, which find none of them.
        wait_until(lambda: len(search(clients[0], "vehicle", user_id="u1", limit=100)) >= 20,
                   "all to be found")


def test_what_does_not_fit_is_left_to_words():
    with Model(dim=4096) as model:
        with daemon_with(model, "--set", "memory.index_bytes=1m",
                         announced=["vectors exceed the index limit"]) as d:
            c = d.connect()
            fill(c, 300)
            all_done(c, 300)
            same(search(c, "thing7")[0], "note number 7 about thing7", "first hit")
            check(stats(c)["index_bytes"] <= 1 << 20, "more than the limit")


def test_a_client_that_leaves_or_cancels_while_the_model_is_asked():
    with Model() as model:
        # The one that has left goes on until the stop ends it, which waits for nobody.
        with daemon_with(model, timeout=60000) as d:
            c = d.connect()
            add(c, "the limousine needs new tyres")
            all_done(c, 1)
            model.behave = model.hold
            leaves = d.connect()
            leaves.send(b'{"jsonrpc":"2.0","id":1,"method":"memory.search","params":{"query":"a"}}\n')
            check(model.waiting.acquire(timeout=PATIENCE), "the model was not asked")
            leaves.close()
            cancels = d.connect()
            cancels.send(b'{"jsonrpc":"2.0","id":7,"method":"memory.search","params":{"query":"b"}}\n')
            check(model.waiting.acquire(timeout=PATIENCE), "the model was not asked")
            cancels.send(b'{"jsonrpc":"2.0","method":"rpc.cancel","params":{"id":7}}\n')
            answer = json.loads(cancels.read_line())
            check("error" in answer, "not cancelled: %r", answer)
            d.alive()


def test_a_stop_does_not_wait_for_the_model():
    with Model() as model:
        with daemon_with(model, "--set", "limits.stop_time=1", timeout=60000,
                         announced=["shutdown timed out"]) as d:
            c = d.connect()
            add(c, "the limousine needs new tyres")
            all_done(c, 1)
            model.behave = model.hold
            asks = d.connect()
            asks.send(b'{"jsonrpc":"2.0","id":1,"method":"memory.search","params":{"query":"a"}}\n')
            check(model.waiting.acquire(timeout=PATIENCE), "the model was not asked")
            add(c, "another one, for a batch to be open")
            check(model.waiting.acquire(timeout=PATIENCE), "the model was not asked")
            d.signal(signal.SIGTERM)
            same(d.wait_exit(), 0, "exit status")


def test_the_key_is_sent_and_shown_nowhere():
    with Folder() as folder, Model() as model:
        key = "sk-very-secret-0123456789"
        with open(folder("key"), "w") as f:
            f.write(key + "\n")
        os.chmod(folder("key"), 0o600)
        setting = "memory.embedding_key_file=" + folder("key")
        model.behave = lambda handler, texts: whole(model, handler, 403, b"{}")
        with daemon_with(model, "--set", setting, "--log-level", "debug", announced=[FAILS]) as d:
            c = d.connect()
            add(c, "the limousine needs new tyres")
            wait_until(lambda: stats(c)["embedding"] == "failing", "a failure")
            check(key.encode() not in d.log(), "the key is in the log")
        same(model.headers[0]["Authorization"], "Bearer " + key, "header")
        checked = run_koined("--check", "--root", folder.path, "--set", setting,
                             "--set", "memory.embedding_url=" + model.url)
        same(checked.returncode, 0, "exit status of --check")
        check(key.encode() not in checked.stdout + checked.stderr, "the key is printed")
        os.chmod(folder("key"), 0o644)
        for extra in ((), ("--check",)):
            refused = run_koined(*extra, "--root", folder.path, "--set", setting,
                                 "--set", "memory.embedding_url=" + model.url)
            same(refused.returncode, 69 if extra else 78, "exit status")
            check(b"must belong to this user" in refused.stdout + refused.stderr, "not said why")


def test_wrong_settings_are_refused():
    for pair in ("embedding_url=localhost:11434", "embedding_url=file:///etc/passwd",
                 "embedding_url=http://user:password@host/", "embedding_timeout=0",
                 "embedding_timeout=soon"):
        done = run_koined("--check", "--set", "memory." + pair)
        same(done.returncode, 78, "exit status for " + pair)
        check(b"password@" not in done.stderr, "shows a password")


def test_descriptors_are_not_inherited():
    from harness import descriptor_flags, descriptors
    with Model() as model, daemon_with(model) as d:
        c = d.connect()
        add(c, "the limousine needs new tyres")
        all_done(c, 1)
        for fd in descriptors(d.pid):
            if fd > 2:
                check(descriptor_flags(d.pid, fd) & os.O_CLOEXEC, "descriptor %d is inherited", fd)


if __name__ == "__main__":
    main(globals())
