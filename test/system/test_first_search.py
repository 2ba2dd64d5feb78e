#!/usr/bin/env python3
"""The first search of a user with many memories: its index is built beside everything else."""
import contextlib
import json
import select
import signal
import sqlite3

from harness import Daemon, Folder, check, main, only_in_a_file, request, same, wait_until

N = 40000  # memories: building takes a hundred times as long as answering anything else
READERS = 4

FILL = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO memory (id, content_hash, source, category, importance, owner, shared, created_ms,
                    updated_ms, stored_ms, subjects, metadata, content)
SELECT printf('00000000-0000-4000-8000-%%012d', i), i, 'test', 'fact', 0.5, 'ann', 0, i, i, i, '',
       '{}', printf('entry%%d about topic%%d and word%%d', i, i * 7 %% 999, i * 13 %% 9999) FROM n
""" % N


@contextlib.contextmanager
def daemon():
    """A daemon with a user of many memories, none of which was searched for yet."""
    only_in_a_file("it fills the store")
    with Folder() as f:
        with Daemon(root=f.path) as d:
            d.connect().call("memory.add", {"content": "the boat of bob", "user_id": "bob"})
        with sqlite3.connect(f("koine.db")) as db:
            db.execute(FILL)
        with Daemon(root=f.path) as d:
            yield d


def search(d, query="topic7", user="ann"):
    c = d.connect()
    c.send(request("memory.search", {"query": query, "user_id": user}) + b"\n")
    return c


def answered(clients):
    return [c for c in clients if select.select([c.socket], [], [], 0)[0]]


def hits(c):
    return [m["content"] for m in json.loads(c.read_line())["result"]]


def test_others_are_answered_while_an_index_is_built():
    with daemon() as d:
        parked = [search(d) for _ in range(3 * READERS)]
        new = search(d, "zebra")
        d.settle()
        c = d.connect()
        # On a reader's thread, on the writer's, and a first search of a user with few.
        same(len(c.call("memory.list", {"user_id": "ann", "limit": 3})), 3, "listed")
        c.call("memory.add", {"content": "a zebra came", "user_id": "ann"})
        found = c.call("memory.search", {"query": "boat", "user_id": "bob"})
        same([m["content"] for m in found], ["the boat of bob"])
        same(answered(parked + [new]), [], "answered before the others")
        first = hits(parked[0])
        same(len(first), 10, "hits")
        check(all("topic7 " in text for text in first), "%r", first)
        for other in parked[1:]:
            same(hits(other), first)
        # What was added meanwhile is in the index.
        same(hits(new), ["a zebra came"])


def test_a_client_that_hangs_up_leaves_nothing_to_build():
    with daemon() as d:
        c = d.connect()
        parked = [search(d) for _ in range(2 * READERS)]
        wait_until(lambda: c.call("memory.stats")["indexes"] == 2, "a build")
        for p in parked:
            p.close()
        # That of the common memories, of which there are none, may have been ready before.
        wait_until(lambda: c.call("memory.stats")["indexes"] < 2, "the end of the build")
        # It is freed beside the loop.
        wait_until(lambda: c.call("memory.stats")["index_bytes"] < 1000, "its memory to be freed")


def test_a_stop_ends_a_build():
    with daemon() as d:
        parked = [search(d) for _ in range(2 * READERS)]
        d.settle()
        d.signal(signal.SIGTERM)
        for p in parked:
            same(json.loads(p.read_line())["error"]["message"], "koined is stopping")
        d.wait_exit()


if __name__ == "__main__":
    main(globals())
