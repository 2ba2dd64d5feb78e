// A client of hld's socket as hlyr's own: `net`, lines split by hand, answers found by their ids, a
// connection of its own for a subscription. hld_client.mjs SOCKET FOLDER
// Plays the scene that test/go/hld plays, but decides as clients since July 2025 do, and prints
// every line as it came: {"calls": [[method, answer]...], "events": [...], "filtered": [...]}.
import net from 'node:net';

const PATIENCE_MS = 60000;
const [path, folder] = process.argv.slice(2);
const seen = { calls: [], events: [], filtered: [] };

function fail(why) {
  process.stderr.write(`hld_client: ${why}\n`);
  process.exit(1);
}

setTimeout(() => fail('it took too long'), PATIENCE_MS).unref();

class Connection {
  constructor(onLine) {
    this.buffer = '';
    this.socket = net.createConnection({ path, allowHalfOpen: true });
    this.socket.setEncoding('utf8');
    this.socket.on('error', (error) => fail(error.message));
    this.socket.on('data', (chunk) => {
      const lines = (this.buffer + chunk).split('\n');
      this.buffer = lines.pop();
      for (const line of lines) if (line.trim()) onLine(line);
    });
    this.ended = new Promise((resolve) => this.socket.on('end', resolve));
  }

  write(method, params, id) {
    this.socket.write(JSON.stringify({ jsonrpc: '2.0', method, params, id }) + '\n');
  }

  // What comes after that was never asked for, and is found among what was seen.
  async end() {
    this.socket.end();
    await this.ended;
    if (this.buffer) fail(`half a line: ${this.buffer}`);
  }
}

class Client extends Connection {
  constructor() {
    super((line) => this.onLine(line));
    this.id = 0;
    this.pending = new Map();
  }

  onLine(line) {
    const { id, result, error } = JSON.parse(line);
    const waiting = this.pending.get(id);
    if (!waiting) fail(`unasked: ${line}`);
    this.pending.delete(id);
    seen.calls.push([waiting.method, line]);
    if (error) fail(`${waiting.method}: ${error.message}`);
    waiting.resolve(result);
  }

  call(method, params) {
    const id = ++this.id;
    return new Promise((resolve) => {
      this.pending.set(id, { method, resolve });
      this.write(method, params, id);
    });
  }
}

class Subscription extends Connection {
  constructor(params, heard) {
    super((line) => {
      heard.push(line);
      const { result } = JSON.parse(line);
      this.news.push(result);
      this.wake();
    });
    this.news = [];
    this.wake = () => {};
    this.write('Subscribe', params, 1);
  }

  async next() {
    while (this.news.length === 0) await new Promise((resolve) => (this.wake = resolve));
    return this.news.shift();
  }

  async established() {
    if (!(await this.next()).subscription_id) fail('no subscription_id');
    return this;
  }

  // When something that fits was heard, for each.
  async until(...fits) {
    while (fits.length > 0) {
      const { event } = await this.next();
      fits = fits.filter((fit) => !fit(event));
    }
  }
}

const status = (name) => (event) => event.data.new_status === name;
const kind = (name) => (event) => event.type === name;
const said = (text) => (event) => event.data.content === text;

const client = new Client();
await client.call('health', {});
const events = await new Subscription({}, seen.events).established();
events.write('health', {}, 2); // nothing that is asked there is answered any more

const { session_id: first } = await client.call('launchSession', {
  query: ['session claude-1', `via hld ${path}`, 'say Hello <you> & me',
    'ask Bash {"command": "ls -l"}', 'say Done'].join('\n'),
  model: 'opus', working_dir: folder, max_turns: 3,
});
await events.until(kind('new_approval'), status('waiting_input'));
const { approvals } = await client.call('fetchApprovals', { session_id: first });
if (approvals.length !== 1) fail(`${approvals.length} approvals wait`);
const decision = { approval_id: approvals[0].id, decision: 'approve' };
await client.call('sendDecision', decision);
await client.call('sendDecision', decision);
await events.until(status('completed'));
await client.call('getConversation', { session_id: first });
await client.call('getSessionState', { session_id: first });
await client.call('listSessions', {});

const second = await client.call('continueSession', {
  session_id: first, query: 'session claude-2\nsay More\nhang',
});
await events.until(said('More'));
const filtered = await new Subscription(
  { event_types: ['session_status_changed'], run_id: second.run_id }, seen.filtered).established();
await client.call('interruptSession', { session_id: second.session_id });
await Promise.all([events.until(status('interrupted')), filtered.until(status('interrupted'))]);
await filtered.end();
await client.call('getSessionState', { session_id: second.session_id });
await client.call('getConversation', { session_id: second.session_id });
await client.call('fetchApprovals', {});
await events.end();
await client.end();
console.log(JSON.stringify(seen));
