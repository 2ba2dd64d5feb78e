#!/usr/bin/env python3
"""Do the load generator, the reader of streams and the listeners notice a server that answers
wrongly?

    bench/selftest.py LOAD STREAM FANOUT LISTEN

Starts small servers, honest ones and liars, and looks at the exit status: a generator
that counts wrong answers as right would make any server fast.
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


def right_among_notes(requests):
    note = b'{"jsonrpc":"2.0","method":"chat.text","params":{"text":"a"}}\n'
    return b"".join(note + right([r]) for r in requests)


def by_connection(requests):
    """Every connection says its own number; there is but one here."""
    is_good = all(r["params"]["n"] == "c-0" for r in requests)
    return right(requests) if is_good else error_answer(requests)


# gob: a header with the number, then a body; the method is B.B and numbers have three bytes.

GOB_FORM = "B.B 03ff8100 03ff8400"


def gob_message(payload):
    return bytes([len(payload)]) + payload


def gob_answer(number, error=b"", body=b"\xff\x84\x01\x02\x00"):
    said = bytes([1, len(error)]) + error if error else b""
    return (gob_message(b"\xff\x82\x01\x03B.B\x01\xfd" + number.to_bytes(3, "big") + said + b"\0") +
            gob_message(body))


def right_gob(requests):
    return b"".join(gob_answer(r["id"]) for r in requests[::-1])


def right_gob_with_types(requests):
    return b"".join(b"\x03\xff\x81\x00" + gob_answer(r["id"]) + b"\x03\xff\x83\x00" for r in requests)


def gob_error(requests):
    return b"".join(gob_answer(r["id"], error=b"alas") for r in requests)


def gob_empty(requests):
    return b"".join(gob_answer(r["id"], body=b"\xff\x84\x00") for r in requests)


def gob_other_number(requests):
    return b"".join(gob_answer(r["id"] + 1000) for r in requests)


def gob_number_twice(requests):
    return b"".join(gob_answer(requests[0]["id"]) for _ in requests)


def gob_one_too_many(requests):
    return right_gob(requests) + right_gob(requests[:1])


def gob_without_bodies(requests):
    return b"".join(gob_answer(r["id"])[:-6] for r in requests)


ADD = ["--request", '{"jsonrpc":"2.0","params":{"content":"$TEXT"},"id":$ID}']
ASK = ["--made", "1000,10,100", "--request",
       '{"jsonrpc":"2.0","params":{"query":"$QUESTION"},"id":$ID}']
NUMBERED = ["--request", '{"jsonrpc":"2.0","params":{"n":"c-$CONNECTION"},"id":$ID}']
NOTES = ["--notifications"]
HTTP = ["--framing", "http"]
GOB = ["--framing", "gob", "--request", GOB_FORM]
LENGTH = ["--framing", "length"]
FIXED = ["--answers", "fixed"]
LARGE = ["--payload", "10k"]

HONEST = [(right, []), (right_in_any_order, []), (right_version_1, []), (right_lengths, LENGTH),
          (right_http, HTTP), (constant, FIXED), (right, LARGE), (right_lengths, LENGTH + LARGE),
          (right_http, HTTP + LARGE), (never_the_same, ADD), (about_something, ASK),
          (by_connection, NUMBERED), (right_among_notes, NOTES), (right_gob, GOB),
          (right_gob_with_types, GOB)]
LIARS = [(wrong_id, []), (same_id_twice, []), (text_id, []), (id_only_inside_result, []),
         (error_answer, []), (error_beside_result, []), (null_result, []), (one_too_many, []),
         (one_too_few, []), (cut_short, []), (not_json, []), (hang_up, []), (http_503, HTTP),
         (http_out_of_order, HTTP), (changing, FIXED), (constant, []), (right, LENGTH),
         (right_among_notes, []), (gob_error, GOB), (gob_empty, GOB), (gob_other_number, GOB),
         (gob_number_twice, GOB), (gob_one_too_many, GOB), (gob_without_bodies, GOB), (right, GOB),
         (never_the_same, ADD)]  # the second time it has seen them all

# Streams: each takes one request and gives the lines of its answer.

TOKENS = 6


def token(n, micros=0):
    return f" {n:04}:{micros:010x}"


def note(text, offset):
    return json.dumps({"jsonrpc": "2.0", "method": "chat.text",
                       "params": {"request_id": "1", "offset": offset, "text": text}})


def told(texts, request, content=None):
    """Notifications with these texts, then the answer with all of them, or with the content."""
    lines = [note(text, len("".join(texts[:i]))) for i, text in enumerate(texts)]
    whole = "".join(texts) if content is None else content
    lines.append(json.dumps({"jsonrpc": "2.0", "result": {"content": whole}, "id": request["id"]}))
    return "".join(line + "\n" for line in lines).encode()


def stream_right(request):
    return told([token(i) for i in range(TOKENS)], request)


def stream_in_uneven_pieces(request):
    whole = "".join(token(i) for i in range(TOKENS))
    return told([whole[:5], whole[5:40], whole[40:]], request)


def stream_of_other_kinds_too(request):
    return b'{"jsonrpc":"2.0","method":"chat.state","params":{}}\n' + stream_right(request)


def stream_with_the_end_in_the_answer(request):
    whole = "".join(token(i) for i in range(TOKENS))
    return told([token(i) for i in range(TOKENS - 1)], request, whole)


def stream_without_one(request):
    return told([token(i) for i in range(TOKENS) if i != 3], request)


def stream_twice_the_same(request):
    return told([token(i) for i in [0, 1, 1, 2, 3, 4]], request)


def stream_too_short(request):
    return told([token(i) for i in range(TOKENS - 1)], request)


def stream_too_long(request):
    return told([token(i) for i in range(TOKENS + 1)], request)


def stream_only_in_the_answer(request):
    return told([], request, "".join(token(i) for i in range(TOKENS)))


def stream_answer_without_it(request):
    return told([token(i) for i in range(TOKENS)], request, "")


def stream_of_something_else(request):
    return told(["x" * 16 for _ in range(TOKENS)], request)


def stream_from_elsewhere(request):
    return stream_right(request).replace(b'"offset": 16', b'"offset": 17')


def stream_that_fails(request):
    return stream_right(request).replace(b'"result"', b'"error"')


def stream_that_ends(_request):
    return (note(token(0), 0) + "\n").encode()


STREAMS = [(stream_right, 0), (stream_in_uneven_pieces, 0), (stream_of_other_kinds_too, 0),
           (stream_with_the_end_in_the_answer, 0),
           (stream_without_one, 1), (stream_twice_the_same, 1), (stream_too_short, 1),
           (stream_too_long, 1), (stream_only_in_the_answer, 1), (stream_answer_without_it, 1),
           (stream_of_something_else, 1), (stream_from_elsewhere, 1), (stream_that_fails, 1),
           (stream_that_ends, 1)]
STREAM_ARGS = ["--tokens", str(TOKENS), "--timeout-ms", "1000", "--request",
               '{"jsonrpc":"2.0","method":"chat.stream","params":{},"id":$ID}']


# Who listens: two subscribers and a publisher. Each takes the numbers of the publisher's
# requests and gives what a subscriber hears.

HEARD = 20


def heard(*numbers):
    return b"".join(b'{"jsonrpc":"2.0","method":"event","params":{"prompt":"event-%d"}}\n' % n
                    for n in numbers)


def all_heard(numbers):
    return heard(*numbers)


def all_heard_in_another_order(numbers):
    return heard(*numbers[::-1])


def one_not_heard(numbers):
    return heard(*numbers[1:])


def one_heard_twice(numbers):
    return heard(numbers[0], *numbers)


def one_heard_of_nothing(numbers):
    return heard(999999, *numbers)


def something_else_heard(numbers):
    return heard(*numbers[:3]) + b'{"jsonrpc":"2.0","method":"event.gone","params":{"count":1}}\n'


def heard_with_an_error(numbers):
    return heard(*numbers[:3]) + b'{"jsonrpc":"2.0","error":{"code":-32002},"id":null}\n'


LISTENERS = [(all_heard, 0), (all_heard_in_another_order, 0), (one_not_heard, 1),
             (one_heard_twice, 1), (one_heard_of_nothing, 1), (something_else_heard, 1),
             (heard_with_an_error, 1)]
FANOUT_ARGS = ["--subscribe", '{"jsonrpc":"2.0","method":"ping","id":$ID}', "--request",
               '{"jsonrpc":"2.0","prompt":"event-$ID","id":$ID}', "--events", str(HEARD),
               "--inflight", str(HEARD), "--timeout-ms", "500"]


def serve_listeners(listener, behave, is_uneven):
    """Two who hear the same, unless it is uneven: then the second hears it from behind."""
    subscribers = [listener.accept()[0] for _ in range(2)]
    publisher, _ = listener.accept()
    with publisher, subscribers[0], subscribers[1]:
        for s in subscribers:
            s.recv(1 << 16)
            s.sendall(b'{"jsonrpc":"2.0","result":{},"id":1}\n')
        data, requests = b"", []
        while len(requests) < HEARD:
            found, data = take_requests(data + publisher.recv(1 << 16))
            requests += found
        numbers = [r["id"] for r in requests]
        publisher.sendall(right(requests))
        subscribers[0].sendall(behave(numbers))
        subscribers[1].sendall(behave(numbers[::-1] if is_uneven else numbers))
        publisher.recv(1)


def try_listeners(folder, behave, is_uneven, fanout):
    path = os.path.join(folder, "sock")

    def serve_quietly():
        try:
            serve_listeners(listener, behave, is_uneven)
        except OSError:
            pass  # it saw enough and left

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        threading.Thread(target=serve_quietly, daemon=True).start()
        done = subprocess.run([fanout, "--target", "unix:" + path, "--subscribers", "2",
                               *FANOUT_ARGS], capture_output=True, text=True)
    os.unlink(path)
    return done


# Who listens to an agent: each takes the numbers of all events and gives what the second of two
# subscribers hears; the first hears them all.

SAID = 20


def said(*numbers):
    return b"".join(b'{"result":{"event":{"data":{"content":"said%s"}}}}\n' % token(n).encode()
                    for n in numbers)


def said_to_all(numbers):
    return said(*numbers)


def said_among_others(numbers):
    return said(*numbers[:3]) + b'{"result":{"type":"heartbeat"}}\n' + said(*numbers[3:])


def said_but_one(numbers):
    return said(*numbers[:3], *numbers[4:])


def said_but_the_last(numbers):
    return said(*numbers[:-1])


def said_twice(numbers):
    return said(numbers[0], *numbers)


def said_once_more(numbers):
    return said(*numbers, len(numbers))


def said_backwards(numbers):
    return said(*numbers[::-1])


SAYINGS = [(said_to_all, 0), (said_among_others, 0), (said_but_one, 1), (said_but_the_last, 1),
           (said_twice, 1), (said_once_more, 1), (said_backwards, 1)]


def speak(listener, leave, behave):
    subscribers = [listener.accept()[0] for _ in range(2)]
    with subscribers[0], subscribers[1], socket.socket(socket.AF_UNIX) as speaker:
        for s in subscribers:
            s.recv(1 << 16)
            s.sendall(b'{"jsonrpc":"2.0","result":{},"id":1}\n')
        speaker.connect(leave)
        speaker.recv(SAID)
        subscribers[1].sendall(behave(range(SAID)))
        subscribers[0].sendall(said(*range(SAID)))
        speaker.recv(1)


def try_sayings(folder, behave, listen):
    path, leave = os.path.join(folder, "sock"), os.path.join(folder, "leave")

    def speak_quietly():
        try:
            speak(listener, leave, behave)
        except OSError:
            pass  # it saw enough and left

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        threading.Thread(target=speak_quietly, daemon=True).start()
        done = subprocess.run([listen, "--target", "unix:" + path, "--leave", "unix:" + leave,
                               "--subscribers", "2", "--events", str(SAID), "--window", str(SAID),
                               "--timeout-ms", "500"], capture_output=True, text=True)
    os.unlink(path)
    return done


def take_requests(data):
    """Whole requests of any framing, and what is left: each is one JSON object."""
    found, rest = [], data
    for match in re.finditer(rb'\{"jsonrpc":.*?"id":\d+\}', data, re.S):
        found.append(json.loads(match[0]))
        rest = data[match.end():]
    for match in re.finditer(rb"\x01\x03B\.B\x01\xfd(...)\x00\x03\xff\x84\x00", data, re.S):
        found.append({"id": int.from_bytes(match[1], "big")})
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


def try_server(folder, behave, inflight, argv):
    """The exit status and what was said."""
    path = os.path.join(folder, "sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        threading.Thread(target=serve, args=(listener, behave, inflight), daemon=True).start()
        done = subprocess.run([argv[0], "--target", "unix:" + path, *argv[1:]],
                              capture_output=True, text=True, errors="replace")
        listener.shutdown(socket.SHUT_RDWR)
    os.unlink(path)
    return done


def is_noticed(name, wanted, done):
    is_ok = done.returncode == wanted and bool(done.stdout) == (wanted == 0)
    print("ok  " if is_ok else "FAIL", name, "->", done.returncode, done.stderr.strip()[:100])
    return is_ok


def main():
    load, stream, fanout, listen = sys.argv[1:5]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for behave, args, wanted in [*((b, a, 0) for b, a in HONEST),
                                     *((b, a, 1) for b, a in LIARS)]:
            done = try_server(folder, behave, 4, [load, "--inflight", "4", "--requests", "40",
                                                  "--warmup", "0", "--timeout-ms", "1000", *args])
            failures += not is_noticed(" ".join([behave.__name__, *args]), wanted, done)
        for behave, wanted in STREAMS:
            done = try_server(folder, lambda requests, b=behave: b(requests[0]), 1,
                              [stream, *STREAM_ARGS])
            failures += not is_noticed(behave.__name__, wanted, done)
        for behave, wanted in LISTENERS:
            done = try_listeners(folder, behave, False, fanout)
            failures += not is_noticed(behave.__name__, wanted, done)
        done = try_listeners(folder, all_heard, True, fanout)
        failures += not is_noticed("heard_in_two_orders", 1, done)
        for behave, wanted in SAYINGS:
            failures += not is_noticed(behave.__name__, wanted, try_sayings(folder, behave, listen))
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
