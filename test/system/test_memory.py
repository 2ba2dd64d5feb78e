#!/usr/bin/env python3
"""What koine's own dialect adds to memory: get, update, stats, export, import, backup."""
import json
import os
import sqlite3
import threading

from harness import MIB, Daemon, Folder, check, main, only_in_a_file, same

ENTRY = ["id", "content", "source", "category", "importance", "subjects", "user_id", "chat_id", "chat_type",
         "project", "shared", "created_at", "updated_at", "expires_at", "metadata", "valid_from", "valid_until",
         "replaces", "replaced_by", "origin", "review"]


def add(c, content, **params):
    return c.call("memory.add", dict(params, content=content))["id"]


def refusal(c, method, **params):
    answer = json.loads(c.call_text(json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()))
    check("error" in answer, "%s was not refused: %.200r", method, answer)
    return answer["error"]["code"], answer["error"]["message"]


def export(c, **params):
    """Every page; the entries and how many pages there were."""
    entries, pages, cursor = [], 0, None
    while True:
        page = c.call("memory.export", dict(params, cursor=cursor))
        if not page["entries"]:
            same(page["cursor"], None, "last cursor")
            return entries, pages
        entries += page["entries"]
        pages += 1
        cursor = page["cursor"]


def without(entry, *names):
    return {k: v for k, v in entry.items() if k not in names}


def test_get_is_the_memory_in_full():
    with Daemon() as d:
        c = d.connect()
        id = add(c, "Ann likes tea", user_id="ann", chat_id="c1", chat_type="group",
                 subjects=["Ann"], source="agent",
                 category="preference", importance=0.75, metadata={"a": [1]},
                 created_at="2023-05-07T08:00:00Z", expires_days=1)
        got = c.call("memory.get", {"memory_id": id[:8]})
        same(list(got), ENTRY, "members")
        same(without(got, "updated_at", "expires_at"), {
            "id": id, "content": "Ann likes tea", "source": "agent", "category": "preference",
            "importance": 0.75, "subjects": ["Ann"], "user_id": "ann", "chat_id": "c1",
            "chat_type": "group", "project": None, "shared": False, "created_at": "2023-05-07T08:00:00.000Z", "metadata": {"a": [1]},
            "valid_from": None, "valid_until": None, "replaces": None, "replaced_by": None,
            "origin": None, "review": None})
        same(c.call("memory.get", {"memory_id": id, "user_id": "ann"}), got)
        same(refusal(c, "memory.get", memory_id=id, user_id="bob"),
             (-32001, "memory not found: '%s'" % id))
        same(refusal(c, "memory.get", memory_id="zz")[0], -32001, "code")
        same(refusal(c, "memory.get")[0], -32602, "code")


def test_update_changes_what_is_given_and_searches_see_it():
    with Daemon() as d:
        c = d.connect()
        id = add(c, "the boat is blue", user_id="ann", importance=0.25, metadata={"a": 1})
        same(len(c.call("memory.search", {"query": "boat", "user_id": "ann"})), 1, "hits")
        got = c.call("memory.update", {"memory_id": id[:8], "content": "the ship is green",
                                       "user_id": "ann"})
        same((got["content"], got["importance"], got["metadata"], got["user_id"]),
             ("the ship is green", 0.25, {"a": 1}, "ann"))
        for query, n in (("boat", 0), ("ship", 1)):
            for who in ({"user_id": "ann"}, {}):
                same(len(c.call("memory.search", dict(who, query=query))), n, query)
        got = c.call("memory.update", {"memory_id": id, "category": "fact", "importance": 1,
                                       "metadata": {}})
        same((got["content"], got["category"], got["importance"], got["metadata"]),
             ("the ship is green", "fact", 1, {}))
        same(refusal(c, "memory.update", memory_id=id, user_id="bob", content="mine")[0], -32001)
        same(refusal(c, "memory.update", memory_id=id, content="")[0], -32602)
        same(refusal(c, "memory.update", memory_id=id, category="gossip")[0], -32602)
        same(refusal(c, "memory.update", memory_id=id, importance=2)[0], -32602)
        same(c.call("memory.get", {"memory_id": id})["content"], "the ship is green")


NO_MODEL = {"embedding": "off", "vectors": 0, "vectors_pending": 0, "words_file": None, "words": 0}


