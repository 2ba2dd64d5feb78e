#!/usr/bin/env python3
"""The command line against a small server of its own.

Each check is a row: what is typed, what must come out. The server speaks line,
length and http, recognised from the first byte, as koined does.

usage: test_cli.py KOINE EXAMPLE_CLIENT
"""

import itertools
import json
import os
import re
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

KOINE = sys.argv[1]
EXAMPLE_CLIENT = sys.argv[2]
TOKEN = "s3cret"

DISCOVER = {
    "openrpc": "1.2.6",
    "info": {"title": "test", "version": "1"},
    "methods": [
        {"name": "ping", "summary": "Answers at once", "params": []},
        {
            "name": "memory.store",
            "summary": "Keeps a text",
            "params": [
                {"name": "content", "required": True, "description": "the text",
                 "schema": {"type": "string"}},
                {"name": "limit", "schema": {"type": "integer", "default": 10}},
            ],
        },
    ],
}

STATUS = {
    "pid": 4711,
    "version": "9.8.7",
    "uptime_seconds": 90061,
    "health": "healthy",
    "agent": {"name": "ollama", "kind": "openai"},
    "sessions_running": 1,
    "approvals_pending": 4,
    "store": {"path": "/x/koine.db", "check": "ok", "writes": "No space left on device"},
    "subsystems": {"supervisor": {"running": 2, "queued": 3}},
    "listeners": [
        {"dialect": "koine", "address": "unix:/x", "connections": 1, "calls": 23,
         "errors": 4, "bytes_in": 567, "bytes_out": 89, "dropped": 0},
        {"dialect": "ash", "address": "unix:/run/ash/rpc.sock"},
    ],
}

RESULTS = {
    "ping": {"pong": True, "timestamp": "2026-11-15T07:47:17.177Z"},
    "daemon.status": STATUS,
    "rpc.discover": DISCOVER,
    "nothing": None,
    "nested": {"a": [], "b": {}, "c": [1, {"d": "e\n\x1b"}], "k\"\n": 1.5},
}

HANGUP = object()

NO_KEY = b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"Authorization required"},"id":null}'
LOST = b'{"error":"Not found. Use / or /rpc."}'


def answer(request):
    """The bytes to answer with, None for none, or HANGUP."""
    method = request["method"]
    reply = {"jsonrpc": "2.0", "id": request.get("id")}
    if method == "hang":
        return None
    if method == "leave":
        return HANGUP
    if method == "garbage":
        return b"hello"
    if method == "fail":
        reply["error"] = {"code": -32001, "message": "no\x1b[31m way", "data": {"why": ["x"]}}
    elif method == "echo":
        reply["result"] = request.get("params", "none")
    elif method == "steer":
        return b'{"id":1,"result":"\xc2\x9b31m\x7f"}'
    elif method in RESULTS:
        reply["result"] = RESULTS[method]
    else:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    return json.dumps(reply, indent=None).encode()


def read_http(file):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = file.read(1)
        if not byte:
            return None, None
        head += byte
    length = int(re.search(rb"Content-Length: (\d+)", head).group(1))
    return head, file.read(length)


def serve_http(file, conn):
    while True:
        head, body = read_http(file)
        if head is None:
            return
        if b"POST /locked " in head and b"Authorization: Bearer " + TOKEN.encode() not in head:
            conn.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            continue
        if b"POST /keyed " in head:
            conn.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: %d\r\n\r\n%s" %
                         (len(NO_KEY), NO_KEY))
            continue
        if b"POST /lost " in head:
            conn.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s" %
                         (len(LOST), LOST))
            continue
        reply = answer(json.loads(body))
        if reply is HANGUP:
            return
        if reply is not None:
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(reply), reply))


def serve_line(file, conn):
    for line in file:
        reply = answer(json.loads(line))
        if reply is HANGUP:
            return
        if reply is not None:
            conn.sendall(reply + b"\n")


def serve_length(file, conn):
    while True:
        prefix = file.read(4)
        if len(prefix) < 4:
            return
        reply = answer(json.loads(file.read(struct.unpack(">I", prefix)[0])))
        if reply is HANGUP:
            return
        if reply is not None:
            conn.sendall(struct.pack(">I", len(reply)) + reply)


def serve(conn):
    kinds = {b"{": serve_line, b"P": serve_http}
    with conn, conn.makefile("rb") as file:
        first = file.peek(1)[:1]
        if first:
            kinds.get(first, serve_length)(file, conn)


