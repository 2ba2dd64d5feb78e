#!/usr/bin/env python3
"""Does the load generator notice a server that answers wrongly?

    bench/selftest.py LOAD

Starts small servers, honest ones and liars, and looks at LOAD's exit status: a
generator that counts wrong answers as right would make any server fast.
"""

import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading


def result(request, **changes):
    return json.dumps({"jsonrpc": "2.0", "result": {"pong": True}, "id": request["id"], **changes})


def http(body, status="200 OK"):
    return (f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


# Each takes the requests that came together and gives the bytes to answer with.

def right(requests):
    return b"".join(result(r).encode() + b"\n" for r in requests)


def right_in_any_order(requests):
    return right(requests[::-1])


def right_lengths(requests):
    bodies = [result(r).encode() for r in requests]
    return b"".join(struct.pack(">I", len(b)) + b for b in bodies)


def right_http(requests):
    return b"".join(http(result(r)) for r in requests)


def right_version_1(requests):
    return b"".join(result(r, error=None).encode() + b"\n" for r in requests)


def wrong_id(requests):
    return b"".join(result(r, id=r["id"] + 1000).encode() + b"\n" for r in requests)


def same_id_twice(requests):
    return b"".join(result(r, id=requests[0]["id"]).encode() + b"\n" for r in requests)


def text_id(requests):
    return b"".join(result(r, id=str(r["id"])).encode() + b"\n" for r in requests)


def id_only_inside_result(requests):
    return b"".join(json.dumps({"result": {"id": r["id"]}}).encode() + b"\n" for r in requests)


def error_answer(requests):
    bodies = [{"jsonrpc": "2.0", "error": {"code": -32601}, "id": r["id"]} for r in requests]
    return b"".join(json.dumps(b).encode() + b"\n" for b in bodies)


def error_beside_result(requests):
    return b"".join(result(r, error={"code": 1}).encode() + b"\n" for r in requests)


def null_result(requests):
    return b"".join(result(r, result=None).encode() + b"\n" for r in requests)


def one_too_many(requests):
    return right(requests) + right(requests[:1])


def one_too_few(requests):
    return right(requests[:-1])


def cut_short(requests):
    return b"".join(result(r)[:-1].encode() + b"\n" for r in requests)


def not_json(requests):
    return b"pong\n" * len(requests)


def hang_up(_requests):
    return None


def http_503(requests):
    return b"".join(http(result(r), "503 Busy") for r in requests)


def http_out_of_order(requests):
    return right_http(requests[::-1])


def changing(requests):
    return b"".join(result(r, id=1, result=os.urandom(4).hex()).encode() + b"\n"
                    for r in requests)


def constant(requests):
    return b'{"result":{"pong":true},"id":1}\n' * len(requests)


seen = set()


def never_the_same(requests):
    """Refuses a text that came before, as a store that takes it for a retry would."""
    texts = [r["params"]["content"] for r in requests]
    is_new = len(set(texts)) == len(texts) and not seen & set(texts)
    seen.update(texts)
    return right(requests) if is_new else error_answer(requests)


def about_something(requests):
    """A question in words, one for each request, and not the same one every time."""
    texts = {r["params"]["query"] for r in requests}
    is_good = len(texts) > 1 and all(len(t.split()) > 1 and "$" not in t for t in texts)
    return right(requests) if is_good else error_answer(requests)


ADD = ["--request", '{"jsonrpc":"2.0","params":{"content":"$TEXT"},"id":$ID}']
ASK = ["--made", "1000,10,100", "--request",
       '{"jsonrpc":"2.0","params":{"query":"$QUESTION"},"id":$ID}']
HTTP = ["--framing", "http"]
LENGTH = ["--framing", "length"]
FIXED = ["--answers", "fixed"]
LARGE = ["--payload", "10k"]

HONEST = [(right, []), (right_in_any_order, []), (right_version_1, []), (right_lengths, LENGTH),
          (right_http, HTTP), (constant, FIXED), (right, LARGE), (right_lengths, LENGTH + LARGE),
          (right_http, HTTP + LARGE), (never_the_same, ADD), (about_something, ASK)]
LIARS = [(wrong_id, []), (same_id_twice, []), (text_id, []), (id_only_inside_result, []),
         (error_answer, []), (error_beside_result, []), (null_result, []), (one_too_many, []),
         (one_too_few, []), (cut_short, []), (not_json, []), (hang_up, []), (http_503, HTTP),
         (http_out_of_order, HTTP), (changing, FIXED), (constant, []), (right, LENGTH),
         (never_the_same, ADD)]  # the second time it has seen them all


def take_requests(data):
    """Whole requests of any framing, and what is left: each is one JSON object."""
    found, rest = [], data
    for match in re.finditer(rb'\{"jsonrpc":.*?"id":\d+\}', data, re.S):
        found.append(json.loads(match[0]))
        rest = data[match.end():]
    return found, rest


def serve_connection(conn, behave, inflight):
    data, requests = b"", []
    with conn:
        while chunk := conn.recv(1 << 16):
            found, data = take_requests(data + chunk)
            requests += found
            if len(requests) < inflight:
                continue
            answer = behave(requests)
            if answer is None:
                return
            conn.sendall(answer)
            requests = []


def serve(listener, behave, inflight):
    while True:
        try:
            conn, _ = listener.accept()
        except OSError:
            return
        try:
            serve_connection(conn, behave, inflight)
        except OSError:
            pass  # the generator saw enough and left


def try_server(load, folder, behave, args):
    """The exit status and what was said."""
    path = os.path.join(folder, "sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        threading.Thread(target=serve, args=(listener, behave, 4), daemon=True).start()
        done = subprocess.run([load, "--target", "unix:" + path, "--inflight", "4",
                               "--requests", "40", "--warmup", "0", "--timeout-ms", "1000", *args],
                              capture_output=True, text=True)
        listener.shutdown(socket.SHUT_RDWR)
    os.unlink(path)
    return done


def main():
    load = sys.argv[1]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for behave, args, wanted in [*((b, a, 0) for b, a in HONEST),
                                     *((b, a, 1) for b, a in LIARS)]:
            done = try_server(load, folder, behave, args)
            is_ok = done.returncode == wanted and bool(done.stdout) == (wanted == 0)
            failures += not is_ok
            print("ok  " if is_ok else "FAIL", behave.__name__, *args,
                  "->", done.returncode, done.stderr.strip()[:100])
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
