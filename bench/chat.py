"""The rows of conversations: many streams at once through koined, beside a bare relay and
one in asyncio; how long a cancelled turn takes to answer, beside a ping; and durable turns
with the recall agent, beside what a sync costs here.

The provider is our own (provider.c): it streams as OpenAI-compatible servers do, faster
than anything that stands behind it, or at a pace.
"""

import concurrent.futures
import os
import sys

from part import Part
from servers import HERE, Server

STREAMS = 200
PACE_US = 20000  # fifty tokens a second in each stream
CANCEL_PACE_US = 2000
CANCELS = 200
TURN_SHAPES = [1, 64]
RELAYS = ["floor", "koined", "asyncio"]  # those that pass on; "straight" is the provider itself

STREAM = ('{"jsonrpc":"2.0","method":"chat.stream","params":{"content":"Count.",'
          '"conversation":"%s-$CONNECTION"},"id":$ID}')
STRAIGHT = ('{"model":"bench","stream":true,"stream_options":{"include_usage":true},'
            '"messages":[{"role":"user","content":"Count."}]}')
TURN = ('{"jsonrpc":"2.0","method":"chat.stream","params":{"content":"$TEXT",'
        '"conversation":"%s-$CONNECTION-$SERIES"},"id":$ID}')


class ChatBench(Part):
    name = "chat"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        quick = self.arguments.quick
        self.fast_tokens = 300 if quick else 1000
        self.paced_tokens = 100 if quick else 250
        self.seconds = 0.5 if quick else 1.0

    def steps(self):
        return self.run_fast, self.run_paced, self.run_cancels, self.run_turns

    # ---- servers ----

    def start_provider(self, tokens, pace_us):
        address = "tcp:127.0.0.1:0"
        argv = [os.path.join(self.programs, "provider"), "--listen", address, "--tokens",
                str(tokens), "--pace-us", str(pace_us)]
        server = Server("straight", argv, {"stream": (address, [])})
        return self.start(server, self.sockets(f"provider-{pace_us}-{tokens}"))

    def start_relay(self, column, name, argv):
        folder = self.sockets(name)
        path = folder + "/sock"
        return self.start(Server(column, [*argv[:-1], path, argv[-1]],
                                 {"stream": ("unix:" + path, [])}), folder)

    def start_agent(self, name, provider):
        """koined with the provider as its agent."""
        where = provider.channels["stream"][0].removeprefix("tcp:")
        settings = ["kind=openai", f"url=http://{where}", "model=bench"]
        pairs = [x for s in settings for x in ("--set", "agent.bench." + s)]
        server = self.start_koined(name, ("koine",), "--agent", "bench", *pairs)
        server.channels["stream"] = server.channels["koine"]
        return server

    def start_relays(self, provider, name):
        """All that pass on what this provider streams, one of each, in the table's order."""
        where = provider.channels["stream"][0]
        script = os.path.join(HERE, "peers", "relay_asyncio.py")
        return [self.start_relay("floor", "floor" + name,
                                 [os.path.join(self.programs, "relay"), where]),
                self.start_agent("koined" + name, provider),
                self.start_relay("asyncio", "asyncio" + name,
                                 [sys.executable, script, where.removeprefix("tcp:")])]

    # ---- streams ----

    def stream(self, server, conversation, streams, tokens):
        is_straight = server.column == "straight"
        form = "events" if is_straight else "koine"
        return self.measure(
            "stream", "--target", server.channels["stream"][0], "--form", form, "--streams",
            streams, "--tokens", tokens, "--timeout-ms", 30000, "--pid", server.process.pid,
            "--request", STRAIGHT if is_straight else STREAM % conversation)

    def warm_up(self, servers, tokens):
        """One stream through each, all at once, so that what is made but once is there."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for done in [pool.submit(self.stream, s, "warm", 1, tokens) for s in servers]:
                done.result()

    def stream_through(self, servers, row, round_, tokens):
        for server in servers if round_ % 2 == 0 else servers[::-1]:
            found = self.stream(server, f"r{round_}", STREAMS, tokens)
            self.record(row, server.column, round_, **found)

    def run_fast(self):
        print("chat: streams at full speed", file=sys.stderr)
        provider = self.start_provider(self.fast_tokens, 0)
        servers = [provider, *self.start_relays(provider, "-fast")]
        self.warm_up(servers, self.fast_tokens)
        for round_ in range(self.rounds):
            self.stream_through(servers, "stream fast", round_, self.fast_tokens)

    def run_paced(self):
        """On servers of their own: memory once used and freed would hide the cost."""
        print("chat: streams at a model's pace", file=sys.stderr)
        provider = self.start_provider(self.paced_tokens, PACE_US)
        for round_ in range(self.rounds):
            servers = self.start_relays(provider, f"-paced{round_}")
            self.warm_up([provider, *servers], self.paced_tokens)
            self.stream_through([provider, *servers], "stream paced", round_, self.paced_tokens)
            for server in servers:
                self.bench.stop(server)

    # ---- cancelling ----

    def run_cancels(self):
        print("chat: cancels", file=sys.stderr)
        provider = self.start_provider(1000000, CANCEL_PACE_US)
        server = self.start_agent("cancels", provider)
        for round_ in range(self.rounds):
            self.record("cancel", "disk", round_, **self.measure_sync())
            found = self.measure("cancel", server.channels["koine"][0], CANCELS, f"r{round_}")
            self.record("cancel", "koined", round_, **found)

    # ---- turns ----

    def run_turns(self):
        """Conversations of sixteen turns, one after another: what recall does grows with them."""
        print("chat: turns with recall", file=sys.stderr)
        server = self.start_koined("turns", ("koine",), "--agent", "recall")
        made_from = 0
        for round_ in range(self.rounds):
            for n in TURN_SHAPES:
                self.record(f"turn {n}", "disk", round_, **self.measure_sync())
                found = self.measure(
                    "load", "--target", server.channels["koine"][0], "--notifications",
                    "--connections", n, "--seconds", self.seconds, "--warmup", 0.2,
                    "--timeout-ms", 60000, "--pid", server.process.pid, "--made-from", made_from,
                    "--request", TURN % f"r{round_}-{n}")
                self.record(f"turn {n}", "koined", round_, **found)
                made_from += 10000000
