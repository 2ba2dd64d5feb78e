#!/usr/bin/env python3
"""koine call --framing gob, with a server of Go's own net/rpc (test/go/rpcserver.go)."""
import json
import os
import subprocess
import tempfile

from harness import KOINE, PATIENCE, SOURCE, Daemon, Folder, check, clean_environment, installed, main, same

BUILD = os.environ.get("KOINE_BUILD", os.path.join(SOURCE, "build"))


class Server:
    """The Go program, built once, on a socket in its own folder."""
    folder = None

    def __init__(self, name="s"):
        installed("go")
        if not Server.folder:
            Server.build()
        self.path = os.path.join(Server.folder.name, name)
        self.process = subprocess.Popen([Server.folder.name + "/rpcserver", self.path],
                                        stdout=subprocess.PIPE)
        same(self.process.stdout.readline(), b"ready\n", "the server")

    @staticmethod
    def build():
        folder = tempfile.TemporaryDirectory(prefix="koine-go-")
        env = dict(os.environ, GO111MODULE="off", GOFLAGS="", GOCACHE=os.path.join(BUILD, "gocache"),
                   GOPATH=folder.name, GOTOOLCHAIN="local", CGO_ENABLED="0")
        subprocess.run(["go", "build", "-o", folder.name + "/rpcserver",
                        os.path.join(SOURCE, "test/go/rpcserver.go")], check=True, env=env, timeout=170)
        Server.folder = folder

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        os.unlink(self.path)

    def koine(self, *args, data=None):
        """Exit code, stdout, stderr."""
        return koine("-s", self.path, "-j", "call", *args, data=data)


def koine(*args, data=None):
    done = subprocess.run([KOINE, "--framing", "gob", *args], input=data, capture_output=True, text=True,
                          env=clean_environment(), timeout=PATIENCE)
    return done.returncode, done.stdout, done.stderr


def test_values_of_every_kind_reach_go():
    with Server() as server:
        for args, want in (
                (["Arith.Double", "21"], "42\n"),
                (["Arith.Double", "--", "-4"], "-8\n"),
                (["Arith.Half", '{"$uint": 3}'], "1.5\n"),
                (["Arith.Sum", "[1, 2.5, null]"], "3.5\n"),
                (["Arith.Divide", "A:=17", "B:=5"], '{"Quo":3,"Rem":2}\n'),
                (["Arith.Divide", '{"A": 17, "B": 17}'], '{"Quo":1}\n'),
                (["Things.When"], '{"When":{"$bytes":"010000000e7791f70000000000ffff"}}\n'),
        ):
            same(server.koine(*args), (0, want, ""), " ".join(args))
        same(server.koine("Arith.Double", "-", data="7\n"), (0, "14\n", ""), "from stdin")
        code, said, _ = server.koine(
            "Things.Show", '{"Text": "hi", "N": -5, "U": {"$uint": "7"}, "F": 1.0, "Yes": true, '
            '"Bytes": {"$bytes": "00ff41"}, "List": [{"Name": "a"}, {"Tags": ["x"]}], '
            '"Mixed": [1, "a", null, {"k": [1]}], "Counts": {"$map": {"a": 1}}, '
            '"Free": {"$map": {"x": {"$any": 1}}}, "Any": {"$any": {"k": [1, 2.5]}}}')
        same(code, 0)
        same(said, '"{Text:hi N:-5 U:7 F:1 Yes:true Bytes:[0 255 65] '
             'List:[{Name:a Tags:[] Deep:<nil>} {Name: Tags:[x] Deep:<nil>}] Mixed:[1 a <nil> map[k:[1]]] '
             'Counts:map[a:1] Free:map[x:1] Any:map[k:[1 2.5]] When:0001-01-01 00:00:00 +0000 UTC}"\n')


def test_values_of_every_kind_come_back():
    thing = ('{"Text":"hi","N":-5,"U":7,"F":0.1,"Yes":true,"Bytes":{"$bytes":"00ff41"},'
             '"List":[{"Name":"a","Deep":{"Name":"in"}},{}],"Mixed":[1,"a",null,{"k":[1]}],'
             '"Counts":{"a":1},"Free":{"x":1},"Any":{"k":[1,2.5]}}')
    given = (thing.replace('"U":7', '"U":{"$uint":7}').replace('{"a":1}', '{"$map":{"a":1}}')
             .replace('{"x":1}', '{"$map":{"x":{"$any":1}}}')
             .replace('{"k":[1,2.5]}', '{"$any":{"k":[1,2.5]}}'))
    with Server() as server:
        same(server.koine("Things.Echo", given), (0, thing + "\n", ""))


