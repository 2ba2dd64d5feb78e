// OpenAI's own package against the gateway: openai_client.mjs FOLDER URL TOKEN
// FOLDER has the package in its node_modules. Prints one JSON line with what it got;
// test_gateway.py judges it.
import { createRequire } from "node:module";

const [folder, url, token] = process.argv.slice(2);
const OpenAI = createRequire(`${folder}/`)("openai");
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 });
const user = (content) => ({ role: "user", content });
const weather = {
	type: "function",
	function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
};

async function failure(promise) {
	try {
		await promise;
	} catch (error) {
		return { name: error.constructor.name, status: error.status, message: error.message, param: error.param };
	}
	return null;
}

async function collect(stream) {
	const out = { pieces: [], finish: null, usage: null };
	for await (const chunk of stream) {
		const choice = chunk.choices[0];
		if (choice?.delta.content) out.pieces.push(choice.delta.content);
		if (choice?.finish_reason) out.finish = choice.finish_reason;
		if (chunk.usage) out.usage = chunk.usage;
	}
	return out;
}

// Its own runner: asks, calls the function, sends the result, asks on.
async function runTools() {
	const calls = [];
	const runner = client.beta.chat.completions.runTools({
		model: "model",
		messages: [user("How is it in Oslo?")],
		tools: [{
			type: "function",
			function: {
				...weather.function,
				parse: JSON.parse,
				function: (args) => { calls.push(args); return "rain"; },
			},
		}],
	});
	return { calls, answer: await runner.finalContent() };
}

const out = {};
out.models = (await client.models.list()).data.map((m) => m.id);
out.model = await client.models.retrieve("model");
out.whole = await client.chat.completions.create({ model: "model", messages: [user("one")] });
out.stream = await collect(await client.chat.completions.create({
	model: "model", messages: [user("two")], stream: true, stream_options: { include_usage: true },
}));
const helper = client.beta.chat.completions.stream({
	model: "model", messages: [user("three")], tools: [weather],
});
out.helper = (await helper.finalChatCompletion()).choices[0];
out.runner = await runTools();
out.refused = await failure(client.chat.completions.create({ model: "model", messages: [] }));
out.stranger = await failure(new OpenAI({ baseURL: `${url}/v1`, apiKey: "wrong", maxRetries: 0 }).models.list());
console.log(JSON.stringify(out));