def test_a_search_explains_itself_if_asked():
    with Daemon() as d:
        c = d.connect()
        for i in range(12):
            add(c, "nothing of that kind, the %dth time" % i)
        add(c, "prefers green tea", subjects=["Anna"])
        add(c, "prefers black coffee", subjects=["Bert"])
        plain = c.call("memory.search", {"query": "Which tea does Anna prefer?"})
        check(all("why" not in hit for hit in plain), "explained unasked: %r", plain)
        hits = c.call("memory.search", {"query": "Which tea does Anna prefer?", "explain": True})
        same([without(hit, "why") for hit in hits], plain)
        for hit in hits:
            why = hit["why"]
            same(list(why), ["words", "alike", "context", "names", "dates", "kind", "matched"])
            parts = sum(v for k, v in why.items() if k != "matched")
            check(abs(parts - 1) < 0.001, "parts add up to %r", parts)
        same(sorted(hits[0]["why"]["matched"]), ["anna", "prefer", "tea"])
        check(hits[0]["why"]["names"] > 0.2, "names: %r", hits[0])
        same(hits[1]["why"]["matched"], ["prefer"])


def test_stats_count_what_the_caller_sees():
    with Daemon() as d:
        c = d.connect()
        add(c, "one", user_id="ann")
        add(c, "two", user_id="bob", expires_days=-1)
        add(c, "three", user_id="ann", chat_id="c1", shared=True)
        add(c, "four")
        same(without(c.call("memory.stats"), "index_bytes"),
             {"total": 4, "personal": 2, "group": 1, "project": 0, "common": 1, "expired": 1, "owners": 2,
              "indexes": 0, "index_files": 0, "index_file_bytes": 0, **NO_MODEL})
        c.call("memory.search", {"query": "one", "user_id": "ann"})
        got = c.call("memory.stats", {"user_id": "ann"})
        same(without(got, "index_bytes"), {"total": 2, "personal": 1, "group": 0, "project": 0, "common": 1,
                                           "expired": 0, "owners": 1, "indexes": 2, "index_files": 0,
                                           "index_file_bytes": 0, **NO_MODEL})
        check(got["index_bytes"] > 0, "indexes of no size")


def test_export_pages_through_everything():
    with Daemon() as d:
        c = d.connect()
        for i in range(25):
            add(c, "entry %d" % i, user_id="ann" if i % 2 else "bob",
                created_at="2024-01-01T00:00:00Z" if i < 10 else None)
        entries, pages = export(c, limit=4)
        same(pages, 7, "pages")
        # Of those of one moment the later one is newer.
        same([e["content"] for e in entries], ["entry %d" % i for i in range(24, -1, -1)])
        same({e["user_id"] for e in export(c, user_id="ann")[0]}, {"ann"})
        for cursor in ("nonsense", "1/2x", "/", "9" * 70):
            same(refusal(c, "memory.export", cursor=cursor)[0], -32602)


def test_export_of_long_memories_comes_in_pages_that_fit():
    with Daemon() as d:
        c = d.connect()
        # Each NUL is one byte kept and six bytes written.
        contents = ["%d" % i + "\0" * MIB for i in range(6)] + ["x" * 12 * MIB]
        for content in contents:
            add(c, content)
        entries, _ = export(c)
        same([len(e["content"]) for e in entries], [len(t) for t in reversed(contents)], "lengths")


def in_order(entries):
    return sorted((without(e, "id", "updated_at") for e in entries),
                  key=lambda e: (e["created_at"], e["content"]))


def test_what_was_exported_can_be_imported():
    with Daemon() as old, Daemon() as new:
        c = old.connect()
        add(c, "Ann likes tea", user_id="ann", chat_id="c1", chat_type="group",
            subjects=["Ann", "tea"],
            category="preference", importance=0.9, metadata={"k": "v"},
            created_at="2023-05-07T08:00:00Z", expires_days=40000)
        add(c, "shared words", user_id="ann", chat_id="c1", shared=True, source="agent")
        add(c, "for everybody")
        # Nothing but the time tells these apart.
        for day in range(1, 4):
            add(c, "went running", user_id="ann", created_at="2024-03-%02dT07:00:00Z" % day)
        entries, _ = export(c)
        same(len(entries), 6, "exported")
        entries.append(dict(entries[-1], content="of the first moment",
                            created_at="1970-01-01T00:00:00.001Z"))
        entries.append(dict(entries[-1], content="before all", created_at="1955-11-05T06:00:00.000Z"))
        to = new.connect()
        same(to.call("memory.import", {"entries": entries}), {"imported": 8})
        got, _ = export(to)
        # Newest first; which of two of the same millisecond comes first is nobody's promise.
        same([e["created_at"] for e in got], [e["created_at"] for e in entries], "order")
        same(in_order(got), in_order(entries))
        # The same again at once is what a client does that got no answer.
        to.call("memory.import", {"entries": entries})
        same(len(export(to)[0]), 8, "after a repetition")


