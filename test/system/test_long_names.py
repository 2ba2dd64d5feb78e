#!/usr/bin/env python3
"""
Names by which rows are found, as long as they may be, and a byte longer: either works, or is refused by its
field's name, whatever the store is.

The texts are random: an index of PostgreSQL has room for more of what can be compressed.
"""
import json
import os
import random
import string

from embedding_server import Model
from harness import Daemon, Folder, check, main, request, same, wait_until

NAME, FOLDER = 256, 2048
LETTERS = string.ascii_letters + string.digits + "-_"


def noise(n, seed=1):
    return "".join(random.Random(seed).choices(LETTERS, k=n))


def path(n, seed=1):
    """A path whose parts a file system can have."""
    out = "/" + "/".join(noise(200, seed + i) for i in range(n // 200 + 1))
    return out[:n - 1] + "x"


def answer(c, method, params):
    return json.loads(c.call_text(request(method, params)))


def refused(c, method, field, value, most, **rest):
    error = answer(c, method, dict(rest, **{field: value})).get("error")
    check(error, "%s took a %s of %d bytes", method, field, len(value))
    check(field in error["message"] and str(most) in error["message"], "%s: %.200s", method, error["message"])


def test_memories_have_the_longest_names():
    """With the longest name of a model, too: kept counts have all of them in one key."""
    with Model() as model, Daemon("--set", "memory.embedding_url=" + model.url,
                                  "--set", "memory.embedding_model=" + noise(500, 2)) as d:
        c = d.connect()
        whose = [{"project": noise(FOLDER)}, {"project": path(FOLDER)}, {"user_id": noise(NAME)},
                 {"chat_id": noise(NAME)},
                 {"user_id": noise(NAME, 3), "chat_id": noise(NAME, 4), "chat_type": "group",
                  "project": noise(FOLDER, 5)},
                 {"user_id": "\0" * NAME, "chat_id": noise(NAME // 2, 6) + "\0" * (NAME // 2)}]
        for w in whose:
            id = c.call("memory.add", dict(w, content="paint the boat"))["id"]
            c.call("memory.update", dict(w, memory_id=id, content="paint the car"))
            same([m["id"] for m in c.call("memory.list", w)], [id], "list")
            same([m["id"] for m in c.call("memory.search", dict(w, query="paint"))], [id], "found")
            wait_until(lambda: c.call("memory.stats", w)["vectors"] == 1, "its vector")
            same(len(c.call("memory.history", dict(w, memory_id=id))), 2, "versions")


def test_counts_are_kept_of_the_longest_names():
    """Counts are moved into their table now and then, by many rows at once."""
    with Daemon() as d:
        c = d.connect()
        w = {"user_id": noise(NAME), "chat_id": noise(NAME, 2), "chat_type": "group"}
        entries = [{"content": "note %d" % i} for i in range(1100)]
        for who in ({"project": noise(FOLDER)}, w):
            c.call("memory.import", dict(who, entries=entries))
            same(c.call("memory.stats", who)["total"], 1100, "total")


def test_memories_with_longer_names_are_refused():
    with Daemon() as d:
        c = d.connect()
        for field, most in (("user_id", NAME), ("chat_id", NAME), ("project", FOLDER)):
            for n in (most + 1, 4095, 100000):
                refused(c, "memory.add", field, noise(n), most, content="paint")
                refused(c, "memory.import", field, noise(n), most, entries=[{"content": "paint"}])
                same(c.call("memory.list", {field: noise(n)}), [], "found")
                if field != "project":
                    refused(c, "chat.stream", field, noise(n), most, content="paint", agent="recall")
        error = answer(c, "memory.add", {"content": "paint", "project": "a\0b"})["error"]
        check("project" in error["message"], "%r", error)
        same(c.call("memory.list"), [], "kept")


def test_a_session_has_the_longest_folder():
    with Folder() as folder:
        fits = folder.path + path(FOLDER - len(folder.path))
        os.makedirs(fits)
        with Daemon() as d:
            c = d.connect()
            c.call("session.launch", {"query": "x", "working_dir": fits, "agent": "recall"})
            check(fits in json.dumps(c.call("session.paths")), "not among the paths")
            for n in (FOLDER + 1, 4095):
                refused(c, "session.launch", "working_dir", path(n), FOLDER, query="x")
                refused(c, "launchSession", "working_dir", path(n), FOLDER, query="x")
        with Daemon(env={"HOME": folder.path + path(FOLDER)}) as d:
            refused(d.connect(), "session.launch", "working_dir", "~", FOLDER, query="x", agent="recall")


def test_rules_of_the_longest_project_are_switched():
    with Daemon() as d:
        c = d.connect()
        for project in (path(FOLDER), noise(FOLDER)):
            for method in ("automation.disable", "automation.enable"):
                check("result" in answer(c, method, {"project": project}), "%s", method)
        for n in (FOLDER + 1, 4095):
            refused(c, "automation.disable", "project", path(n), FOLDER)


def test_approvals_have_the_longest_names():
    with Daemon() as d:
        c = d.connect()
        names = {"tool": 256, "session_id": 256, "run_id": 256, "agent": 256, "tool_use_id": 256, "id": 128}
        asked = {field: noise(n, i) for i, (field, n) in enumerate(names.items())}
        c.call("approval.create", asked)
        same([a["id"] for a in c.call("approval.list")["approvals"]], [asked["id"]], "asked")
        for field, most in names.items():
            error = answer(c, "approval.create", dict(asked, **{field: noise(most + 1)}))["error"]
            check(str(most) in error["message"], "%r", error)


def test_tasks_have_the_longest_names():
    with Daemon() as d:
        c = d.connect()
        c.call("task.pause", {"group": noise(128)})
        id = c.call("task.add", {"prompt": "x", "group": noise(128), "label": noise(80), "agent": noise(128)})["id"]
        same([t["id"] for t in c.call("task.find", {"group": noise(128)})["tasks"]], [id], "found")
        for field, most in (("group", 128), ("label", 80), ("agent", 128)):
            refused(c, "task.add", field, noise(most + 1), most, prompt="x")


if __name__ == "__main__":
    main(globals())
