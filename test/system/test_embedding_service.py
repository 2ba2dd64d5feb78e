#!/usr/bin/env python3
"""The embedding listener: raw HTTP, koine-hash, a model behind it, and bad input."""
import base64
import json
import math
import socket
import struct

from embedding_server import Model, embed
from harness import Client, Daemon, Folder, check, main, post, run_koined, same, wait_until

ON = ("--set", "listen.embedding=on")
JSON = "Content-Type: application/json\r\n"


def daemon(*args, **opts):
    return Daemon(*ON, *args, **opts)


def with_model(model, **opts):
    return daemon("--set", "memory.embedding_url=" + model.url,
                  "--set", "memory.embedding_model=test", **opts)


def connect(d):
    d.clients.append(Client(d.address("http", "embedding")))
    return d.clients[-1]


def ask(c, path, params=None, method="POST", headers=JSON, **opts):
    """Status and what the JSON of the body says."""
    body = b"" if params is None else params if isinstance(params, bytes) \
        else json.dumps(params).encode()
    r = post(c, body, path, method=method, headers=headers, **opts)
    same(r.header("content-type"), "application/json; charset=utf-8", "content type")
    return r.status, json.loads(r.body) if r.body else None


def get(c, path, **opts):
    return ask(c, path, method="GET", headers="", **opts)


def answer(c, path, params):
    status, found = ask(c, path, params)
    same(status, 200, "status of %s: %r" % (path, found))
    return found


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b))


def close_to(got, want):
    same(len(got), len(want), "numbers")
    check(all(abs(x - y) < 1e-6 for x, y in zip(got, want)), "other numbers: %.200r", got)


def found_free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_a_url_that_is_our_own_is_told_and_not_used():
    for host in ("127.0.0.1", "localhost", "LOCALHOST.", "0.0.0.0", "127.1", "[::ffff:127.0.0.1]"):
        port = found_free_port()
        args = ("--listen", "embedding=http:127.0.0.1:%d" % port, "--set",
                "memory.embedding_url=http://%s:%d/v1" % (host, port),
                "--set", "memory.embedding_model=m")
        with Folder() as f:
            told = run_koined(*args, "--root", f.path, "--check").stdout.decode()
            check("ignoring embedding_url: http:127.0.0.1:%d is koined's own listener" % port
                  in told, "check says %r", told)
            sock = "koine=unix:" + f("koine.sock")
            with Daemon(*args, "--listen", sock, announced=["ignoring embedding_url"]) as d:
                c = d.connect()
                c.call("memory.add", {"content": "Anna drinks tea"})
                same([h["content"] for h in c.call("memory.search", {"query": "tea"})],
                     ["Anna drinks tea"])
                same(c.call("memory.stats")["embedding"], "off")
                same(answer(connect(d), "/embed", {"text": "tea"})["model"], "koine-hash")


def test_another_port_or_another_address_is_not_our_own():
    port = found_free_port()
    for url in ("http://127.0.0.1:%d/v1" % (port % 60000 + 1), "http://127.0.0.2:%d/v1" % port,
                "http://[::1]:%d/v1" % port, "http://models.example:%d/v1" % port,
                "https://127.0.0.1:%d/v1" % port, "http://localhost@10.0.0.1:%d" % port):
        with Folder() as f:
            told = run_koined("--listen", "embedding=http:127.0.0.1:%d" % port, "--set",
                              "memory.embedding_url=" + url, "--set", "memory.embedding_model=m",
                              "--root", f.path, "--check").stdout.decode()
        check("is our own listener" not in told, "%s: %r", url, told)


def test_off_unless_named():
    with Daemon() as d:
        check("embedding" not in [name for name, _ in d.addresses], "%r", d.addresses)
    with daemon() as d:
        check(not d.address("http", "embedding").endswith(":50001"), "not a free port")
    out = run_koined("--check", "--listen", "embedding=http:127.0.0.1:0").stdout.decode()
    check("embedding = http:127.0.0.1:0" in out, "%s", out)
    out = run_koined("--check", "--listen", "embedding=on").stdout.decode()
    check("embedding = http:127.0.0.1:50001" in out, "%s", out)


