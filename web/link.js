// The link to koined: calls, and one stream of events for all tabs of this browser.
//
// A browser opens only six connections to a host. So one tab, the one that has the lock, has the
// stream, and tells the others. The tab that is looked at takes it over, and when it closes, the next one
// does; each goes on from the same number.

let number = 0;

export class Refused extends Error {
	constructor(error) {
		super(error.message);
		this.code = error.code;
		this.data = error.data;
	}
}

export async function call(method, params) {
	let response;

	try {
		response = await fetch('/rpc', {
			method: 'POST',
			headers: {'Content-Type': 'application/json'},
			body: JSON.stringify({jsonrpc: '2.0', id: ++number, method, params: params ?? {}}),
			cache: 'no-store',
			redirect: 'error',
		});
	} catch {
		throw new Error('koined is not responding');
	}
	if (response.status === 401)
		lost();
	if (!response.headers.get('Content-Type')?.startsWith('application/json'))
		throw new Error(`koined refused the call (HTTP ${response.status})`);
	const answer = await response.json();

	if (answer.error)
		throw new Refused(answer.error);
	return answer.result;
}

let turnedAway = () => {};

function lost() {
	turnedAway();
	const error = new Error('This browser was signed out');

	error.left = true;
	throw error;
}

export function onTurnedAway(fn) {
	turnedAway = fn;
}

// ---- events ----

const LEADER_MS = 2000; // a leader that lives answers within them

const listeners = new Set();
const channel = 'BroadcastChannel' in window ? new BroadcastChannel('koine') : null;
let since = -1;
let state = 'connecting';
let end = null; // ends the stream, where this tab has it

// fn(kind, value): 'event' and an event; 'state' and up, down or connecting; 'gone' and a count.
export function listen(fn) {
	listeners.add(fn);
	fn('state', state);
	return () => listeners.delete(fn);
}

// What two leaders tell, while one follows the other, is heard once.
function tell(kind, value) {
	if (kind === 'event' && value.seq <= since)
		return;
	if (kind === 'event')
		since = value.seq;
	if (kind === 'state')
		state = value;
	for (const fn of listeners)
		fn(kind, value);
}

function share(kind, value) {
	tell(kind, value);
	channel?.postMessage({kind, value, since});
}

// A new leader that goes on where this tab is changes nothing; one that begins later, or after a pause, makes it look again.
function hear({data}) {
	if (data.kind === 'ask') {
		if (end)
			channel.postMessage({kind: 'state', value: state, since});
	} else if (data.kind === 'hidden') {
		take();
	} else if (data.kind !== 'state') {
		tell(data.kind, data.value);
	} else if (!end && (data.value !== state || data.since > since)) {
		since = data.since;
		tell('state', data.value);
	}
}

function stream() {
	let wait = 500;
	let timer = 0;
	let source;

	function open() {
		source = new EventSource(since >= 0 ? `/events?since=${since}` : '/events');
		source.addEventListener('hello', e => {
			// A number of another store is not gone on from.
			since = JSON.parse(e.data).since;
			wait = 500;
			share('state', 'up');
		});
		source.addEventListener('gone', e => share('gone', JSON.parse(e.data).count));
		source.onmessage = e => share('event', JSON.parse(e.data));
		// The browser would ask again with the address as it was; we know better where we were.
		source.onerror = () => {
			source.close();
			share('state', 'down');
			call('ping').catch(() => {});
			timer = setTimeout(open, wait);
			wait = Math.min(wait * 2, 10000);
		};
	}
	open();
	return () => {
		clearTimeout(timer);
		source.close();
	};
}

// Rejects when another tab takes the lock away.
function lead(options) {
	let mine = null;

	return navigator.locks.request('koine-events', options, () => {
		end = mine = stream();
		return new Promise(() => {});
	}).catch(() => {
		mine?.();
		if (end === mine)
			end = null;
		channel.postMessage({kind: 'ask'});
	});
}

// A hidden tab may be slowed down, or stand still, with the lock: who is looked at takes it.
function take() {
	if (!end && !document.hidden)
		lead({steal: true});
	else if (end && document.hidden)
		channel.postMessage({kind: 'hidden'});
}

async function queue() {
	for (;;)
		await lead({});
}

export function start() {
	if (!navigator.locks || !channel) {
		stream();
		return;
	}
	queue();
	channel.onmessage = hear;
	channel.postMessage({kind: 'ask'});
	document.addEventListener('visibilitychange', take);
	setTimeout(() => state === 'connecting' && take(), LEADER_MS);
}
