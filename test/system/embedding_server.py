"""
A model for tests: /v1/embeddings on loopback, whose vectors are made of words, with
synonyms that meet. It misbehaves as it is told. As a program (embedding_server.py ADDRESS) it is that of a
network of its own: it prints its URL, and ends with its input.
"""
import hashlib
import http.server
import json
import math
import re
import sys
import threading

# Each word stands for the first of its row.
SYNONYMS = [
    ("car", "limousine", "vehicle", "sedan"),
    ("doctor", "physician", "medic"),
    ("happy", "glad", "joyful"),
    ("house", "home", "dwelling"),
]
MEANING = {word: row[0] for row in SYNONYMS for word in row}
IGNORED = {"a", "an", "and", "i", "in", "is", "my", "of", "the", "to", "what", "where", "which"}


def embed(text, dim):
    """A direction for each meaning; the same on every run."""
    out = [0.001] * dim
    for word in re.findall(r"\w+", text.lower()):
        if word in IGNORED:
            continue
        digest = hashlib.sha256(MEANING.get(word, word).encode()).digest()
        for k in range(4):
            at = int.from_bytes(digest[k * 4:k * 4 + 4], "big")
            out[at % dim] += 1 if at >> 31 else -1
    length = math.sqrt(sum(x * x for x in out))
    return [x / length for x in out]


def embed_angle(text, dim):
    """Where a text says "at 60" it points that way, any other at 0; "nowhere" has no direction."""
    said = re.search(r"\bat (\d+)", text)
    angle = math.radians(int(said.group(1)) if said else 0)
    length = 0 if "nowhere" in text else 1
    return [length * math.cos(angle), length * math.sin(angle)] + [0] * (dim - 2)


class Model:
    """For a `with`. All that it was asked is in `asked`; `behave` says how it answers."""

    def __init__(self, dim=64, behave=None, embed=embed, address="127.0.0.1"):
        self.address = address
        self.dim = dim
        self.embed = embed
        self.behave = behave or (lambda handler, texts: False)
        self.asked = []
        self.headers = []
        self.models = set()
        self.lock = threading.Lock()
        self.open = threading.Event()  # for those who must wait
        self.waiting = threading.Semaphore(0)

    def __enter__(self):
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 20  # an answer in one piece
            disable_nagle_algorithm = True

            def log_message(self, *args):
                pass

            def do_POST(self):
                model.answer(self)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, request, client_address):
                pass  # clients that leave are no news

        self.server = Server((self.address, 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.open.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def url(self):
        return "http://%s:%d" % (self.address, self.server.server_port)

    def answer(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        texts = body["input"]
        with self.lock:
            self.asked.append(texts)
            self.headers.append(dict(handler.headers))
            self.models.add(body.get("model"))
        if self.behave(handler, texts):
            return
        self.send(handler, 200, json.dumps(self.vectors(texts)).encode())

    def vectors(self, texts):
        return {"object": "list", "model": "test",
                "data": [{"object": "embedding", "index": i, "embedding": self.embed(t, self.dim)}
                         for i, t in enumerate(texts)]}

    def send(self, handler, status, body, headers=()):
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)
        handler.wfile.flush()

    def all_asked(self):
        with self.lock:
            return [text for texts in self.asked for text in texts]

    def times_asked(self, text):
        return self.all_asked().count(text)

    def hold(self, handler, texts):
        """A way to behave: silent until `open` is set."""
        self.waiting.release()
        self.open.wait()
        handler.close_connection = True
        return True


if __name__ == "__main__":
    with Model(address=sys.argv[1]) as served:
        print(served.url, flush=True)
        sys.stdin.read()
