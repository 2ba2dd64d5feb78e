// Every tool, resource and prompt of koined, by the protocol's own libraries:
//
//	mcp_koined_client.mjs PACKAGES sdk|client legacy|modern|auto stdio KOINE
//	mcp_koined_client.mjs PACKAGES sdk|client legacy|modern|auto http URL TOKEN
//
// What came is printed as JSON. Whoever runs it answers "Which number?" in the inbox with 7, and
// allows the tool Bash.
import {connect} from './mcp_connect.mjs';

const [, , packages, library, era, carrier, place, token] = process.argv;

// The user chooses a colour, does not want to say a name, and closes the third dialog.
const answers = {'elicitation/create': ({params}) => {
	if (params.message === 'Which colour?')
		return {action: 'accept', content: {answer: params.requestedSchema.properties.answer.enum[1]}};
	return {action: params.message === 'Which name?' ? 'decline' : 'cancel'};
}};
const {client, transport, heard} = await connect({packages, library, era, carrier, place, answers,
	args: ['mcp'], env: {KOINE_SOCKET: process.env.KOINE_SOCKET},
	headers: {Authorization: `Bearer ${token}`, 'Koine-Project': 'typed'},
	capabilities: {elicitation: {}}});
const legacy = era === 'legacy';
const out = {server: client.getServerVersion(), instructions: client.getInstructions()};

const called = new Set();
const call = async (name, args) => {
	called.add(name);
	return await client.callTool({name, arguments: args});
};
const data = async (name, args) => {
	const result = await call(name, args);
	if (result.isError)
		throw new Error(`${name}: ${result.content[0].text}`);
	if (JSON.stringify(JSON.parse(result.content[0].text)) !== JSON.stringify(result.structuredContent))
		throw new Error(`${name}: its text is not its structure`);
	return result.structuredContent;
};
const until = async condition => {
	while (!await condition())
		await new Promise(done => setTimeout(done, 10));
};

const {tools} = await client.listTools();

// ---- memory ----
const memory = await data('memory_add', {content: 'Anna moved to Oslo in May', subjects: ['Anna']});
out.found = (await data('memory_search', {query: 'where does Anna live?'})).memories.map(m => m.content);
const uri = `memory://${memory.id}`;
const listening = legacy ? void await client.subscribeResource({uri})
	: client.getNegotiatedProtocolVersion?.() === '2026-07-28'
		? await client.listen({resourceSubscriptions: [uri]}) : undefined;
out.changed = (await data('memory_update', {id: memory.id, content: 'Anna moved to Bergen'})).content;
if (legacy || listening)
	await until(() => heard.includes('notifications/resources/updated'));
if (legacy)
	await client.unsubscribeResource({uri});
await listening?.close();
out.read = JSON.parse((await client.readResource({uri})).contents[0].text).content;
out.listed = (await data('memory_list', {})).memories.map(m => m.content);

// ---- tasks ----
const task = await data('task_add', {prompt: 'what is koine?', agent: 'recall'});
await until(async () => (await data('task_get', {id: task.id})).state === 'completed');
await until(async () => (await data('task_list', {state: 'completed'})).tasks.some(t => t.id === task.id));
out.output = (await data('task_output', {id: task.id})).output;
out.printed = (await client.readResource({uri: `task://${task.id}`})).contents[0].text;
out.cancelled = (await call('task_cancel', {id: task.id})).content[0].text;

// ---- a human ----
out.colour = await data('ask_human', {question: 'Which colour?', choices: ['red', 'blue']});
out.name = await data('ask_human', {question: 'Which name?'});
out.number = await data('ask_human', {question: 'Which number?'});
out.allowed = JSON.parse((await call('permission_prompt',
	{tool_name: 'Bash', input: {command: 'ls'}})).content[0].text);

// ---- the rest ----
out.uris = [];
for (let cursor; ;) {
	const page = await client.listResources(cursor ? {cursor} : undefined);
	out.uris.push(...page.resources.map(r => r.uri));
	cursor = page.nextCursor;
	if (!cursor)
		break;
}
out.templates = (await client.listResourceTemplates()).resourceTemplates.map(t => t.uriTemplate);
out.prompts = {};
for (const {name} of (await client.listPrompts()).prompts)
	out.prompts[name] = (await client.getPrompt({name, arguments: name === 'recall'
		? {about: 'Anna'} : {}})).messages[0].content.text;
out.missing = await client.readResource({uri: 'memory://nothing'}).then(() => null, e => e.code);
out.unknown = await client.callTool({name: 'nonsense', arguments: {}}).then(() => null, e => e.code);
out.wrong = (await call('memory_search', {query: 7})).content[0].text;
out.deleted = await data('memory_delete', {id: memory.id});
if (legacy)
	await client.ping();
out.memory = uri;
out.task = `task://${task.id}`;
out.uncalled = tools.map(t => t.name).filter(name => !called.has(name));
if (carrier === 'http' && transport.terminateSession)
	await transport.terminateSession();
await client.close();
console.log(JSON.stringify(out));
process.exit(0);
