#!/usr/bin/env python3
"""What is kept no longer than the settings say, and the room it leaves."""
import contextlib
import json
import os
import sqlite3

from harness import Daemon, Folder, main, only_in_a_file, request, same, wait_until

DAY_MS = 24 * 3600 * 1000


@contextlib.contextmanager
def store(folder):
    """The store of a daemon that has ended."""
    db = sqlite3.connect(folder("koine.db"))
    try:
        yield db
        db.commit()
    finally:
        db.close()


def asked(folder, path, number):
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % folder(path), uri=True)) as db:
        return db.execute(number).fetchone()[0]


def say_hello(c, name):
    c.send(request("chat.stream", {"content": "hello", "conversation": name,
                                   "request_id": name}) + b"\n")
    while "id" not in json.loads(c.read_line()):
        pass


def test_ended_conversations_go_after_a_while():
    only_in_a_file("it changes the store")
    with Folder() as folder:
        with Daemon(root=folder.path) as d, d.connect() as c:
            for name in "old", "young", "open":
                c.call("create_agent", {"agent_id": name})
                say_hello(c, name)
            for name in "old", "young":
                c.call("destroy_agent", {"agent_id": name})
        with store(folder) as db:
            db.execute("UPDATE conversation SET ended_ms = ended_ms - ? WHERE id = 'old'",
                       (3 * DAY_MS,))
            db.execute("UPDATE conversation SET updated_ms = updated_ms - ?", (9 * DAY_MS,))
        with Daemon(root=folder.path) as d, d.connect() as c:
            same(c.call("chat.past", {})["total"], 2)
        with Daemon("--set", "chat.keep_days=2", root=folder.path) as d, d.connect() as c:
            wait_until(lambda: c.call("chat.past", {})["total"] == 1, "the old one to go")
            same(c.call("get_messages", {"agent_id": "open"})["total"], 2)
        with store(folder) as db:
            same(db.execute("SELECT count(*) FROM turn").fetchone()[0], 2, "turns")


def test_room_comes_back_to_the_disk():
    only_in_a_file("the disk is the server's")
    def pages():
        return asked(folder, "koine.db", "PRAGMA page_count")

    with Folder() as folder:
        with Daemon(root=folder.path):
            pass
        with store(folder) as db:
            db.execute("INSERT INTO event (type, time_ms, data) VALUES ('t', 1, zeroblob(8000000))")
            db.commit()
            db.execute("DELETE FROM event")
        full = pages()
        with Daemon(root=folder.path):
            wait_until(lambda: pages() < full // 3, "pages to be returned")
        size = os.path.getsize(folder("koine.db"))
        same(size, 4096 * pages(), "bytes of the file")


if __name__ == "__main__":
    main(globals())
