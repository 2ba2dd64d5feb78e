// The original's kind of task server, as one writes it in Node: net, lines split by hand, tasks in
// a Map, full objects through JSON.stringify. Nothing is kept on disk, and nothing is run.
//
//	aiwg_node.js SOCKET
'use strict';

const net = require('net');

const tasks = new Map();
const clients = new Set();

function newTask(prompt) {
	return {
		id: 'task-' + String(tasks.size).padStart(4, '0'),
		prompt,
		agent: null,
		priority: 0,
		state: 'queued',
		createdAt: new Date().toISOString(),
		startedAt: null,
		completedAt: null,
		pid: null,
		result: null,
		error: null,
		output: '',
		metadata: {},
	};
}

function broadcast(method, params) {
	const text = JSON.stringify({ jsonrpc: '2.0', method, params }) + '\n';
	for (const client of clients)
		client.write(text);
}

const methods = {
	ping: () => ({ pong: true, timestamp: new Date().toISOString() }),

	'task.submit': ({ prompt }) => {
		const task = newTask(prompt);
		tasks.set(task.id, task);
		// behind the answer
		process.nextTick(broadcast, 'event.taskQueued', {
			taskId: task.id,
			prompt: prompt.slice(0, 80),
			queueSize: tasks.size,
		});
		return { taskId: task.id, state: task.state };
	},

	'task.list': ({ state, limit } = {}) => {
		let found = Array.from(tasks.values());
		if (state)
			found = found.filter((task) => task.state === state);
		found.sort((a, b) => b.createdAt.localeCompare(a.createdAt));
		return found.slice(0, limit || 20);
	},
};

function answer(line) {
	let request;
	try {
		request = JSON.parse(line);
	} catch {
		return { jsonrpc: '2.0', error: { code: -32700, message: 'Parse error' }, id: null };
	}
	const method = methods[request.method];
	if (!method)
		return {
			jsonrpc: '2.0',
			error: { code: -32601, message: 'Method not found' },
			id: request.id,
		};
	return { jsonrpc: '2.0', result: method(request.params), id: request.id };
}

const server = net.createServer((socket) => {
	let rest = '';
	clients.add(socket);
	socket.setEncoding('utf8');
	socket.on('error', () => socket.destroy());
	socket.on('close', () => clients.delete(socket));
	socket.on('data', (chunk) => {
		const lines = (rest + chunk).split('\n');
		rest = lines.pop();
		for (const line of lines)
			socket.write(JSON.stringify(answer(line)) + '\n');
	});
});

server.listen({ path: process.argv[2], backlog: 4096 });
