// Every tool, resource and prompt of examples/mcp-everything.c, by the protocol's own libraries:
//
//	mcp_client.mjs PACKAGES sdk|client legacy|modern|auto stdio PROGRAM
//	mcp_client.mjs PACKAGES sdk|client legacy|modern|auto http URL
//
// What came is printed as JSON.
import {connect} from './mcp_connect.mjs';

const [, , packages, library, era, carrier, place] = process.argv;
const answers = {
	'elicitation/create': request => {
		const properties = Object.keys(request.params.requestedSchema.properties);
		const known = {name: 'Ada', username: 'ada', email: 'ada@example.com', ok: true,
			color: 'blue', context: 'tests', age: 36, score: 1.5, status: 'active',
			verified: true, untitledSingle: 'option1', titledSingle: 'value1',
			legacyEnum: 'opt1', untitledMulti: ['option1'], titledMulti: ['value1']};
		return {action: 'accept', content: Object.fromEntries(properties.map(p => [p, known[p]]))};
	},
	'sampling/createMessage': () => ({role: 'assistant', model: 'none', stopReason: 'endTurn',
		content: {type: 'text', text: 'Paris'}}),
	'roots/list': () => ({roots: [{uri: 'file:///work', name: 'work'}]}),
};
const {client, transport, heard} = await connect({packages, library, era, carrier, place, answers,
	capabilities: {elicitation: {}, sampling: {}, roots: {}}});

const legacy = era === 'legacy';
const out = {server: client.getServerVersion(), instructions: client.getInstructions(),
	tools: {}, resources: {}, prompts: {}, progress: []};
if (legacy)
	await client.setLoggingLevel('debug');
const given = {test_sampling: {prompt: 'Capital?'}, test_elicitation: {message: 'Who?'},
	sum: {a: 2, b: 40}, test_header: {name: 'Ada'}, json_schema_2020_12_tool: {name: 'Ada', email: 'x'}};
const {tools} = await client.listTools();
for (const tool of tools) {
	const onprogress = p => void out.progress.push(p.progress);
	const result = await client.callTool({name: tool.name, arguments: given[tool.name] ?? {}},
		...(library === 'sdk' ? [undefined] : []), {onprogress});
	out.tools[tool.name] = {kinds: result.content.map(c => c.type), isError: result.isError ?? false,
		text: result.content.find(c => c.type === 'text')?.text,
		structured: result.structuredContent};
}
out.wrong = await client.callTool({name: 'sum', arguments: {a: 'x', b: 1}}).then(
	r => ({isError: r.isError, text: r.content[0].text}), e => ({thrown: String(e)}));
out.unknown = await client.callTool({name: 'nonsense', arguments: {}}).then(
	() => null, e => e.code);

for (const {uri} of (await client.listResources()).resources)
	out.resources[uri] = (await client.readResource({uri})).contents.map(c => c.text ?? c.blob.length);
out.templates = (await client.listResourceTemplates()).resourceTemplates.map(t => t.uriTemplate);
out.template = (await client.readResource({uri: 'test://template/7/data'})).contents[0].text;
out.missing = await client.readResource({uri: 'test://nowhere'}).then(() => null, e => e.code);

const needs = {test_prompt_with_arguments: {arg1: 'one', arg2: 'two'},
	test_prompt_with_embedded_resource: {resourceUri: 'test://x'}};
for (const {name} of (await client.listPrompts()).prompts)
	out.prompts[name] = (await client.getPrompt({name, arguments: needs[name]})).messages
		.map(m => m.content.text ?? m.content.type);
out.completion = (await client.complete({ref: {type: 'ref/prompt',
	name: 'test_prompt_with_arguments'}, argument: {name: 'arg1', value: 'par'}})).completion.values;
if (legacy) {
	await client.ping();
	await client.subscribeResource({uri: 'test://watched-resource'});
	// What is said before a client listens is not for it, and libraries begin to listen when they like.
	const said = {test_trigger_resource_update: 'resources/updated',
		test_trigger_tool_change: 'tools/list_changed', test_trigger_prompt_change: 'prompts/list_changed'};
	for (const [name, what] of Object.entries(said)) {
		for (let i = 0; i < 3000 && !heard.includes('notifications/' + what); i++) {
			await client.callTool({name, arguments: {}});
			await new Promise(done => setTimeout(done, 10));
		}
	}
	await client.unsubscribeResource({uri: 'test://watched-resource'});
}
out.heard = [...new Set(heard)].sort();
if (carrier === 'http' && transport.terminateSession)
	await transport.terminateSession();
await client.close();
console.log(JSON.stringify(out));
process.exit(0);