def accept_all(listener):
    while True:
        try:
            conn, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(conn,), daemon=True).start()


def listen(family, address):
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(64)
    threading.Thread(target=accept_all, args=(listener,), daemon=True).start()
    return listener


# name, arguments, exit code, what stdout is (exact, or a compiled pattern that
# must be found), what stderr holds ("" for nothing at all); then optionally
# stdin, and the environment's changes.
def checks(folder, port):
    url = f"http://127.0.0.1:{port}/"
    gone = f"{folder}/gone.sock"
    return [
        ("call prints indented json", ["call", "echo", "a=1"], 0, '{\n  "a": "1"\n}\n', ""),
        ("call takes strings and json", ["--json", "call", "echo", "a=1", "b:=1", "c:=[true, null]",
         "d=x=y", "e="], 0, '{"a":"1","b":1,"c":[true,null],"d":"x=y","e":""}\n', ""),
        ("call takes whole params", ["call", "echo", '{"x": {"y": 2}}', "--json"], 0,
         '{"x":{"y":2}}\n', ""),
        ("call takes an array", ["call", "echo", "[1, 2]", "--json"], 0, "[1,2]\n", ""),
        ("call reads stdin", ["call", "echo", "-", "--json"], 0, '{"from":"stdin"}\n', "",
         '{\n "from": "stdin"\n}\n'),
        ("call without params sends none", ["call", "echo"], 0, '"none"\n', ""),
        ("null is a result", ["call", "nothing"], 0, "null\n", ""),
        ("nested results are indented", ["call", "nested"], 0,
         '{\n  "a": [],\n  "b": {},\n  "c": [\n    1,\n    {\n      "d": "e\\n\\u001b"\n    }\n'
         '  ],\n  "k\\"\\u000a": 1.5\n}\n', ""),
        ("a result cannot steer the terminal", ["call", "steer"], 0, '"\\u009b31m\\u007f"\n', ""),
        ("colours when asked", ["call", "nothing", "--color", "always"], 0,
         "\033[35mnull\033[0m\n", ""),
        ("no colours into a pipe", ["call", "nothing", "--color=auto"], 0, "null\n", ""),
        ("an error answer is 1", ["call", "fail"], 1, "",
         'koine: fail: no\\x1b[31m way (code -32001)\n{"why":["x"]}\n'),
        ("an unknown method is 1", ["call", "nosuch"], 1, "",
         "koine: nosuch: Method not found (code -32601)\n"),
        ("call requires a method", ["call"], 64, "", "koine: call requires a method"),
        ("a bare word is no parameter", ["call", "echo", "word"], 64, "", "expected key=value or key:=JSON"),
        ("a key must be there", ["call", "echo", "=x"], 64, "", "expected key=value or key:=JSON"),
        ("bad json is 65", ["call", "echo", "a:={"], 65, "", "koine: a is not JSON: "),
        ("bad whole json is 65", ["call", "echo", '{"a"}'], 65, "", "is not JSON"),
        ("a scalar on stdin is 65", ["call", "echo", "-"], 65, "", "an object or an array", "3"),
        ("two texts on stdin are 65", ["call", "echo", "-"], 65, "", "not JSON", "{}{}"),
        ("after -- nothing is an option", ["call", "echo", "--json", "--", "--x=1"], 0,
         '{"--x":"1"}\n', ""),

        ("ping shows time and timestamp", ["ping"], 0,
         re.compile(r"^unix:.*/s responded in \d+\.\d{3} ms, timestamp 2026-11-15T07:47:17.177Z\n$"),
         ""),
        ("ping --json is the result", ["ping", "--json"], 0,
         '{"pong":true,"timestamp":"2026-11-15T07:47:17.177Z"}\n', ""),
        ("status is a table", ["status"], 0,
         "koined 9.8.7, pid 4711, up 1 d 1 h, healthy\n"
         "agent      ollama (openai)\n"
         "tasks      2 running, 3 waiting\n"
         "sessions   1 running\n"
         "approvals  4 pending (see: koine approvals)\n"
         "store      /x/koine.db: not writable: No space left on device\n\n"
         "DIALECT  CLIENTS  CALLS  ERRORS  DROPPED  ADDRESS\n"
         "koine          1     23       4        0  unix:/x\n"
         "ash            -      -       -        -  unix:/run/ash/rpc.sock\n",
         ""),
        ("status --json is the result", ["status", "--json"], 0,
         json.dumps(STATUS, separators=(",", ":")) + "\n", ""),
        ("discover lists methods", ["discover"], 0,
         "ping\n    Answers at once\n"
         "memory.store content [limit]\n    Keeps a text\n", ""),
        ("discover shows fields", ["discover", "memory.store"], 0,
         re.compile(r"(?s)^memory.store: Keeps a text\n.*content +string +required +- +the text\n"
                    r"limit +integer +optional +10 +\n$"), ""),
        ("discover --json is the document", ["discover", "--json"], 0,
         json.dumps(DISCOVER, separators=(",", ":")) + "\n", ""),
        ("discover suggests a method", ["discover", "memory.stor"], 1, "",
         "did you mean 'memory.store'?"),

        ("wire shows both ways", ["wire", "echo", "a=1"], 0,
         '> {"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":"1"}}\n'
         '< {"jsonrpc": "2.0", "id": 1, "result": {"a": "1"}}\n', ""),
        ("wire shows what is not printable", ["wire", "ping", "--framing", "length"], 0,
         re.compile(r'^> \\x00\\x00\\x00\({"jsonrpc".*}\n< \\x00\\x00\\x00'), ""),
        ("wire shows http", ["wire", "nothing", "--url", url], 0,
         re.compile(r"^> POST / HTTP/1\.1\\x0d\n(> .*\n)+< HTTP/1\.1 200 OK\\x0d\n"), ""),
        ("wire hides the token", ["wire", "nothing", "--url", url, "--token-file",
         f"{folder}/token"], 0,
         re.compile(rf"^(?!(?s:.*{TOKEN}))(?s:.*)> Authorization: Bearer \*\*\*\\x0d\n> Content"),
         ""),
        ("wire says the error too", ["wire", "nosuch"], 1, re.compile("< .*-32601"),
         "koine: nosuch: Method not found (code -32601)\n"),

        ("length framing", ["call", "echo", "[1]", "--json", "--framing=length"], 0, "[1]\n", ""),
        ("http over a url", ["call", "echo", "[1]", "--json", "--url", url], 0, "[1]\n", ""),
        ("http over a unix socket", ["call", "echo", "[1]", "--json", "--framing", "http"], 0,
         "[1]\n", ""),
        ("tcp", ["call", "echo", "[1]", "--json", "--url", f"tcp:localhost:{port}"], 0, "[1]\n",
         ""),
        ("without a token 77", ["ping", "--url", url + "locked"], 77, "", "HTTP 401 Unauthorized"),
        ("a locked door is 77 whatever its body", ["ping", "--url", url + "keyed"], 77, "",
         "HTTP 401 Unauthorized: Authorization required (--token-file FILE sends a token)\n"),
        ("a wrong path says what the server says", ["ping", "--url", url + "lost"], 76, "",
         "HTTP 404 Not Found: Not found. Use / or /rpc.\n"),
        ("with a token 0", ["call", "nothing", "--url", url + "locked", "--token-file",
         f"{folder}/token"], 0, "null\n", ""),
        ("a missing token file is 66", ["ping", "--token-file", gone], 66, "", "cannot read"),

        ("no server is 69", ["ping", "--socket", gone], 69, "",
         f"koine: koined is not running: no answer at {gone} (try: koined)\n"),
        ("a dead socket is 69", ["ping", "--socket", f"{folder}/dead"], 69, "",
         f"koine: koined is not running: no answer at {folder}/dead (try: koined)\n"),
        ("retries come to an end", ["ping", "--socket", gone, "--retries", "1"], 69, "",
         "koined is not running: no answer at"),
        ("a server that leaves is 69", ["call", "leave"], 69, "", "without a response"),
        ("no answer is 75", ["call", "hang", "--timeout", "0.05"], 75, "",
         "koine: no response to 'hang' within 50 ms\n"),
        ("garbage is 76", ["call", "garbage"], 76, "", "not JSON-RPC"),
        ("http garbage is 76", ["call", "garbage", "--url", url], 76, "", "JSON-RPC"),
        ("a bad url is 64", ["ping", "--url", "ftp:x"], 64, "", "invalid address 'ftp:x'"),
        ("a url needs its kind", ["ping", "--url", "localhost:8765"], 64, "",
         "try http://localhost:8765 or tcp:localhost:8765\n"),

        ("KOINE_SOCKET names the server", ["call", "nothing"], 0, "null\n", "", "",
         {"KOINE_SOCKET": f"{folder}/s"}),
        ("--socket wins over it", ["call", "nothing", "--socket", f"{folder}/s"], 0, "null\n", "",
         "", {"KOINE_SOCKET": gone}),
        ("XDG_RUNTIME_DIR comes next", ["ping"], 69, "", f"koined is not running: no answer at {folder}/koine/koine.sock",
         "", {"KOINE_SOCKET": "", "XDG_RUNTIME_DIR": folder}),

        ("no command shows the common ones", [], 0, re.compile(r"(?s)^Usage: koine .*\n  doctor .*koine help all"), ""),
        ("a typo is answered", ["staus"], 64, "", "did you mean 'status'?"),
        *((f"{word} suggests {meant}", [word], 64, "",
           f"koine: unknown command '{word}'; did you mean '{meant}'?\n")
          for word, meant in MEANT.items()),
        ("an unknown word is 64", ["frobnicate"], 64, "", "see koine --help"),
        ("an unknown option is 64", ["ping", "--tiemout", "3"], 64, "", "did you mean --timeout?"),
        ("an option requires its value", ["ping", "--timeout"], 64, "", "option --timeout requires TIME"),
        ("a number has its bounds", ["ping", "--retries", "1001"], 64, "",
         "invalid --retries '1001': expected N, from 0 to 1000"),
        ("a timeout is a number", ["ping", "--timeout", "soon"], 64, "", "invalid --timeout 'soon': expected TIME, such as 90, 10m or 2h"),
        ("a timeout is positive", ["ping", "--timeout", "-1"], 64, "", "invalid --timeout '-1'"),
        ("a framing is one of four", ["ping", "--framing", "gobs"], 64, "", "invalid --framing 'gobs': expected line, length, http or gob\n"),
        ("a switch has no value", ["ping", "--json=1"], 64, "", "takes no value"),
        ("help", ["--help"], 0, re.compile(r"^Usage: koine .*\nControl koined"), ""),
        ("help of everything", ["help", "all"], 0, re.compile(r"(?s)^Usage: koine .*Exit codes.*\n  76 "), ""),
        ("help of a command", ["help", "call"], 0, re.compile(r"^Call a method.*\.\n\nUsage: koine call METHOD"), ""),
        ("help as an option", ["wire", "--help"], 0, re.compile(r"^Call a method.*\.\n\nUsage: koine wire METHOD"), ""),
        ("help says where a cancel looks", ["cancel", "--help"], 0,
         re.compile(r"--conversation NAME +look for the request only in the conversation\s+NAME \(default: all conversations\)"), ""),
        ("version", ["--version"], 0, re.compile(r"^koine \d+\.\d+\.\d+\n$"), ""),
    ]


