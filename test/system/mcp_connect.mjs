// A client by one of the protocol's own libraries, for the scripts beside this file.
//
// `sdk` is version 1, which knows the legacy era alone; `client` is version 2.
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';

// permission_prompt is offered to Claude Code.
const who = {name: 'claude-code', version: '1'};
const told = ['notifications/message', 'notifications/tools/list_changed',
	'notifications/prompts/list_changed', 'notifications/resources/updated'];

async function versionOne(load, capabilities) {
	const {Client} = await load('@modelcontextprotocol/sdk/client/index.js');
	const {StdioClientTransport} = await load('@modelcontextprotocol/sdk/client/stdio.js');
	const {StreamableHTTPClientTransport} =
		await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
	const types = await load('@modelcontextprotocol/sdk/types.js');
	const schemas = {'elicitation/create': types.ElicitRequestSchema,
		'sampling/createMessage': types.CreateMessageRequestSchema,
		'roots/list': types.ListRootsRequestSchema,
		'notifications/message': types.LoggingMessageNotificationSchema,
		'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
		'notifications/prompts/list_changed': types.PromptListChangedNotificationSchema,
		'notifications/resources/updated': types.ResourceUpdatedNotificationSchema};
	return {client: new Client(who, {capabilities}), name: method => schemas[method],
		StdioClientTransport, StreamableHTTPClientTransport};
}

async function versionTwo(load, capabilities, era) {
	const {Client, StreamableHTTPClientTransport} = await load('@modelcontextprotocol/client');
	const {StdioClientTransport} = await load('@modelcontextprotocol/client/stdio');
	const mode = era === 'modern' ? {pin: '2026-07-28'} : era;
	return {client: new Client(who, {capabilities, versionNegotiation: {mode}}), name: method => method,
		StdioClientTransport, StreamableHTTPClientTransport};
}

// carrier: 'stdio' with a program and its args, or 'http' with a URL and headers. answers: method
// to what the client answers. Gives the client, its transport, and the methods that it hears.
export async function connect({packages, library, era, carrier, place, args = [], env, headers = {},
	capabilities, answers}) {
	const require = createRequire(packages + '/package.json');
	const load = async name => import(pathToFileURL(require.resolve(name)));
	const version = library === 'sdk' ? versionOne : versionTwo;
	const {client, name, StdioClientTransport, StreamableHTTPClientTransport} =
		await version(load, capabilities, era);
	for (const [method, answer] of Object.entries(answers))
		client.setRequestHandler(name(method), async request => answer(request));
	const heard = [];
	for (const method of told)
		client.setNotificationHandler(name(method), () => void heard.push(method));
	const transport = carrier === 'stdio'
		? new StdioClientTransport({command: place, args, env})
		: new StreamableHTTPClientTransport(new URL(place), {requestInit: {headers}});
	await client.connect(transport);
	return {client, transport, heard};
}
