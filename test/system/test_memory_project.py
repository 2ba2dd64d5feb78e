#!/usr/bin/env python3
"""Memories of a project: who sees them through the socket, and what the command line makes of a folder."""
import json
import os
import subprocess

from harness import KOINE, Daemon, Folder, check, clean_environment, main, request, same

BOAT = "github.com/ann/boat"
CAR = "/srv/car"


def add(c, content, **params):
    return c.call("memory.add", dict(params, content=content))


def found(c, **params):
    """Contents by search, by list and by export; all three see the same."""
    hits = sorted(m["content"] for m in c.call("memory.search", dict(params, query="paint", limit=100)))
    rows = sorted(m["content"] for m in c.call("memory.list", dict(params, limit=100)))
    if not params.get("this_chat"):
        pages = c.call("memory.export", params)["entries"]
        same(sorted(e["content"] for e in pages), rows, "export for %r" % params)
        same(c.call("memory.stats", params)["total"], len(rows), "count for %r" % params)
    same(hits, rows, "hits for %r" % params)
    return [content.replace(" paint", "") for content in hits]


def fill(c):
    same(add(c, "boat paint", project=BOAT)["scope"], "project")
    same(add(c, "car paint", project=CAR)["scope"], "project")
    same(add(c, "ann paint", user_id="ann")["scope"], "personal")
    same(add(c, "ann-in-boat paint", user_id="ann", project=BOAT)["scope"], "personal")
    same(add(c, "boat-by-ann paint", user_id="ann", project=BOAT, shared=True)["scope"], "project")
    same(add(c, "chat-in-boat paint", chat_id="c1", project=BOAT)["scope"], "group")
    same(add(c, "common paint")["scope"], "common")
    same(add(c, "common-by-ann paint", user_id="ann", project=BOAT, common=True)["scope"], "common")


COMMON = ["common", "common-by-ann"]
SEES = [
    ({"project": BOAT}, ["boat", "boat-by-ann"]),
    ({"project": CAR}, ["car"]),
    ({"project": "github.com/ann"}, []),
    ({"user_id": "ann"}, ["ann", "ann-in-boat"]),
    ({"user_id": "bob"}, []),
    ({"user_id": "ann", "project": BOAT}, ["ann", "ann-in-boat", "boat", "boat-by-ann"]),
    ({"user_id": "bob", "project": CAR}, ["car"]),
    ({"chat_id": "c1"}, ["chat-in-boat"]),
    ({"chat_id": "c1", "project": CAR}, ["car", "chat-in-boat"]),
    # A name of one kind is no name of another.
    ({"user_id": BOAT, "chat_id": BOAT}, []),
    ({"project": "ann"}, []),
]


def test_a_project_sees_its_own_and_what_is_common():
    with Daemon() as d:
        c = d.connect()
        fill(c)
        for who, own in SEES:
            same(found(c, **who), sorted(own + COMMON), repr(who))
        same(len(found(c)), 8, "nobody in particular")
        same(found(c, project=""), found(c), "an empty name")
        same(found(c, common=True), COMMON)
        same(found(c, common=True, user_id="ann", chat_id="c1", project=BOAT), COMMON)
        same(found(c, chat_id="c1", project=BOAT, this_chat=True), ["chat-in-boat"])
        same(found(c, chat_id="c1", user_id="ann", chat_type="group", project=BOAT),
             ["boat", "boat-by-ann", "chat-in-boat"] + COMMON)