# What other tools call it: each is a command, or a line for a shell.
MEANT = {
    "start": "daemon start", "stop": "daemon stop", "ps": "task list", "logs": "daemon log",
    "inbox": "approvals", "config": "koined --check",
    "search": "memory search", "aprove": "approve",
}


def differs(got, expected):
    if isinstance(expected, re.Pattern):
        return not expected.search(got)
    return got != expected


def run(environment, name, args, code, out, err, stdin="", changes=None):
    done = subprocess.run([KOINE, *args], input=stdin.encode(), capture_output=True, timeout=60,
                          env={**environment, **(changes or {})}, check=False)
    got_out = done.stdout.decode(errors="replace")
    got_err = done.stderr.decode(errors="replace")
    wrong = []
    if done.returncode != code:
        wrong.append(f"exit code {done.returncode}, not {code}")
    if differs(got_out, out):
        wrong.append(f"stdout {got_out!r}, not {out!r}")
    if (got_err != "") if err == "" else (err not in got_err):
        wrong.append(f"stderr {got_err!r}, not {err!r}")
    print(f"{'FAIL' if wrong else 'ok'} {name}" + "".join(f"\n     {w}" for w in wrong))
    return not wrong


def help_of(environment, words):
    done = subprocess.run([KOINE, *words, "--help"], stdout=subprocess.PIPE, timeout=60,
                          env={**environment, "COLUMNS": "80"}, check=True)
    return done.stdout.decode()


