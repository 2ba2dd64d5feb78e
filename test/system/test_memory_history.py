#!/usr/bin/env python3
"""What a memory said before: versions, memories that replace others, and questions about the past."""
import json
import subprocess
import time

from harness import KOINE, Daemon, check, clean_environment, main, request, same

VERSIONS_MAX = 32


def add(c, content, **params):
    return c.call("memory.add", dict(params, content=content))["id"]


def update(c, id, content, **params):
    return c.call("memory.update", dict(params, memory_id=id, content=content))


def refusal(c, method, **params):
    answer = json.loads(c.call_text(request(method, params)))
    check("error" in answer, "%s was not refused: %.200r", method, answer)
    return answer["error"]["code"], answer["error"]["message"]


def contents(rows):
    return [r["content"] for r in rows]


def history(c, id, **params):
    return c.call("memory.history", dict(params, memory_id=id))


def now(c):
    """A time between what was done before and what is done after, by the daemon's clock."""
    t = c.call("ping")["timestamp"]
    while c.call("ping")["timestamp"] == t:
        time.sleep(0.001)
    # The clock of an answer may be a few milliseconds behind.
    time.sleep(0.02)
    t = c.call("ping")["timestamp"]
    time.sleep(0.02)
    return t


def test_update_keeps_what_was_said():
    with Daemon() as d:
        c = d.connect()
        id = add(c, "Ann lives in Oslo", user_id="ann", category="fact", metadata={"a": 1},
                 created_at="2024-05-01T00:00:00Z")
        same(contents(history(c, id)), ["Ann lives in Oslo"])
        first = now(c)
        update(c, id, "Ann lives in Bergen", importance=1)
        update(c, id, "Ann lives in Bergen", metadata={"b": 2})  # the same text: no version
        second = now(c)
        update(c, id, "Ann lives in Turku")
        rows = history(c, id[:8])
        same(contents(rows), ["Ann lives in Turku", "Ann lives in Bergen", "Ann lives in Oslo"])
        same([r["id"] for r in rows], [id] * 3)
        same(rows[2]["valid_from"], "2024-05-01T00:00:00.000Z")
        same([r["valid_until"] for r in rows], [None, rows[0]["valid_from"], rows[1]["valid_from"]])
        same((rows[2]["metadata"], rows[2]["importance"], rows[1]["metadata"], rows[1]["importance"]),
             ({"a": 1}, 0.5, {"b": 2}, 1))
        for at, want in (("2024-05-01", "Oslo"), (first, "Oslo"), (second, "Bergen"), (now(c), "Turku"),
                         (None, "Turku")):
            want = "Ann lives in " + want
            same(c.call("memory.get", {"memory_id": id, "at": at})["content"], want, "get at %s" % at)
            same(contents(c.call("memory.list", {"at": at})), [want], "list at %s" % at)
            for query in ("Ann", "lives", want.split()[-1]):
                same(contents(c.call("memory.search", {"query": query, "at": at, "user_id": "ann"})), [want],
                     "search for %s at %s" % (query, at))
        same(c.call("memory.search", {"query": "Oslo"}), [], "what is valid now")
        same(c.call("memory.search", {"query": "Turku", "at": first}), [], "what was not said yet")
        same(refusal(c, "memory.get", memory_id=id, at="2024-04-30")[0], -32001)
        same(c.call("memory.list", {"at": "2024-04-30"}), [])
        same(c.call("memory.search", {"query": "Ann", "at": "2024-04-30"}), [])
        hits = c.call("memory.search", {"query": "Ann lives", "include_replaced": True})
        same(sorted(contents(hits)), ["Ann lives in " + x for x in ("Bergen", "Oslo", "Turku")])
        check(all("valid_from" in h and "valid_until" in h for h in hits), "hits of the past say when")
        for bad in ("May", "", 5, "2024-13-01"):
            code, message = refusal(c, "memory.search", query="x", at=bad)
            check(code == -32602 and "at" in message, "%r: %r", bad, message)


