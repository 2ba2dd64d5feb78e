#!/usr/bin/env python3
"""Deleted memories: nothing finds them, they can be restored for a while, and a purge leaves no trace."""
import contextlib
import json
import os
import sqlite3
import subprocess

from harness import KOINE, Daemon, change_store, check, main, only_in_a_file, same
from test_chat_cli import Terminal


def add(c, content, **params):
    return c.call("memory.add", dict(params, content=content))["id"]


def refusal(c, method, **params):
    answer = json.loads(c.call_text(json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()))
    check("error" in answer, "%s was not refused: %.200r", method, answer)
    return answer["error"]["message"]


def seen(c, id, query):
    """Where a memory can be seen."""
    places = {
        "search": c.call("memory.search", {"query": query}),
        "at": c.call("memory.search", {"query": query, "at": "2099-01-01T00:00:00Z"}),
        "replaced": c.call("memory.search", {"query": query, "include_replaced": True}),
        "list": c.call("memory.list", {"include_expired": True}),
        "list at": c.call("memory.list", {"at": "2099-01-01T00:00:00Z"}),
        "export": c.call("memory.export")["entries"],
    }
    return {name for name, rows in places.items() if any(r["id"] == id for r in rows)}


EVERYWHERE = {"search", "at", "replaced", "list", "list at", "export"}


def test_deleted_memory_is_restored_with_its_history():
    with Daemon() as d:
        c = d.connect()
        id = add(c, "the vault code is 4711", user_id="ann", subjects=["Ann"], metadata={"a": 1})
        c.call("memory.update", {"memory_id": id, "content": "the vault code is 4712"})
        before = c.call("memory.get", {"memory_id": id})
        history = c.call("memory.history", {"memory_id": id})
        same(seen(c, id, "vault code"), EVERYWHERE)
        same(c.call("memory.delete", {"memory_id": id}), {"deleted": True})
        same(seen(c, id, "vault code"), set())
        same(c.call("memory.stats")["total"], 0)
        check("memory not found" in refusal(c, "memory.get", memory_id=id), "it is still there")
        check("memory not found" in refusal(c, "memory.history", memory_id=id), "its history is still there")
        same([r["id"] for r in c.call("memory.deleted")], [id])
        # The same may be remembered anew meanwhile.
        other = add(c, "the vault code is 4712", user_id="ann", subjects=["Ann"], metadata={"a": 1})
        check(other != id, "a deleted memory was taken for a repetition")
        c.call("memory.delete", {"memory_id": other})
        d.stop()
        d.start()
        d.wait_ready()
        c = d.connect()
        same(seen(c, id, "vault code"), set())
        # Whoever may not change it may not restore it.
        same(c.call("memory.deleted", {"user_id": "bob"}), [])
        check("deleted memory not found" in refusal(c, "memory.restore", memory_id=id, user_id="bob"), "bob restored it")
        same(c.call("memory.restore", {"memory_id": id[:8], "user_id": "ann"})["id"], id)
        same(c.call("memory.get", {"memory_id": id}), before)
        same(c.call("memory.history", {"memory_id": id}), history)
        same(seen(c, id, "vault code"), EVERYWHERE)
        same(c.call("memory.stats")["total"], 1)
        check("deleted memory not found" in refusal(c, "memory.restore", memory_id=id), "it was restored twice")


def test_replaced_memories_go_and_return_together():
    with Daemon() as d:
        c = d.connect()
        old = add(c, "the office is in Oslo")
        new = add(c, "the office is in Bergen", replaces=old)
        history = c.call("memory.history", {"memory_id": new})
        same(len(history), 2)
        c.call("memory.delete", {"memory_id": new})
        same(c.call("memory.export")["entries"], [])
        same([r["id"] for r in c.call("memory.deleted")], [new])
        c.call("memory.restore", {"memory_id": new})
        same(c.call("memory.history", {"memory_id": new}), history)
        # The replaced one alone.
        c.call("memory.delete", {"memory_id": old})
        same(c.call("memory.get", {"memory_id": new})["replaces"], None)
        c.call("memory.restore", {"memory_id": old})
        same(c.call("memory.get", {"memory_id": new})["replaces"], old)
        same(c.call("memory.history", {"memory_id": new}), history)


def test_restored_memory_does_not_expire_at_once():
    with Daemon(clock=0) as d, d.connect() as c:
        over = add(c, "the ticket is valid today", expires_days=-1)
        old = add(c, "the office is in Oslo")
        new = add(c, "the office is in Bergen", replaces=old, expires_days=5)
        own = add(c, "the pass is valid this week", expires_days=7)
        expires = c.call("memory.get", {"memory_id": own})["expires_at"]
        for id in over, old, new, own:
            same(c.call("memory.delete", {"memory_id": id}), {"deleted": True})
        for id, want in (over, None), (old, None), (own, expires):
            same(c.call("memory.restore", {"memory_id": id})["expires_at"], want)
            same(c.call("memory.get", {"memory_id": id})["expires_at"], want)


