// How koined is: health, hosts that share its store, listeners, agents and whether they answer, the browsers that were let in.
import {button, bytes, chip, clock, doing, empty, h, heading, put, renew, short, soon, span, svg, time} from './dom.js';
import {call, listen} from './link.js';

export const title = 'Machine';

const LOOK_MS = 5000;

function health(s) {
	const rows = [['Health', chip(s.health, s.health === 'healthy' ? 'ok' : 'error')], ['Version', s.version], ['Process', s.pid],
		['Uptime', span(s.uptime_seconds * 1000)], ['Connections', s.connections], ['Calls in flight', s.calls_in_flight],
		['Running sessions', s.sessions_running], ['Pending approvals', s.approvals_pending], ['Agent', s.agent?.name ?? 'none'],
		['Store writes', s.store.writes], ['Store check', s.store.check],
		['Store', h('span', {class: 'path'}, s.store.path)]];

	return h('dl', {class: 'facts'}, rows.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v))));
}

function table(label, heads, rows) {
	return h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label}, h('table', {class: 'events'},
		h('thead', {}, h('tr', {}, heads.map(t => h('th', {scope: 'col'}, t)))),
		h('tbody', {}, rows.map(r => h('tr', {}, r.map((c, i) => h('td', {'data-label': heads[i]}, c)))))));
}

function listeners(s) {
	return table('Listeners', ['Dialect', 'Address', 'Clients', 'Calls', 'Errors', 'Received', 'Sent'], s.listeners.map(l =>
		[l.dialect, h('span', {class: 'path'}, l.address), l.connections, l.calls, l.errors, bytes(l.bytes_in), bytes(l.bytes_out)]));
}

function agents(found) {
	return found.length === 0 ? empty('No agents.') : table('Agents', ['Name', 'Kind', 'Model', 'Reachable', ''], found.map(a =>
		[a.name + (a.default ? ' (default)' : ''), a.kind, a.model, a.ok === undefined ? chip('checking…') : chip(a.ok ? 'yes' : 'no', a.ok ? 'ok' : 'error'), a.text ?? '']));
}

// Who is told on a phone, and whether that works.
function notifiers(found) {
	if (found.length === 0)
		return h('p', {class: 'note'}, 'No notifiers. To get requests on your phone, add a [notify NAME] section to koine.conf.');
	return table('Notifiers', ['Name', 'Kind', 'State', 'Sent', 'Last sent', 'Queued', 'Error'], found.map(n =>
		[n.name, n.kind, chip(n.state, {ok: 'ok', failing: 'error', off: 'error'}[n.state]), n.sent, time(n.sent_at), n.waiting, n.error]));
}

const STATES = {alive: 'ok', lost: 'error'};

function hosts(found) {
	if (found.length === 0)
		return h('p', {class: 'note'}, 'Only this host uses the store. To share a store between hosts, use PostgreSQL.');
	return table('Hosts', ['Host', 'State', 'Since', 'Last seen', 'Running', 'Version', 'Labels'], found.map(o =>
		[o.name + (o.this ? ' (this host)' : ''), chip(o.state, STATES[o.state]), time(o.since), o.seen_ms_ago < 60000 ? 'just now' : `${span(o.seen_ms_ago)} ago`,
			`${o.running} of ${o.parallel}`, o.version, o.labels]));
}

// ---- the last day ----

// The last sample is of now, and not a minute after the one before it.
const minutes = (now, before) => Math.max(Date.parse(now.time) - Date.parse(before.time), 1000) / 60000;
const rate = name => (now, before) => (now[name] - before[name]) / minutes(now, before);
const CHARTS = [
	['Calls per minute', rate('calls')],
	['Average call duration, µs', (now, before) => (now.timed > before.timed ? (now.call_us - before.call_us) / (now.timed - before.timed) : 0)],
	['Errors per minute', rate('errors')],
	['Running tasks', now => now.tasks_running],
	['Tokens per minute', (now, before) => rate('tokens_in')(now, before) + rate('tokens_out')(now, before)],
	['Cost in US dollars', now => now.micro_usd / 1e6],
];

// Three digits that mean something: $0.003, but not 1,088.042 calls.
function number(n) {
	return n.toLocaleString([], Math.abs(n) >= 100 ? {maximumFractionDigits: 0} : {maximumSignificantDigits: 3});
}

function chart(name, samples, value) {
	const points = samples.slice(1).map((s, i) => [Date.parse(s.time), Math.max(0, value(s, samples[i]))]);

	// One point would be no line.
	if (points.length === 1)
		points.unshift([Date.parse(samples[0].time), points[0][1]]);
	const most = Math.max(...points.map(p => p[1]), 0);
	const from = points[0][0];
	const wide = Math.max(points.at(-1)[0] - from, 1);
	const at = ([t, v]) => `${(((t - from) / wide) * 298 + 1).toFixed(1)} ${(58 - (most > 0 ? v / most : 0) * 54).toFixed(1)}`;
	const line = points.map(at).join('L');
	const words = `${name}: maximum ${number(most)}, now ${number(points.at(-1)[1])}`;

	return h('figure', {class: 'chart'}, h('figcaption', {}, name, h('strong', {}, number(points.at(-1)[1]))),
		svg('svg', {viewBox: '0 0 300 60', preserveAspectRatio: 'none', role: 'img', 'aria-label': words},
			svg('path', {class: 'area', d: `M1 58L${line}L299 58Z`}), svg('path', {class: 'axis', d: 'M1 58H299'}), svg('path', {d: `M${line}`})),
		h('p', {class: 'note'}, `${clock(samples[0].time)} to ${clock(samples.at(-1).time)}, maximum ${number(most)}`));
}

export function enter(root) {
	const top = h('div', {});
	const shared = h('div', {id: 'hosts'});
	const ports = h('div', {});
	const who = h('div', {});
	const told = h('div', {id: 'notifiers'});
	const browsers = h('div', {});
	const day = h('div', {class: 'charts'});

	put(root, heading('Machine'), top, h('h2', {}, 'Last 24 hours'), day, h('h2', {}, 'Hosts'), shared, h('h2', {}, 'Listeners'), ports,
		h('div', {class: 'head'}, h('h2', {}, 'Agents'), button('Check agents', () => doing(ask))), who,
		h('h2', {}, 'Notifiers'), told, h('h2', {}, 'Browsers'), browsers);

	async function read() {
		const s = await call('daemon.status');

		put(top, health(s));
		renew(ports, listeners(s));
		renew(shared, hosts((await call('host.list')).hosts));
		renew(told, notifiers((await call('notify.list')).notifiers));
		const {samples} = await call('daemon.samples');

		put(day, CHARTS.map(([name, value]) => chart(name, samples, value)));
	}

	async function ask(names) {
		renew(who, agents((await call('chat.agents', {names: Boolean(names)})).agents));
	}

	async function seen() {
		const {sessions} = await call('page.sessions');

		renew(browsers, table('Browsers', ['Browser', 'Signed in', 'Last seen', ''], sessions.map(b => [b.program || short(b.id), time(b.entered_at), time(b.seen_at),
			button('Sign out', () => doing(() => call('page.end', {id: b.id}), 'Browser signed out').then(() => doing(seen)), {'aria-label': `Sign out ${b.program || short(b.id)}`})])));
	}

	const wish = soon(read);
	const ticker = setInterval(() => document.hidden || wish(), LOOK_MS);
	const stop = listen((kind, value) => kind === 'state' && value === 'up' && wish());

	wish();
	doing(() => ask(true).then(() => ask(false)));
	doing(seen);
	return {
		close() {
			stop();
			clearInterval(ticker);
		},
	};
}
