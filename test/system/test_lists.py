#!/usr/bin/env python3
"""memory.list from what is at hand: whoever was answered is seen by the next call, on any connection."""
import json
import threading

from harness import Daemon, check, main, request, same


def listed(c, **who):
    return [m["content"] for m in c.call("memory.list", {"limit": 3, **who})]


def test_what_was_answered_is_in_the_next_list():
    with Daemon() as d:
        writer, reader = d.connect(), d.connect()
        for i in range(200):
            m = writer.call("memory.add", {"content": "number %d" % i, "user_id": "ann"})
            same(listed(reader, user_id="ann")[:1], ["number %d" % i])
            same(listed(reader)[:1], ["number %d" % i])
            if i % 3 == 0:
                writer.call("memory.update", {"memory_id": m["id"], "content": "changed %d" % i,
                                              "user_id": "ann"})
                same(listed(reader, user_id="ann")[:1], ["changed %d" % i])
            if i % 5 == 0:
                writer.call("memory.delete", {"memory_id": m["id"], "user_id": "ann"})
                check("%d" % i not in " ".join(listed(reader, user_id="ann")).split(), "deleted")
            same(listed(reader, user_id="bob"), [], "of somebody else")


def test_so_it_is_while_others_list_all_the_time():
    with Daemon() as d:
        stop = threading.Event()
        wrong = []

        def ask():
            c, last = d.connect(), -1
            while not stop.is_set():
                rows = listed(c, user_id="ann")
                newest = int(rows[0].split()[1]) if rows else -1
                if newest < last:
                    wrong.append((newest, last))
                last = newest

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for t in threads:
            t.start()
        writer, reader = d.connect(), d.connect()
        for i in range(300):
            writer.call("memory.add", {"content": "number %d" % i, "user_id": "ann"})
            same(listed(reader, user_id="ann")[:1], ["number %d" % i])
        stop.set()
        for t in threads:
            t.join()
        same(wrong, [], "lists that went back")


def test_answers_keep_their_order():
    """Some are answered on the loop, others by a thread: a client is served one after another."""
    with Daemon() as d:
        c = d.connect()
        for i in range(5):
            c.call("memory.add", {"content": "number %d" % i, "user_id": "ann"})
        c.send(b"".join(request(*call, id=i) + b"\n" for i, call in enumerate(
            [("memory.list", {"user_id": "ann", "limit": 2}),
             ("memory.search", {"query": "number", "user_id": "ann"}),
             ("memory.add", {"content": "later", "user_id": "ann"}),
             ("memory.list", {"user_id": "ann", "limit": 2}),
             ("memory.list", {"user_id": "ann", "limit": 2})] * 20)))
        for i in range(100):
            answer = json.loads(c.read_line())
            same(answer["id"], i)
            if i % 5 >= 3:
                check(answer["result"][0]["content"] == "later", "%r", answer)


if __name__ == "__main__":
    main(globals())