def test_nothing_is_kept_where_the_settings_say_so():
    with Daemon("--set", "memory.keep_deleted=0") as d:
        c = d.connect()
        id = add(c, "the vault code is 4711")
        c.call("memory.delete", {"memory_id": id})
        same(c.call("memory.deleted"), [])


def test_deleted_memory_is_dropped_after_thirty_days():
    only_in_a_file("the next sweep would be waited for")
    with Daemon(clock=0) as d:
        with d.connect() as c:
            ids = [add(c, "the vault code is %d" % i) for i in (4711, 4712)]
            for id in ids:
                c.call("memory.update", {"memory_id": id, "content": "the vault code is unknown"})
                c.call("memory.delete", {"memory_id": id})
        d.stop()
        for id, days in zip(ids, (31, 29)):
            change_store(d.root, "UPDATE memory_deleted SET deleted_ms = deleted_ms - %d WHERE id = '%s'" % (days * 86400000, id))
        d.start()
        d.wait_ready()
        with d.connect() as c:
            d.hurry(lambda: [r["id"] for r in c.call("memory.deleted")] == ids[1:], "its end", 10)
            check("not found" in refusal(c, "memory.restore", memory_id=ids[0]), "it was restored")
            same(len(c.call("memory.history", {"memory_id": c.call("memory.restore", {"memory_id": ids[1]})["id"]})), 2)


def add_notes(c):
    """As many as make an index of ann's worth a file."""
    c.call("memory.import", {"entries": [
        {"type": "memory", "content": "note %d about the weather in the valley" % i, "user_id": "ann"} for i in range(4500)]})


def index_files(d):
    return os.listdir(os.path.join(d.root, "koine.db-index"))


def files_with(root, *words):
    found = []
    for folder, _, names in os.walk(root):
        for path in (os.path.join(folder, name) for name in names):
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    data = f.read()
                found += [(path, word) for word in words if word in data]
    return found


def test_purged_memory_leaves_no_trace():
    only_in_a_file("a server keeps what was deleted until it vacuums")
    with Daemon() as d:
        c = d.connect()
        add_notes(c)
        secret = add(c, "the passphrase is xylophonequartz", user_id="ann")
        c.call("memory.update", {"memory_id": secret, "content": "the passphrase is zirconiumpapaya"})
        later = add(c, "another passphrase is kumquattungsten", user_id="ann")
        same(c.call("memory.search", {"query": "zirconiumpapaya", "user_id": "ann"})[0]["id"], secret)
        d.stop()
        same(len(index_files(d)), 1, "index files")
        d.start()
        d.wait_ready()
        c = d.connect()
        same(c.call("memory.search", {"query": "zirconiumpapaya", "user_id": "ann"})[0]["id"], secret)
        same(c.call("memory.delete", {"memory_id": secret, "purge": True})["deleted"], True)
        # One that was deleted before can be purged, too.
        c.call("memory.delete", {"memory_id": later})
        same(c.call("memory.delete", {"memory_id": later, "purge": True})["deleted"], True)
        same(c.call("memory.deleted"), [])
        for id in (secret, later):
            check("deleted memory not found" in refusal(c, "memory.restore", memory_id=id), "it was kept")
        same(len(c.call("memory.search", {"query": "weather", "user_id": "ann"})), 10)
        check(not any(h["id"] == secret for h in c.call("memory.search", {"query": "passphrase", "user_id": "ann"})),
              "it is found")
        d.stop()
        same(files_with(d.root, b"xylophonequartz", b"zirconiumpapaya", b"kumquattungsten", b"kumquattungst",
                        b"zirconiumpapai"), [])


def test_purge_of_a_deleted_memory_leaves_no_words_in_index_files():
    only_in_a_file("a server keeps what was deleted until it vacuums")
    with Daemon() as d:
        c = d.connect()
        add_notes(c)
        secret = add(c, "the passphrase is kumquattungsten", user_id="ann")
        same(c.call("memory.search", {"query": "kumquattungsten", "user_id": "ann"})[0]["id"], secret)
        c.call("memory.delete", {"memory_id": secret})
        same(len(c.call("memory.search", {"query": "weather", "user_id": "ann"})), 10)
        same(c.call("memory.delete", {"memory_id": secret, "purge": True})["deleted"], True)
        d.stop()
        same(files_with(d.root, b"kumquattungst"), [])
        # One that is not purged stays in such a file until the index is compacted.
        d.start()
        d.wait_ready()
        c = d.connect()
        other = add(c, "the passphrase is kumquattungsten", user_id="ann")
        same(c.call("memory.search", {"query": "kumquattungsten", "user_id": "ann"})[0]["id"], other)
        c.call("memory.delete", {"memory_id": other})
        d.stop()
        check(any("koine.db-index" in path for path, _ in files_with(d.root, b"kumquattungst")), "nothing was tested")