def test_import_of_the_mcp_memory_server():
    entries = [
        {"type": "entity", "name": "Ann", "entityType": "person",
         "observations": ["likes tea", "lives in Oslo"]},
        {"type": "entity", "name": "Bob", "entityType": "person", "observations": ["likes tea"]},
        {"type": "entity", "name": "Eve", "entityType": "person", "observations": []},
        {"type": "relation", "from": "Ann", "to": "Bob", "relationType": "works with"},
    ]
    with Daemon() as d:
        c = d.connect()
        same(c.call("memory.import", {"entries": entries, "user_id": "me"}), {"imported": 4})
        got = sorted((e["content"], e["subjects"], e["category"], e["user_id"])
                     for e in export(c)[0])
        same(got, [("Ann works with Bob", ["Ann", "Bob"], "fact", "me"),
                   ("likes tea", ["Ann"], "entity", "me"), ("likes tea", ["Bob"], "entity", "me"),
                   ("lives in Oslo", ["Ann"], "entity", "me")])
        hits = c.call("memory.search", {"query": "What does Bob like?", "user_id": "me"})
        same(hits[0]["metadata"]["subject_name"], "Bob")


def test_import_takes_all_or_none():
    good = {"content": "good one"}
    rows = [5, {}, {"content": ""}, {"content": 5}, {"content": "x", "category": "gossip"},
            {"content": "x", "importance": 1.5}, {"content": "x", "importance": "high"},
            {"content": "x", "subjects": "Ann"}, {"content": "x", "subjects": [1]},
            {"content": "x", "created_at": "soon"}, {"content": "x", "user_id": 5},
            {"type": "entity", "name": 5}, {"type": "entity", "name": "A", "observations": [""]},
            {"type": "entity", "observations": ["of nobody"]},
            {"type": "relation", "from": "A", "to": "B"}]
    with Daemon() as d:
        c = d.connect()
        for bad in rows:
            code, message = refusal(c, "memory.import", entries=[good, bad])
            same(code, -32602, "code")
            check("entry 1: " in message, "does not say which: %r", message)
        same(refusal(c, "memory.import", entries={})[0], -32602)
        same(export(c)[0], [])
        # What was undone is not found either.
        same(c.call("memory.search", {"query": "good"}), [])
        same(c.call("memory.import", {"entries": [dict(good, importance=None, subjects=None)]}),
             {"imported": 1})
        same(c.call("memory.search", {"query": "good"})[0]["content"], "good one")


def test_backup_is_a_whole_store_while_others_write():
    only_in_a_file("a server is copied by pg_dump")
    with Daemon() as d, Folder() as f:
        c = d.connect()
        for i in range(50):
            add(c, "before %d" % i)
        over = threading.Event()

        def write():
            with d.connect() as mine:
                n = 0
                while not over.is_set():
                    add(mine, "meanwhile %d" % n)
                    n += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for i in range(5):
                same(c.call("store.backup", {"path": f("copy%d" % i)}), {"path": f("copy%d" % i)})
        finally:
            over.set()
            writer.join()
        for i in range(5):
            same(os.stat(f("copy%d" % i)).st_mode & 0o777, 0o600, "mode")
            db = sqlite3.connect(f("copy%d" % i))
            same(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity")
            same(db.execute("SELECT count(*) FROM memory WHERE content LIKE 'before%'").fetchone(),
                 (50,), "memories")
            db.close()
        with open(f("copy0"), "rb") as file:
            before = file.read()
        for path, why in ((f("copy0"), None), ("copy9", "absolute"), (f("no", "folder"), None),
                          (f("a\0b"), "absolute"), ("", None)):
            code, message = refusal(c, "store.backup", path=path)
            check(code != -32603 and (why or "") in message, "%r: %r %r", path, code, message)
        with open(f("copy0"), "rb") as file:
            same(file.read() == before, True, "the file is as it was")
        with Daemon("--store", "sqlite:" + f("copy0")) as restored:
            check(len(export(restored.connect())[0]) >= 50, "not restored")


if __name__ == "__main__":
    main(globals())