def commands_in(text):
    """The names of the rows of a help that stand under a title, but not those of options."""
    return re.findall(r"^  ([a-z]+)  ", re.split("\n(?:Options|Shortcuts)", text)[0], re.M)


def helps(environment):
    """The help of every command, by its words."""
    texts = {("all",): help_of(environment, ["all"])}
    for name in commands_in(texts[("all",)]):
        texts[(name,)] = help_of(environment, [name])
        for sub in commands_in(texts[(name,)]) if "\nCommands:\n" in texts[(name,)] else []:
            texts[(name, sub)] = help_of(environment, [name, sub])
    return texts


def examples_in(text):
    return re.findall(r"^  (.*)$", text.split("\nExamples:\n")[1].split("\n\n")[0], re.M) \
        if "\nExamples:\n" in text else []


def words_of(example):
    """What koine gets of a line for a shell."""
    lexer = shlex.shlex(example, posix=True, punctuation_chars="|&<>;")
    lexer.whitespace_split = True
    words = list(lexer)
    words = words[words.index("koine") + 1:]
    return list(itertools.takewhile(lambda w: not w or w[0] not in "|&<>;", words))


def check_examples(environment):
    """Every command has two or three examples of itself, whose command and options exist."""
    wrong = []
    for name, text in helps(environment).items():
        if name == ("all",):
            continue
        if not re.match(r"[A-Z][a-z]+\b.*\.\n\nUsage: koine %s\b" % " ".join(name), text):
            wrong.append(f"{name}: does not begin with a sentence and its usage")
        examples = examples_in(text)
        if len(examples) not in (2, 3):
            wrong.append(f"{name}: {len(examples)} examples")
        for example in examples:
            words = words_of(example)
            done = subprocess.run([KOINE, "--help", *words], capture_output=True, timeout=60,
                                  env={**environment, "COLUMNS": "80"}, check=False)
            if tuple(words[:len(name)]) != name or done.returncode != 0 or \
                    b"Usage: koine " + name[0].encode() not in done.stdout:
                wrong.append(f"{example}: {done.stderr.decode()}")
    print(f"{'FAIL' if wrong else 'ok'} every example parses" + "".join(f"\n     {w}" for w in wrong))
    return not wrong