def test_errors_are_gos_words():
    with Server() as server:
        for args, words in (
                (["Arith.Divide", "A:=1"], "divide by zero (code -32000)"),
                (["Nope.X"], "rpc: can't find service Nope.X (code -32601)"),
                (["Arith.Nope"], "rpc: can't find method Arith.Nope (code -32601)"),
                (["Arith"], "rpc: service/method request ill-formed: Arith (code -32601)"),
                (["Arith.Divide", "A=1"],
                 "gob: wrong type (int) for received field Args.A (code -32602)"),
                (["Arith.Divide", "Else:=1"],
                 "gob: type mismatch: no fields matched compiling decoder for Pair (code -32602)"),
        ):
            same(server.koine(*args), (1, "", "koine: %s: %s\n" % (args[0], words)))
        for args, words in (
                (["Arith.Double", '{"$foo": 1}'], "unknown type '$foo': use $int"),
                (["Arith.Double", "null"], "cannot be used as the parameter value"),
                (["Arith.Double", "{"], "is not JSON"),
        ):
            code, out, said = server.koine(*args)
            check((code, out) == (65, "") and words in said, "%s: %d: %s", args, code, said)


def test_a_server_that_is_waited_for():
    """It comes while koine waits, or not at all."""
    with Server() as server:
        waited = koine("-s", server.path + "-not", "--wait", "0.4", "call", "Arith.Double", "21")
        same(waited, (75, "", "koine: timeout waiting for agent at %s-not\n" % server.path))
    path = os.path.join(Server.folder.name, "late")
    waiting = subprocess.Popen([KOINE, "--framing", "gob", "-s", path, "--wait", "60", "call",
                                "Arith.Double", "21"], stdout=subprocess.PIPE, env=clean_environment())
    with Server("late"):
        same(waiting.communicate(timeout=4 * PATIENCE)[0], b"42\n")


def test_no_answer_and_no_server():
    with Server() as server:
        code, out, said = server.koine("Gate.Pass", "1", "-t", "0.05")
        same((code, out, said), (75, "", "koine: no response to 'Gate.Pass' within 50 ms\n"))
        path = server.path
    code, out, said = koine("-s", path, "call", "Arith.Double", "1")
    check(code == 69 and path in said, "%d: %s", code, said)


def check_koined(path):
    code, out, said = koine("-s", path, "-j", "call", "RPCService.Stats")
    same((code, said), (0, ""))
    same(set(json.loads(out)["Stats"]), {"sessions", "messages", "tools_calls", "memories", "files"})
    code, out, said = koine("-s", path, "-j", "call", "Agent.MemorySearch",
                            '{"Query": "tea", "Limit": 3, "MinScore": 0.0}')
    check(code == 0 and "tea at four" in out, "%d: %s%s", code, out, said)
    for args, words in ((["Agent.Nope"], "rpc: can't find method Agent.Nope (code -32601)"),
                        (["Agent.MemorySearch", "Limit=3"],
                         "gob: wrong type (int) for received field Args.Limit (code -32602)"),
                        (["Agent.MemorySearch"], "query is required (code -32000)")):
        same(koine("-s", path, "call", *args), (1, "", "koine: %s: %s\n" % (args[0], words)))


def test_koined_answers_as_go_does():
    """At ocg's socket and at koine's own."""
    with Folder() as folder, Daemon("--listen", "ocg=unix:" + folder("ocg.sock"),
                                    listen=["unix:ROOT/koine.sock"]) as daemon:
        paths = [daemon.address("unix", dialect)[len("unix:"):] for dialect in ("koine", "ocg")]
        code, out, said = koine("-s", paths[0], "-j", "call", "Agent.MemoryStore", "Text=tea at four",
                                "Importance:=0.5")
        check(code == 0 and "created" in out, "%d: %s%s", code, out, said)
        for path in paths:
            check_koined(path)


if __name__ == "__main__":
    main(globals())
