// The link to koined: calls, and one stream of events for all tabs of this browser.
//
// A browser opens only six connections to a host. So one tab, the one that has the lock, has the
// stream, and tells the others; when it closes, the next one goes on from the same number.

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
		throw new Error('koined does not answer');
	}
	if (response.status === 401)
		lost();
	if (!response.headers.get('Content-Type')?.startsWith('application/json'))
		throw new Error(`koined refused the call (${response.status})`);
	const answer = await response.json();

	if (answer.error)
		throw new Refused(answer.error);
	return answer.result;
}

let turnedAway = () => {};

function lost() {
	turnedAway();
	const error = new Error('This browser was turned away');

	error.left = true;
	throw error;
}

export function onTurnedAway(fn) {
	turnedAway = fn;
}

// ---- events ----

const listeners = new Set();
const channel = 'BroadcastChannel' in window ? new BroadcastChannel('koine') : null;
let since = -1;
let state = 'connecting';

// fn(kind, value): 'event' and an event; 'state' and up, down or connecting; 'gone' and a count.
export function listen(fn) {
	listeners.add(fn);
	fn('state', state);
	return () => listeners.delete(fn);
}

function tell(kind, value) {
	if (kind === 'state')
		state = value;
	if (kind === 'event')
		since = Math.max(since, value.seq);
	for (const fn of listeners)
		fn(kind, value);
}

function share(kind, value) {
	tell(kind, value);
	channel?.postMessage({kind, value, since});
}

if (channel)
	channel.onmessage = ({data}) => {
		if (data.kind === 'ask')
			channel.postMessage({kind: 'state', value: state, since});
		else
			tell(data.kind, data.value);
	};

function stream() {
	let wait = 500;

	function open() {
		const source = new EventSource(since >= 0 ? `/events?since=${since}` : '/events');

		source.addEventListener('hello', e => {
			since = Math.max(since, JSON.parse(e.data).since);
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
			setTimeout(open, wait);
			wait = Math.min(wait * 2, 10000);
		};
	}
	open();
	return new Promise(() => {});
}

export function start() {
	if (!navigator.locks) {
		stream();
		return;
	}
	navigator.locks.request('koine-events', stream);
	channel?.postMessage({kind: 'ask'});
}