def test_says_what_it_is():
    with daemon() as d:
        c = connect(d)
        status, health = get(c, "/health")
        same((status, list(health)), (200, ["status", "serverPort", "llmServer", "model",
                                            "timestamp"]))
        same((health["status"], health["model"], health["llmServer"]), ("ok", "koine-hash", ""))
        same("http:127.0.0.1:%d" % health["serverPort"], d.address("http", "embedding"))
        status, info = get(c, "/info")
        same((status, info["model"], info["dim"], info["builtin"]), (200, "koine-hash", 256, True))
        check("not meaning" in info["description"], "%r", info)
        same((info["serverPort"], info["llmServer"]), (health["serverPort"], ""))
        check("/embed" in info["endpoints"], "%r", info)
        models = get(c, "/v1/models")[1]
        same((models["object"], [m["id"] for m in models["data"]]), ("list", ["koine-hash"]))
        r = post(c, b"", "/health", method="HEAD")
        same((r.status, r.body), (200, b""), "HEAD")
        check(int(r.header("content-length")) > 50, "length of a HEAD")


def test_built_in_vectors():
    with daemon() as d:
        c = connect(d)
        one = answer(c, "/embed", {"text": "the cat sat on the mat"})
        same((list(one), one["dim"], one["model"]),
             (["embedding", "dim", "model"], 256, "koine-hash"))
        close_to([math.sqrt(cosine(one["embedding"], one["embedding"]))], [1])
        texts = ["the cat sat on the mat", "a cat sits on mats", "interest rates rose"]
        batch = answer(c, "/embed-batch", {"texts": texts})
        same((list(batch), batch["count"], batch["dim"]), (["embeddings", "count", "dim"], 3, 256))
        same(batch["embeddings"][0], one["embedding"], "the same text")
        first, near, far = batch["embeddings"]
        check(cosine(first, near) > cosine(first, far) + 0.2, "not nearer")


def test_openai_shape():
    with daemon() as d:
        c = connect(d)
        one = answer(c, "/v1/embeddings", {"input": "hello world"})
        same((one["object"], one["model"], len(one["data"])), ("list", "koine-hash", 1))
        same(one["usage"], {"prompt_tokens": 3, "total_tokens": 3})
        entry = one["data"][0]
        same((entry["object"], entry["index"]), ("embedding", 0))
        both = answer(c, "/v1/embeddings", {
            "input": ["hello world", "other"], "model": "koine-hash", "user": "u",
            "encoding_format": "base64", "dimensions": 256})["data"]
        same([e["index"] for e in both], [0, 1])
        raw = base64.b64decode(both[0]["embedding"], validate=True)
        same(list(struct.unpack("<256f", raw)),
             [struct.unpack("<f", struct.pack("<f", x))[0] for x in entry["embedding"]])


BAD = (
    ("/embed", {}, "text is required"),
    ("/embed", {"text": ""}, "text is required"),
    ("/embed", {"text": None}, "text is required"),
    ("/embed", {"text": 5}, "text must be a string, not number"),
    ("/embed", {"text": "x" * 32769}, "text is longer than 32768 bytes"),
    ("/embed", b"", "text is required"),
    ("/embed", b"[]", "the body must be a JSON object, not array"),
    ("/embed-batch", {}, "texts is required"),
    ("/embed-batch", {"texts": []}, "texts is required"),
    ("/embed-batch", {"texts": "x"}, "texts must be an array, not string"),
    ("/embed-batch", {"texts": ["x", None]}, "texts must contain strings, not null"),
    ("/embed-batch", {"texts": ["x", ""]}, "empty text in batch"),
    ("/embed-batch", {"texts": ["x", " \t"]}, "empty text in batch"),
    ("/embed-batch", {"texts": ["x"] * 2049}, "texts has more than 2048 strings"),
)

BAD_OPENAI = (
    ({}, 400, "input is required", "input"),
    ({"input": 5}, 400, "input must be a string or a list of strings, not number", "input"),
    ({"input": [[1, 2]]}, 400, "input must contain strings, not array", "input"),
    ({"input": ""}, 400, "input is required", "input"),
    ({"input": ["x", ""]}, 400, "input has an empty string", "input"),
    ({"input": ["x" * 32769]}, 400, "input has a string of more than 32768 bytes", "input"),
    ({"input": "x", "encoding_format": "hex"}, 400, "encoding_format must be float or base64, not 'hex'",
     "encoding_format"),
    ({"input": "x", "dimensions": 512}, 400, "dimensions must be 256, not 512", "dimensions"),
    ({"input": "x", "model": "other"}, 404,
     "model not found: 'other' (available: 'koine-hash')", "model"),
)


