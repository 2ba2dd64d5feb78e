"""
The model that agents talk to in these tests: provider.py's server, which plays scripts in the four
languages that they speak: Anthropic's messages, OpenAI's responses and chat completions, and Gemini's.

A script has a name and is a list of steps: call a tool with an input, or say a text.

    model.scripts["keep"] = [Call("Bash", command="true"), "Done."]

It is played to whoever was prompted with "play keep". Which step is next is read from the
history that the agent sends: as many as tools have answered since that prompt. So nothing is counted here,
and a request that is repeated gets the same answer. What agents ask besides, for a title or a
summary, offers no tools, and is answered with a text.

What the model was told is in `model.told("keep")`: what came of each call.
"""
import json
import re

from provider import ANTHROPIC, OPENAI, Provider, Reply, event, plain

PROMPT = re.compile(r"\bplay ([a-z][a-z0-9-]*)")
LAST_WORD = "That was the script."
ASIDE = "Scripted"


class Call:
    def __init__(self, tool, **input):
        self.tool = tool
        self.input = input


class Written(Call):
    """For a tool whose input is a text of its own kind, no JSON: OpenAI's custom tools."""

    def __init__(self, tool, text):
        super().__init__(tool)
        self.text = text


def texts(content):
    """The text of a content, whichever way it is written."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    return "\n".join(part if isinstance(part, str) else
                     part["text"] if isinstance(part.get("text"), str) else
                     texts(part.get("content") or []) for part in content or [])


# ---- the languages ----
#
# Each says whether a request is its own, whether the request offers tools, what its history is, in order,
# ("user", text) and ("result", text), and how a step is answered.


class Messages:
    """Anthropic's."""

    @staticmethod
    def is_asked(path):
        return path.endswith("/messages")

    @staticmethod
    def offers_tools(body):
        return bool(body.get("tools"))

    @staticmethod
    def history(body):
        for message in body["messages"]:
            content = message["content"]
            for block in [content] if isinstance(content, str) else content:
                if isinstance(block, dict) and block["type"] == "tool_result":
                    yield "result", texts(block.get("content"))
                elif message["role"] == "user":
                    yield "user", texts([block])

    @staticmethod
    def say(text):
        return ANTHROPIC.answer(text)

    @staticmethod
    def call(number, call):
        return Reply(ANTHROPIC.opening, ANTHROPIC.named("content_block_stop", index=0),
                     *ANTHROPIC.tool_call(0, "toolu_%d" % number, call.tool, json.dumps(call.input)),
                     ANTHROPIC.named("message_delta", usage={"output_tokens": 1}, delta={
                         "stop_reason": "tool_use", "stop_sequence": None}),
                     ANTHROPIC.done)


class Completions:
    """OpenAI's chat completions."""

    @staticmethod
    def is_asked(path):
        return path.endswith("/chat/completions")

    @staticmethod
    def offers_tools(body):
        return bool(body.get("tools"))

    @staticmethod
    def history(body):
        for message in body["messages"]:
            if message["role"] in ("user", "tool"):
                yield "result" if message["role"] == "tool" else "user", texts(message["content"])

    @staticmethod
    def say(text):
        return OPENAI.answer(text, input=10, output=1)

    @staticmethod
    def call(number, call):
        return Reply(OPENAI.chunk({"role": "assistant", "content": ""}),
                     *OPENAI.tool_call(0, "call_%d" % number, call.tool, json.dumps(call.input)),
                     OPENAI.finish(10, 1, "tools"), OPENAI.done)


class Responses:
    """OpenAI's responses. A tool of a namespace is written SPACE/NAME here."""

    @staticmethod
    def is_asked(path):
        return path.endswith("/responses")

    @staticmethod
    def offers_tools(body):
        return bool(body.get("tools")) or any(item["type"] == "additional_tools"
                                              for item in body["input"])

    @staticmethod
    def history(body):
        for item in body["input"]:
            if item["type"] == "message" and item["role"] == "user":
                yield "user", texts(item["content"])
            elif item["type"] in ("function_call_output", "custom_tool_call_output"):
                yield "result", texts(item["output"])

    @staticmethod
    def of(item):
        def named(name, **data):
            return event(dict({"type": name}, **data), name)

        usage = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
        return Reply(named("response.created", response={"id": "resp_1"}),
                     named("response.output_item.added", output_index=0, item=item),
                     named("response.output_item.done", output_index=0, item=item),
                     named("response.completed", response={"id": "resp_1", "usage": usage}))

    def say(self, text):
        return self.of({"type": "message", "role": "assistant", "id": "msg_1",
                        "content": [{"type": "output_text", "text": text}]})

    def call(self, number, call):
        space, _, name = call.tool.rpartition("/")
        item = {"id": "fc_%d" % number, "call_id": "call_%d" % number, "name": name}
        if isinstance(call, Written):
            item.update(type="custom_tool_call", input=call.text)
        else:
            item.update(type="function_call", arguments=json.dumps(call.input))
        return self.of(dict(item, namespace=space) if space else item)


class Contents:
    """Gemini's."""

    @staticmethod
    def is_asked(path):
        return path.endswith((":streamGenerateContent", ":generateContent"))

    @staticmethod
    def offers_tools(body):
        return bool(body.get("tools"))

    @staticmethod
    def history(body):
        for content in body["contents"]:
            for part in content["parts"]:
                if "functionResponse" in part:
                    yield "result", json.dumps(part["functionResponse"]["response"])
                elif content["role"] == "user" and "text" in part:
                    yield "user", part["text"]

    @staticmethod
    def of(part):
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11}
        return Reply(event({"candidates": [{"index": 0, "finishReason": "STOP", "content": {
            "role": "model", "parts": [part]}}], "usageMetadata": usage}))

    def say(self, text):
        return self.of({"text": text})

    def call(self, number, call):
        return self.of({"functionCall": {"id": "call_%d" % number, "name": call.tool,
                                         "args": call.input}})


LANGUAGES = (Messages(), Completions(), Responses(), Contents())


# ---- the server ----


class Model(Provider):
    """For a `with`."""

    def __init__(self, **scripts):
        super().__init__()
        self.scripts = scripts
        self.results = {}
        self.ended = False  # the last step of a script was played

    def told(self, name):
        """What came of the calls of a script, as far as it was played."""
        with self.lock:
            return list(self.results.get(name, []))

    def choose(self, asked):
        path = asked.path.partition("?")[0]
        with self.arrival:
            self.asked.append(asked)
            self.arrival.notify_all()
            if asked.method == "HEAD":
                return Reply(framing="length")
            for language in LANGUAGES:
                if asked.method == "POST" and language.is_asked(path):
                    return self.play_to(language, asked.json)
        if path.endswith(("/count_tokens", ":countTokens")):
            return plain(200, {"input_tokens": 10, "totalTokens": 10})
        if path.endswith("/models"):
            return plain(200, {"object": "list", "data": [{"id": "scripted"}], "models": []})
        return plain(404, {"error": {"message": "there is no %s here" % path}})

    def play_to(self, language, body):
        name, results = None, []
        for kind, text in language.history(body):
            prompted = PROMPT.findall(text) if kind == "user" else []
            if prompted:
                name, results = prompted[-1], []
            elif kind == "result":
                results.append(text)
        if name not in self.scripts or not language.offers_tools(body):
            return language.say(ASIDE)
        if len(results) >= len(self.results.get(name, [])):
            self.results[name] = results
        steps = self.scripts[name][len(results):]
        step = steps[0] if steps else LAST_WORD
        self.ended = len(steps) <= 1
        return language.say(step) if isinstance(step, str) else language.call(len(results), step)
