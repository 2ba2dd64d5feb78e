// A newline JSON-RPC server as one writes it in Node: net, split, JSON.parse.
'use strict';

const net = require('net');

const methods = {
	ping: () => ({ pong: true, timestamp: new Date().toISOString() }),
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
	socket.setEncoding('utf8');
	socket.on('error', () => socket.destroy());
	socket.on('data', (chunk) => {
		const lines = (rest + chunk).split('\n');
		rest = lines.pop();
		for (const line of lines)
			socket.write(JSON.stringify(answer(line)) + '\n');
	});
});

server.listen({ path: process.argv[2], backlog: 4096 });