def test_a_new_memory_may_replace_another():
    with Daemon() as d:
        c = d.connect()
        old = add(c, "the office is in Oslo", user_id="ann", project="p")
        before = now(c)
        # Whoever may change the old one adds for those whom it belonged to.
        new = add(c, "the office is in Bergen", replaces=old[:8])
        got = c.call("memory.get", {"memory_id": new})
        same((got["user_id"], got["project"], got["replaces"], got["replaced_by"]), ("ann", "p", old, None))
        gone = c.call("memory.get", {"memory_id": old})
        same((gone["content"], gone["replaced_by"]), ("the office is in Oslo", new))
        check(gone["valid_until"], "no end")
        for who in ({}, {"user_id": "ann"}):
            same(contents(c.call("memory.search", dict(who, query="office"))), ["the office is in Bergen"])
            same(contents(c.call("memory.list", who)), ["the office is in Bergen"])
            same(contents(c.call("memory.export", who)["entries"]), ["the office is in Bergen"])
            same(contents(c.call("memory.search", dict(who, query="office", at=before))), ["the office is in Oslo"])
            same(contents(c.call("memory.list", dict(who, at=before))), ["the office is in Oslo"])
            for method in ("memory.search", "memory.list"):
                rows = c.call(method, dict(who, query="office", include_replaced=True))
                same(sorted(contents(rows)), ["the office is in Bergen", "the office is in Oslo"], method)
        same(contents(history(c, new)), ["the office is in Bergen", "the office is in Oslo"])
        same(contents(history(c, old)), ["the office is in Oslo"])
        # The same call again is the same memory; another one comes too late.
        same(add(c, "the office is in Bergen", replaces=old), new)
        for method, params in (("memory.add", {"content": "the office is in Rome", "replaces": old}),
                               ("memory.update", {"content": "the office is in Rome", "memory_id": old})):
            code, message = refusal(c, method, **params)
            check(code == -32002 and new in message, "%s: %r", method, message)
        same(refusal(c, "memory.add", content="x", replaces=new, user_id="bob"),
             (-32602, "Invalid params: replaces: memory not found: '%s'" % new))
        same(refusal(c, "memory.add", content="x", replaces="zz")[0], -32602)


def test_deleting_a_memory_deletes_its_history():
    with Daemon() as d:
        c = d.connect()
        start = now(c)
        first = add(c, "secret one", user_id="ann")
        update(c, first, "secret two")
        middle = now(c)
        second = add(c, "secret three", replaces=first)
        third = add(c, "secret four", replaces=second)
        same(contents(history(c, third)), ["secret four", "secret three", "secret two", "secret one"])
        # One in the middle takes those before it along, and leaves the one after it.
        same(c.call("memory.delete", {"memory_id": second}), {"deleted": True})
        same(contents(history(c, third)), ["secret four"])
        same(c.call("memory.get", {"memory_id": third})["replaces"], None)
        for id in (first, second):
            same(refusal(c, "memory.get", memory_id=id)[0], -32001)
        same(c.call("memory.search", {"query": "secret", "at": middle}), [])
        same(c.call("memory.list", {"at": middle}), [])
        update(c, third, "secret five")
        same(c.call("memory.delete", {"memory_id": third}), {"deleted": True})
        same(c.call("memory.search", {"query": "secret", "include_replaced": True}), [])
        same(c.call("memory.stats")["total"], 0)
        check(start < middle, "times")


def test_history_is_seen_by_those_who_see_the_memory():
    with Daemon() as d:
        c = d.connect()
        ids = {}
        for who, params in (("ann", {"user_id": "ann"}), ("c1", {"chat_id": "c1"}), ("p", {"project": "p"}),
                            ("all", {})):
            ids[who] = add(c, "%s said one thing" % who, **params)
            update(c, ids[who], "%s said another thing" % who)
        sees = (({"user_id": "ann"}, ["all", "ann"]), ({"user_id": "bob"}, ["all"]),
                ({"chat_id": "c1"}, ["all", "c1"]), ({"project": "p"}, ["all", "p"]),
                ({"common": True}, ["all"]), ({"user_id": "ann", "project": "p"}, ["all", "ann", "p"]),
                ({}, ["all", "ann", "c1", "p"]))
        for who, want in sees:
            hits = c.call("memory.search", dict(who, query="thing", include_replaced=True, limit=100))
            same(sorted(contents(hits)), sorted("%s said %s thing" % (w, x) for w in want
                                                for x in ("one", "another")), repr(who))
            for name, id in ids.items():
                answer = json.loads(c.call_text(request("memory.history", dict(who, memory_id=id))))
                same("result" in answer, name in want, "history of %s for %r" % (name, who))


