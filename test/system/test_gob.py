#!/usr/bin/env python3
"""gob and net/rpc with Go itself on the other side (test/go), each way round."""
import json
import os
import socket
import subprocess
import tempfile

from harness import PATIENCE, SOURCE, check, installed, main, same

PEER = os.environ["KOINE_GOB_PEER"]
BUILD = os.environ["KOINE_BUILD"]
FOLDER = None


def go_peer():
    """The Go program, built once."""
    global FOLDER
    installed("go")
    if not FOLDER:
        FOLDER = tempfile.TemporaryDirectory(prefix="koine-gob-")
        env = dict(os.environ, GO111MODULE="off", GOFLAGS="", GOCACHE=os.path.join(BUILD, "gocache"),
                   GOPATH=FOLDER.name, GOTOOLCHAIN="local", CGO_ENABLED="0")
        subprocess.run(["go", "build", "-o", FOLDER.name + "/gobpeer",
                        os.path.join(SOURCE, "test/go/gobpeer.go")], check=True, env=env, timeout=120)
    return FOLDER.name + "/gobpeer"


def run(argv, data=b""):
    done = subprocess.run(argv, input=data, capture_output=True, timeout=4 * PATIENCE)
    check(done.returncode == 0, "%s ended with %d: %s", argv[0], done.returncode,
          done.stderr.decode(errors="replace"))
    return done.stdout


def joined(ours, theirs):
    """Both on one connection; what the first and the second of them say on stderr."""
    a, b = socket.socketpair()
    left = subprocess.Popen(ours, stdin=a, stdout=a, stderr=subprocess.PIPE)
    right = subprocess.Popen(theirs, stdin=b, stdout=b, stderr=subprocess.PIPE)
    a.close()
    b.close()
    try:
        said = left.communicate(timeout=4 * PATIENCE)[1], right.communicate(timeout=4 * PATIENCE)[1]
        for process, words in zip((left, right), said):
            check(process.returncode == 0, "%s ended with %d: %s", process.args, process.returncode,
                  words.decode(errors="replace"))
        return [words.decode() for words in said]
    finally:
        for process in (left, right):
            if process.poll() is None:
                process.kill()
                process.wait()


def trimmed(v):
    """Without the members that are zero: gob does not send them, JSON does."""
    if isinstance(v, dict):
        # Go writes large floats without exponent
        members = ((k, float(m) if k == "F" else trimmed(m)) for k, m in v.items())
        return {k: m for k, m in members if m not in (None, "", 0, [], {}, False)}
    if isinstance(v, list):
        # gob has no nil in a list of lists
        return [[] if m is None else trimmed(m) for m in v]
    return v


def test_go_reads_what_we_write():
    same(run([go_peer(), "read"], run([PEER, "write"])), b"ok\n")


def test_we_read_what_go_writes():
    lines = os.path.join(os.path.dirname(go_peer()), "lines")
    stream = run([go_peer(), "write", lines])
    got = run([PEER, "read"], stream).splitlines()
    with open(lines, "rb") as f:
        want = f.read().splitlines()
    same(len(got), len(want), "number of values")
    for g, w in zip(got, want):
        same(trimmed(json.loads(g)), trimmed(json.loads(w)), "value")


def test_go_client_calls_our_server():
    same(joined([PEER, "server"], [go_peer(), "client"]), ["", "ok\n"])


def test_our_client_calls_a_go_server():
    words, log = joined([PEER, "client"], [go_peer(), "server"])
    same(log, "", "what the server says")
    rows = sorted((line.split("\t") for line in words.splitlines()), key=lambda row: int(row[0]))
    same([int(row[0]) for row in rows], list(range(300)), "answers")
    errors = [row[2] for row in rows]
    same(errors[:7], ["", "gob: wrong type (int) for received field BadArgs.Limit",
                      "gob: type mismatch in decoder: want struct type main.SearchArgs; got non-struct",
                      "rpc: can't find method Agent.Nope",
                      "rpc: service/method request ill-formed: Search", "query is required", ""])
    same(set(errors[7:]), {""})
    same(json.loads(rows[0][3]), {"Result": "q 5", "Stats": {"limit": 5}})
    same({row[3] for row in rows[1:6]}, {"{}"})
    same(json.loads(rows[7][3]), {"Result": "many 1", "Stats": {"limit": 1}})
    echo = json.loads(rows[6][3])
    same(echo["String"], "[m n s]")
    same(echo["Any"], {"k": ["one", 2, 3.5, True, None, {}]})
    same(echo["Anys"], [None, False, 0, "", [], [["deep"]]])
    same(echo["Int"], -2 ** 63)
    same(echo["Uint"], 2 ** 64 - 1)
    same(echo["Complex"], [1, -2])
    same(echo["ByInt"], {"-1": "neg", "0": ""})


if __name__ == "__main__":
    main(globals())
