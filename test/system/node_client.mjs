// Node's fetch against the nexus dialect: node_client.mjs URL keep-alive|close
// Prints one JSON line with what it got; test_nexus_clients.py judges it.
import http from "node:http";

const [url, connection] = process.argv.slice(2);
let nextId = 0;

// fetch keeps its connections by itself; a header asks for the other way.
async function call(method, params) {
	const request = { jsonrpc: "2.0", method, ...(params && { params }), id: ++nextId };
	const headers = { "Content-Type": "application/json" };
	if (connection === "close") headers.Connection = "close";
	const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(request) });
	const answer = await response.json();
	if (answer.id !== request.id) throw new Error(`id ${answer.id}, not ${request.id}`);
	const kept = response.headers.get("connection") !== "close";
	return { status: response.status, kept, ...answer };
}

// The same with node:http and an agent of its own, whose connections can be counted.
function httpCall(agent, method, params) {
	const body = JSON.stringify({ jsonrpc: "2.0", method, ...(params && { params }), id: "node" });
	return new Promise((resolve, reject) => {
		const request = http.request(url, { method: "POST", agent }, (response) => {
			let text = "";
			response.setEncoding("utf8");
			response.on("data", (part) => (text += part));
			response.on("end", () => resolve({ reused: request.reusedSocket, ...JSON.parse(text) }));
		});
		request.on("error", reject);
		request.end(body);
	});
}

async function main() {
	const out = {};
	out.first = await call("send", { content: "My name is Alice" });
	out.second = await call("send", { content: "What is my name?" });
	out.tokens = await call("get_tokens");
	out.context = await call("get_context");
	out.missing = await call("send", {});
	out.unknown = await call("unknown");
	// Both at once, on two connections: the cancel must not wait behind the send.
	const long = call("send", { content: "What is my name, and why?", request_id: "long" });
	do {
		out.cancel = await call("cancel", { request_id: "long" });
	} while (!out.cancel.result.cancelled);
	out.cancelled = await long;

	const agent = new http.Agent({ keepAlive: connection !== "close" });
	out.http = [];
	for (let n = 0; n < 3; n++) out.http.push(await httpCall(agent, "get_context"));
	agent.destroy();
	out.shutdown = await call("shutdown");
	console.log(JSON.stringify(out));
}

await main();
