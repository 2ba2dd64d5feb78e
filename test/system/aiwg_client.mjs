// A client as AIWG's own: `net`, one JSON object a line, a counter for ids, notifications beside
// answers. Plays a scene on the socket it is given and prints what it saw, as one JSON object.
import net from 'node:net';

class Client {
  constructor(path) {
    this.pending = new Map();
    this.notifications = [];
    this.waiting = [];
    this.lines = [];
    this.next = 1;
    this.buffer = '';
    this.socket = net.createConnection(path);
    this.socket.setEncoding('utf8');
    this.socket.on('data', (chunk) => this.onData(chunk));
    this.closed = new Promise((resolve) => this.socket.on('close', resolve));
  }

  connected() {
    return new Promise((resolve, reject) => {
      this.socket.on('connect', resolve);
      this.socket.on('error', reject);
    });
  }

  onData(chunk) {
    this.buffer += chunk;
    const lines = this.buffer.split('\n');
    this.buffer = lines.pop();
    for (const line of lines) if (line.trim()) this.onMessage(JSON.parse(line));
  }

  onMessage(message) {
    this.lines.push(message);
    if ((message.id === undefined || message.id === null) && message.method) {
      this.notifications.push(message);
      this.waiting = this.waiting.filter((w) => !w(message));
      return;
    }
    const call = this.pending.get(message.id);
    if (!call) return;
    this.pending.delete(message.id);
    if (message.error) call.reject(Object.assign(new Error(message.error.message), message.error));
    else call.resolve(message.result);
  }

  request(method, params) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject });
      this.socket.write(JSON.stringify({ jsonrpc: '2.0', method, params, id }) + '\n');
    });
  }

  notify(method, params) {
    this.socket.write(JSON.stringify({ jsonrpc: '2.0', method, params }) + '\n');
  }

  // The first notification of that name about that task, now or later.
  heard(method, taskId) {
    const fits = (m) => m.method === method && m.params.taskId === taskId;
    const found = this.notifications.find(fits);
    if (found) return Promise.resolve(found.params);
    return new Promise((resolve) =>
      this.waiting.push((m) => (fits(m) ? (resolve(m.params), true) : false)));
  }
}

const failure = (promise) => promise.then(() => null, (e) => ({ code: e.code, message: e.message }));

const [path] = process.argv.slice(2);
const a = new Client(path);
const b = new Client(path);
await Promise.all([a.connected(), b.connected()]);

const out = {};
out.ping = await a.request('ping', {});
out.status = await a.request('daemon.status', {});
out.submitted = await a.request('task.submit', { prompt: 'say hello', agent: 'writer', priority: 2 });
const first = out.submitted.taskId;
out.completed = await a.heard('event.taskCompleted', first);
out.other = await b.heard('event.taskCompleted', first);
out.order = a.lines.map((m) => m.method ?? `answer ${m.id}`).slice(2, 6);
out.task = await a.request('task.get', { taskId: first });
out.long = await a.request('task.submit', { prompt: 'sleep' });
await b.heard('event.taskStarted', out.long.taskId);
out.running = await b.request('task.list', { state: 'running' });
out.cancelled = await b.request('task.cancel', { taskId: out.long.taskId });
await a.heard('event.taskCancelled', out.long.taskId);
out.again = await failure(a.request('task.cancel', { taskId: out.long.taskId }));
out.unknown = await failure(a.request('task.get', { taskId: 'task-9999' }));
out.failing = await a.request('task.submit', { prompt: 'fail' });
out.failed = await b.heard('event.taskFailed', out.failing.taskId);
out.chat = await a.request('chat.send', { message: 'how are you?' });
await a.heard('event.taskCompleted', out.chat.taskId);
out.chatted = await a.request('task.get', { taskId: out.chat.taskId });
a.notify('task.submit', { prompt: '' });
out.list = await a.request('task.list', {});
out.stats = await a.request('task.stats', {});
a.socket.end();
await a.closed;
b.socket.end();
await b.closed;
console.log(JSON.stringify(out));