def test_purge_behind_a_reader_leaves_no_trace_after_the_next_change():
    only_in_a_file("a server keeps what was deleted until it vacuums")
    with Daemon() as d:
        c = d.connect()
        secret = add(c, "the passphrase is xylophonequartz")
        with contextlib.closing(sqlite3.connect(os.path.join(d.root, "koine.db"))) as reader:
            reader.execute("BEGIN")
            same(reader.execute("SELECT count(*) FROM memory").fetchone()[0], 1)
            same(c.call("memory.delete", {"memory_id": secret, "purge": True})["deleted"], True)
        add(c, "something else")
        for name in ("koine.db", "koine.db-wal"):
            with open(os.path.join(d.root, name), "rb") as f:
                check(b"xylophonequartz" not in f.read(), "%s still has it", name)


def test_ambiguous_prefix_is_refused():
    with Daemon() as d:
        c = d.connect()
        ids = [add(c, "note %d" % i) for i in range(17)]
        first = sorted(i[0] for i in ids)
        shared = next(a for a, b in zip(first, first[1:]) if a == b)
        check("several ids begin with" in refusal(c, "memory.delete", memory_id=shared), "which one?")
        same(c.call("memory.stats")["total"], 17)
        # A purge may mean a deleted memory, too.
        for id in [id for id in ids if id[0] == shared][1:]:
            c.call("memory.delete", {"memory_id": id})
        message = refusal(c, "memory.delete", memory_id=shared, purge=True)
        check("several ids begin with" in message, "%r", message)
        same(c.call("memory.delete", {"memory_id": shared}), {"deleted": True})


def test_the_command_line_asks_and_restores():
    with Daemon(listen=("unix:ROOT/koine.sock",)) as d:
        c = d.connect()
        id = add(c, "the spare key is under the mat")

        def koine(*args, code=0):
            env = {k: v for k, v in os.environ.items() if not k.startswith(("ASH_", "KOINE_"))}
            env["EDITOR"] = "false"
            done = subprocess.run([KOINE, "--socket", d.root + "/koine.sock", "memory", *args], env=env,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            same(done.returncode, code, "%r: %s" % (args, done.stderr))
            return done.stdout + done.stderr

        check("at least 4 characters" in koine("delete", id[:3], code=64), "a short prefix")
        check("at least 4 characters" in koine("edit", id[:3], code=64), "a short prefix")
        check("at least 4 characters" in koine("add", "--replaces", id[:3], "x", code=64), "a short prefix")
        same(koine("delete", id[:4]), "Memory deleted: %s\n" % id[:4])
        check("the spare key" in koine("restore"), "what can be restored")
        same(koine("restore", id[:8]), "Memory restored: %s\n" % id[:8])
        koine("delete", "--purge", id)
        koine("restore", id, code=1)


def test_a_person_sees_the_memory_before_it_is_deleted_or_purged():
    with Daemon(listen=("unix:ROOT/koine.sock",)) as d, d.connect() as c:
        id = add(c, "the spare key is under the mat")
        env = {k: v for k, v in os.environ.items() if not k.startswith(("ASH_", "KOINE_"))}

        def deletes(answer, *args, code=0):
            with Terminal(env, "--socket", d.root + "/koine.sock", "memory", "delete", *args) as t:
                t.expect("the spare key is under the mat\r\nDelete this memory")
                t.type(answer + "\r")
                t.leave(code)

        deletes("n", id[:4], code=1)
        deletes("", id[:4], code=1)
        same([m["id"] for m in c.call("memory.list")], [id])
        deletes("y", id[:4])
        same((c.call("memory.list"), [m["id"] for m in c.call("memory.deleted")]), ([], [id]))
        # Only a purge finds it now.
        deletes("n", "--purge", id[:4], code=1)
        deletes("y", "--purge", id[:4])
        same(c.call("memory.deleted"), [])
        with Terminal(env, "--socket", d.root + "/koine.sock", "memory", "delete", "--purge", id[:4]) as t:
            t.leave(1)
            check(b"memory not found" in t.all and b"Delete this memory" not in t.all, "%r", t.all)
        other = add(c, "the bicycle is in the shed")
        with Terminal(env, "--socket", d.root + "/koine.sock", "memory", "delete", "-y", other[:4]) as t:
            t.expect("Memory deleted: %s\r\nthe bicycle is in the shed\r\n" % other[:8])
            t.leave(0)


if __name__ == "__main__":
    main(globals())