def test_only_the_project_changes_its_memories():
    with Daemon() as d:
        c = d.connect()
        id = add(c, "the boat is blue", project=BOAT)["id"]
        common = add(c, "water is wet")["id"]
        for who in ({"project": CAR}, {"user_id": "ann"}, {"chat_id": BOAT}, {"common": True}):
            for method in ("memory.get", "memory.update"):
                answer = c.call_text(request(method, dict(who, memory_id=id, content="stolen")))
                same(json.loads(answer)["error"]["code"], -32001, "%s by %r" % (method, who))
            same(c.call("memory.delete", dict(who, memory_id=id)), {"deleted": False})
        same(c.call("memory.delete", {"memory_id": common, "project": BOAT}), {"deleted": False})
        got = c.call("memory.update", {"memory_id": id, "project": BOAT, "content": "the boat is green"})
        same((got["content"], got["project"], got["user_id"]), ("the boat is green", BOAT, None))
        same([m["content"] for m in c.call("memory.search", {"query": "green", "project": BOAT})],
             ["the boat is green"])
        same(c.call("memory.delete", {"memory_id": id[:8], "project": BOAT}), {"deleted": True})
        same(c.call("memory.delete", {"memory_id": common, "common": True}), {"deleted": True})


def test_export_and_import_keep_the_project():
    with Daemon() as d:
        c = d.connect()
        fill(c)
        entries = c.call("memory.export", {})["entries"]
        for e in entries:
            c.call("memory.delete", {"memory_id": e["id"]})
        same(found(c), [])
        same(c.call("memory.import", {"entries": entries}), {"imported": 8})
        for who, own in SEES:
            same(found(c, **who), sorted(own + COMMON), repr(who))
        # Entries that name nobody are the project's that is named.
        c.call("memory.import", {"entries": [{"content": "new paint"}], "project": CAR})
        same(found(c, project=CAR), sorted(["car", "new"] + COMMON))


# ---- the command line ----


def koine(d, *args, cwd=None, code=0, env=None):
    r = subprocess.run([KOINE, *args], capture_output=True, text=True, cwd=cwd, timeout=60,
                       env=clean_environment(dict({"KOINE_SOCKET": d.socket_path}, **(env or {}))))
    same(r.returncode, code, "exit of %r, which said %r" % (args, r.stderr))
    return r.stdout if code == 0 else r.stderr


def test_a_folder_stands_for_its_project():
    with Daemon() as d, Folder() as folder:
        top = os.path.realpath(folder.path)
        repo, plain = os.path.join(top, "repo"), os.path.join(top, "plain")
        os.makedirs(os.path.join(repo, ".git"))
        os.makedirs(os.path.join(repo, "src"))
        os.makedirs(plain)
        with open(os.path.join(repo, ".git", "config"), "w") as f:
            f.write('[remote "origin"]\n\turl = git@github.com:ann/boat.git\n')
        check("(project)" in koine(d, "memory", "add", "--project", "boat", "paint", cwd=repo + "/src"))
        koine(d, "memory", "add", "plain paint", "--project=.", cwd=plain)
        koine(d, "memory", "add", "common paint", "--common", env={"ASH_USER_ID": "ann"})
        same([(e["content"], e["project"]) for e in d.connect().call("memory.export", {})["entries"]],
             [("common paint", None), ("plain paint", plain), ("boat paint", BOAT)])
        for args, cwd in ((["--project=" + BOAT], plain), (["--project"], repo),
                          (["--project=" + repo], plain), (["--project=../repo/src"], plain)):
            out = koine(d, "memory", "search", "paint", *args, cwd=cwd)
            check("boat" in out and "common" in out and "plain" not in out, "%r: %s", args, out)
        check("plain" not in koine(d, "memory", "list", "--common"))
        # Without --project a folder changes nothing.
        same(koine(d, "memory", "list", cwd=repo), koine(d, "memory", "list", cwd=plain))
        same(koine(d, "memory", "list", cwd=repo).count("paint"), 3)
        check("No such file" in koine(d, "memory", "list", "--project=./nowhere", cwd=plain, code=66))


def test_ash_socket_refuses_what_it_would_ignore():
    with Daemon() as d:
        for option in ("--project=x", "--common"):
            said = koine(d, "memory", "list", option, code=64,
                         env={"KOINE_SOCKET": "", "ASH_RPC_SOCKET": d.socket_path})
            check("requires koine's own socket" in said, "%s", said)


if __name__ == "__main__":
    main(globals())