def test_history_is_bounded():
    with Daemon() as d:
        c = d.connect()
        id = add(c, "step 0")
        for i in range(1, VERSIONS_MAX + 10):
            update(c, id, "step %d" % i)
        last = VERSIONS_MAX + 9
        same(contents(history(c, id)), ["step %d" % i for i in range(last, last - VERSIONS_MAX - 1, -1)])
        chain = [add(c, "link 0")]
        for i in range(1, VERSIONS_MAX + 10):
            chain.append(add(c, "link %d" % i, replaces=chain[-1]))
        same(contents(history(c, chain[-1])),
             ["link %d" % i for i in range(last, last - VERSIONS_MAX - 1, -1)])
        same(refusal(c, "memory.get", memory_id=chain[0])[0], -32001)
        # Long ones: what does not fit is left out, from the oldest on.
        long = add(c, "x" * 900000)
        for letter in "abc":
            update(c, long, letter * 900000)
        same([r["content"][0] for r in history(c, long)], ["c", "b"])


def test_expiry_takes_what_was_replaced_along():
    with Daemon() as d:
        c = d.connect()
        old = add(c, "the code is 1234")
        new = add(c, "the code is 5678", replaces=old, expires_days=-1)
        same(c.call("memory.get", {"memory_id": old})["expires_at"],
             c.call("memory.get", {"memory_id": new})["expires_at"])
        # One that goes earlier than what replaced it stays that way.
        soon = add(c, "the door is open", expires_days=1)
        end = c.call("memory.get", {"memory_id": soon})["expires_at"]
        add(c, "the door is shut", replaces=soon, expires_days=9)
        same(c.call("memory.get", {"memory_id": soon})["expires_at"], end)


def test_the_past_survives_a_kill():
    with Daemon() as d:
        c = d.connect()
        id = add(c, "Ann likes tea")
        before = now(c)
        update(c, id, "Ann likes coffee")
        new = add(c, "Ann likes water", replaces=id)
        d.process.kill()
        d.process.wait()
        d.exit_status = -9
        root = d.root
        with Daemon(root=root) as again:
            c = again.connect()
            same(contents(history(c, new)), ["Ann likes water", "Ann likes coffee", "Ann likes tea"])
            same(contents(c.call("memory.search", {"query": "Ann", "at": before})), ["Ann likes tea"])
            same(contents(c.call("memory.search", {"query": "Ann"})), ["Ann likes water"])


def koine(d, *args, code=0):
    r = subprocess.run([KOINE, "memory", *args], capture_output=True, text=True, timeout=60,
                       env=clean_environment({"KOINE_SOCKET": d.socket_path}))
    same(r.returncode, code, "exit of %r, which said %r" % (args, r.stderr))
    return r.stdout


def test_the_command_line_shows_the_past():
    with Daemon() as d:
        c = d.connect()
        id = add(c, "the boat is blue", created_at="2024-05-01T00:00:00Z")
        update(c, id, "the boat is green")
        lines = koine(d, "history", id[:8]).splitlines()
        same(lines[0].split(), ["FROM", "UNTIL", "ID", "MEMORY"])
        same([line.split("  ")[-1] for line in lines[1:]], ["the boat is green", "the boat is blue"])
        check(lines[2].startswith("2024-0") and id[:8] in lines[2], "%r", lines)
        check("blue" in koine(d, "search", "boat", "--at", "2024-06-01"), "not found then")
        check("blue" in koine(d, "list", "--at=2024-06-01"), "not listed then")
        check("blue" in koine(d, "show", id, "--at", "2024-06-01"), "not shown then")
        check("blue" not in koine(d, "search", "boat"), "found now")
        check("blue" in koine(d, "search", "boat", "--replaced"), "not found at all")
        koine(d, "add", "the boat is red", "--replaces", id[:8])
        check("red" in koine(d, "list") and "green" not in koine(d, "list"), "not replaced")
        check("until" in koine(d, "show", id) and "successor" in koine(d, "show", id), "not shown")
        koine(d, "history", "nonsense", code=1)


if __name__ == "__main__":
    main(globals())