def test_bad_input_is_refused_by_name_and_the_connection_lives():
    with daemon() as d:
        c = connect(d)
        for path, params, message in BAD:
            same(ask(c, path, params), (400, {"error": message}), "%s %.60r" % (path, params))
        for params, status, message, field in BAD_OPENAI:
            same(ask(c, "/v1/embeddings", params), (status, {"error": {
                "message": message, "type": "invalid_request_error", "param": field,
                "code": "model_not_found" if status == 404 else None}}), "%r" % params)
        status, found = ask(c, "/embed", b"{")
        same(status, 400)
        check(found["error"].startswith("invalid JSON: "), "%r", found)
        same(ask(c, "/embed", {"text": "x"}, headers="Content-Type: text/plain\r\n"),
             (415, {"error": "Content-Type must be application/json"}))
        same(get(c, "/"), (404, {"error": "Not found"}))
        same(get(c, "/v1/nothing"), (404, {"error": {
            "message": "Not found", "type": "invalid_request_error", "param": None,
            "code": None}}))
        r = post(c, b"", "/embed", method="GET")
        same((r.status, r.header("allow")), (405, "POST"))
        same(get(c, "/health")[0], 200)
        c.send(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4194305\r\n\r\n")
        r = c.read_response()
        same((r.status, "error" in json.loads(r.body)), (413, True))


def test_strangers_are_turned_away():
    with daemon() as d:
        same(get(connect(d), "/health", host="example.org")[0], 403)
        same(ask(connect(d), "/health", method="GET",
                 headers="Origin: http://example.org\r\n")[0], 403)


def test_answers_come_in_order():
    with daemon() as d:
        c = connect(d)
        body = b'{"text":"one"}'
        c.send(b"".join(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                        b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" % (len(body), body)
                        for _ in range(20)))
        for _ in range(20):
            check("embedding" in json.loads(c.read_response().body), "no vector")
            check("status" in json.loads(c.read_response().body), "no health")


def test_a_model_makes_them():
    with Model(dim=8) as model, with_model(model) as d:
        c = connect(d)
        same(get(c, "/health")[1]["llmServer"], model.url)
        info = get(c, "/info")[1]
        same((info["model"], info["dim"], info["builtin"]), ("test", None, False))
        one = answer(c, "/embed", {"text": "the sedan"})
        same((one["dim"], one["model"]), (8, "test"))
        close_to(one["embedding"], embed("the sedan", 8))
        same(get(c, "/info")[1]["dim"], 8, "known now")
        texts = ["text %d" % i for i in range(150)]
        many = answer(c, "/v1/embeddings", {"input": texts, "model": "test"})
        for text, entry in zip(texts, many["data"]):
            close_to(entry["embedding"], embed(text, 8))
        same(model.models, {"test"})
        check(max(len(asked) for asked in model.asked) == 64, "batches")


def test_a_model_without_a_name_names_itself():
    with Model(dim=8) as model, daemon("--set", "memory.embedding_url=" + model.url) as d:
        c = connect(d)
        same(answer(c, "/embed", {"text": "x"})["model"], "test")
        same(answer(c, "/v1/embeddings", {"input": "x"})["model"], "test")


def test_a_model_that_fails_is_said_to():
    def fail(handler, texts):
        how = texts[0]
        if how == "late":
            model.send(handler, 503, b"")
        elif how == "refused":
            model.send(handler, 400, b"")
        elif how == "garbage":
            model.send(handler, 200, b'{"data":[]}')
        elif how == "uneven":
            model.send(handler, 200, json.dumps({"data": [
                {"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]}).encode())
        return True

    with Model(behave=fail) as model, with_model(model) as d:
        c = connect(d)
        same(ask(c, "/embed", {"text": "late"}),
             (503, {"error": "the embedding model is not available: the endpoint returned HTTP 503"}))
        same(ask(c, "/embed", {"text": "refused"}),
             (400, {"error": "the model rejected the input: the endpoint returned HTTP 400"}))
        same(ask(c, "/embed", {"text": "garbage"})[0], 503)
        same(ask(c, "/embed-batch", {"texts": ["uneven", "x"]})[0], 503)


def test_who_leaves_does_not_keep_the_model():
    with Model() as model:
        model.behave = model.hold
        with with_model(model) as d:
            clients = [connect(d) for _ in range(17)]
            body = b'{"text":"x"}'
            for c in clients[:16]:
                c.send(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                       % (len(body), body))
            for _ in range(16):
                check(model.waiting.acquire(timeout=20), "not asked")
            same(ask(clients[16], "/embed", {"text": "x"}),
                 (429, {"error": "too many requests are waiting for the embedding model (limit 16)"}))
            for c in clients[:16]:
                c.close()
            model.behave = lambda handler, texts: False
            wait_until(lambda: ask(clients[16], "/embed", {"text": "x"})[0] == 200, "room")


if __name__ == "__main__":
    main(globals())
