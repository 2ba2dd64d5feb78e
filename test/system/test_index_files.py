#!/usr/bin/env python3
"""Indexes in files: a daemon that is killed at any moment finds what its store has, no more, no less."""
import os
import random
import shutil
import signal
import sqlite3
import threading
import time

from harness import (Daemon, Failure, Folder, check, main, note, only_in_a_file, request, same,
                     wait_until)

N = 12000
SEED = int(os.environ.get("KOINE_SEED", "0")) or random.randrange(1, 1 << 30)

FILL = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO memory (id, content_hash, source, category, importance, owner, chat, shared,
                    created_ms, updated_ms, stored_ms, subjects, metadata, content)
SELECT printf('00000000-0000-4000-8000-%%012d', i), i, 'test', 'fact', 0.5, 'ann',
       printf('chat%%d', i %% 9), 0, i, i, i, '', '{}',
       printf('entry%%d about topic%%d and word%%d', i, i * 7 %% 999, i * 13 %% 9999) FROM n
""" % N


def filled(f):
    only_in_a_file("it fills the store")
    with Daemon(root=f.path) as d:
        d.connect().call("memory.add", {"content": "the boat of bob", "user_id": "bob"})
    with sqlite3.connect(f("koine.db")) as db:
        db.execute(FILL)


def files(f):
    folder = f("koine.db-index")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def found(c, query, user=None):
    params = {"query": query, "limit": 1000}
    if user:
        params["user_id"] = user
    return sorted(m["content"] for m in c.call("memory.search", params))


QUERIES = [("topic7", "ann"), ("word13 fresh", "ann"), ("changed7", "ann"), ("fresh9 changed8", None),
           ("topic21 word26", None)]


def answers(d):
    c = d.connect()
    return [found(c, *q) for q in QUERIES]


def assert_true_to_store(f, d):
    """What the daemon finds is what one finds that has only the store."""
    got = answers(d)
    with Folder() as other:
        source = sqlite3.connect(f("koine.db"))
        with sqlite3.connect(other("koine.db")) as copy:
            source.backup(copy)
        source.close()
        os.chmod(other("koine.db"), 0o600)
        with Daemon(root=other.path) as fresh:
            same(fresh.connect().call("memory.stats")["indexes"], 0, "indexes")
            same(answers(fresh), got, "what is found")


def kept(f):
    """Searches until the index is in a file; the daemon is stopped then."""
    with Daemon(root=f.path) as d:
        c = d.connect()
        found(c, "topic7", "ann")
        wait_until(lambda: c.call("memory.stats")["index_files"] == 1, "a file")
        same(len(files(f)), 1, "files")
        same(c.call("memory.stats")["index_file_bytes"],
             os.path.getsize(os.path.join(f("koine.db-index"), files(f)[0])), "bytes")


def test_a_restart_reads_the_file():
    with Folder() as f:
        filled(f)
        kept(f)
        with Daemon(root=f.path) as d:
            c = d.connect()
            c.call("memory.add", {"content": "a fresh word13", "user_id": "ann"})
            check("a fresh word13" in found(c, "word13 fresh", "ann"), "what was added is found")
            assert_true_to_store(f, d)


def hammer(d, rng, stop, n):
    """Adds, changes and deletes until the daemon is gone."""
    try:
        c = d.connect()
        mine = []
        while not stop.is_set():
            n[0] += 1
            what = rng.randrange(4)
            if what <= 1 or not mine:
                user = rng.choice(["ann", "ann", "bob"])
                m = c.call("memory.add", {"content": "fresh%d word%d" % (n[0], rng.randrange(9999)),
                                          "user_id": user})
                mine.append(m["id"])
            elif what == 2:
                c.call("memory.update", {"memory_id": rng.choice(mine),
                                         "content": "changed%d topic%d" % (n[0] % 50, n[0] % 999)})
            else:
                c.call("memory.delete", {"memory_id": mine.pop(rng.randrange(len(mine)))})
    except (OSError, ValueError, Failure):
        pass  # it was killed


def test_killed_at_any_moment_it_finds_what_the_store_has():
    rng = random.Random(SEED)
    note("seed %d" % SEED)
    n = [0]
    with Folder() as f:
        filled(f)
        for _ in range(5):
            d = Daemon(root=f.path, announced=["store"])
            d.start()
            d.wait_ready()
            stop = threading.Event()
            t = threading.Thread(target=hammer, args=(d, rng, stop, n))
            t.start()
            # Building, keeping or reading is under way.
            for scope in rng.sample([{"user_id": "ann"}, {}], 2):
                c = d.connect()
                c.send(request("memory.search", {"query": "topic7", **scope}) + b"\n")
            time.sleep(rng.random())
            d.signal(signal.SIGKILL)
            stop.set()
            t.join()
            d.wait_exit()
            d.clean_up()
        with Daemon(root=f.path) as d:
            assert_true_to_store(f, d)


def test_files_of_another_store_are_not_used_and_go():
    with Folder() as f, Folder() as g:
        filled(f)
        kept(f)
        filled(g)
        shutil.copytree(f("koine.db-index"), g("koine.db-index"))
        with Daemon(root=g.path) as d:
            wait_until(lambda: not files(g), "the files to go")
            assert_true_to_store(g, d)


def test_none_are_kept_if_there_is_no_room_for_them():
    with Folder() as f:
        filled(f)
        with open(f("koine.conf"), "w") as conf:
            conf.write("[memory]\nindex_file_bytes = 0\n")
        with Daemon("--config", f("koine.conf"), root=f.path) as d:
            check(found(d.connect(), "topic7", "ann"), "found")
        same(files(f), [], "files")


if __name__ == "__main__":
    main(globals())