def check_help_fits(environment):
    """No row of any help is wider than a terminal, and none is lost."""
    texts = helps(environment)
    wide = [row for text in texts.values() for row in text.splitlines() if len(row) > 80]
    good = not wide and len(texts) > 60 and ("conversation", "list") in texts
    print(f"{'ok' if good else 'FAIL'} help fits 80 columns" + "".join(f"\n     {w}" for w in wide))
    return good


def check_full_disk(environment):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([KOINE, "call", "nothing"], stdout=full, stderr=subprocess.PIPE,
                              timeout=60, env=environment, check=False)
    good = done.returncode == 74 and b"cannot write" in done.stderr
    print(f"{'ok' if good else 'FAIL'} a full disk is 74")
    return good


def check_example(folder):
    done = subprocess.run([EXAMPLE_CLIENT, f"unix:{folder}/s", "echo", '{"a": 1}'],
                          capture_output=True, timeout=60, check=False)
    good = done.returncode == 0 and done.stdout == b'{"a": 1}\n' and not done.stderr
    print(f"{'ok' if good else 'FAIL'} the example client calls")
    return good


def main():
    folder = tempfile.mkdtemp(prefix="koine-cli-")
    try:
        listeners = [listen(socket.AF_UNIX, f"{folder}/s"),
                     listen(socket.AF_INET, ("127.0.0.1", 0))]
        dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        dead.bind(f"{folder}/dead")
        dead.close()
        with open(f"{folder}/token", "w", encoding="ascii") as file:
            file.write(TOKEN + "\n")
        environment = {k: v for k, v in os.environ.items()
                       if k not in ("NO_COLOR", "XDG_RUNTIME_DIR")}
        environment["KOINE_SOCKET"] = f"{folder}/s"
        rows = checks(folder, listeners[1].getsockname()[1])
        results = [run(environment, *row) for row in rows]
        results.append(check_help_fits(environment))
        results.append(check_examples(environment))
        results.append(check_full_disk(environment))
        results.append(check_example(folder))
        print(f"{sum(results)} of {len(results)} passed")
        return 0 if all(results) else 1
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
