// The frame: which room is shown, what waits, and whether koined is there.
import {age, h, put, say, svg} from './dom.js';
import {call, listen, onTurnedAway, start} from './link.js';
import * as inbox from './inbox.js';
import * as tasks from './tasks.js';
import * as sessions from './sessions.js';
import * as memory from './memory.js';
import * as events from './events.js';
import * as machine from './machine.js';

const rooms = {inbox, tasks, sessions, memory, events, machine};
const ICONS = {
	inbox: 'M3 13 6 5h12l3 8v6H3zM3 13h5l1.5 3h5l1.5-3h5',
	tasks: 'M4 6.5 5.5 8 8 5M11.5 6.5H20M4 12.5 5.5 14 8 11M11.5 12.5H20M4 18.5 5.5 20 8 17M11.5 18.5H20',
	sessions: 'M4 5h16v11h-9l-4.5 4v-4H4zM8 9h8M8 12h5',
	memory: 'M6 4h12v16l-6-4-6 4z',
	events: 'M13 3 5 14h6l-1 7 9-11h-6.5z',
	machine: 'M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01',
};
const main = document.getElementById('main');
const count = h('span', {class: 'count', hidden: true});
let room = null; // {name, close}
let waiting = null; // not known yet

const AGE_MS = 10000;

// An address may be typed, or come from a message that was cut.
function decoded(part) {
	try {
		return decodeURIComponent(part);
	} catch {
		return part;
	}
}

// #/tasks/ID?state=running
function place() {
	const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
	const [name, ...rest] = path.split('/').map(decoded);

	return {name: Object.hasOwn(rooms, name) ? name : 'inbox', rest, query: new URLSearchParams(query ?? '')};
}

function nav() {
	put(document.getElementById('rooms'), Object.entries(rooms).map(([name, r], i) =>
		h('a', {href: `#/${name}`, 'data-room': name, title: `${r.title} (${i + 1})`},
			svg('svg', {class: 'icon', viewBox: '0 0 24 24', width: 20, height: 20, 'aria-hidden': 'true'}, svg('path', {d: ICONS[name]})),
			h('span', {}, r.brief ?? r.title), name === 'inbox' && count)));
}

function show() {
	if (location.hash === '#main') {
		main.focus();
		return;
	}
	const to = place();

	if (room?.name === to.name && room.go) {
		room.go(to);
		return;
	}
	room?.close?.();
	main.replaceChildren();
	main.className = `room-${to.name}`;
	room = {name: to.name, ...rooms[to.name].enter(main, to)};
	document.querySelectorAll('#rooms a').forEach(a => {
		if (a.dataset.room === to.name)
			a.setAttribute('aria-current', 'page');
		else
			a.removeAttribute('aria-current');
	});
	name();
}

function name() {
	document.title = `${waiting ? `(${waiting}) ` : ''}${rooms[room?.name ?? 'inbox'].title} · koine`;
}

// ---- what waits ----

const HINT_MS = 15000; // a restart takes less
let hint = 0;

function badge(n) {
	if (waiting !== null && n > waiting)
		inbox.ring();
	waiting = n;
	count.textContent = n;
	count.hidden = n === 0;
	count.setAttribute('aria-label', `${n} waiting`);
	name();
	if (n > 0)
		navigator.setAppBadge?.(n)?.catch?.(() => {});
	else
		navigator.clearAppBadge?.()?.catch?.(() => {});
}

async function look() {
	try {
		badge((await call('daemon.status')).approvals_pending);
	} catch {
		// It is said elsewhere that koined is away.
	}
}

listen((kind, value) => {
	const link = document.getElementById('link');

	if (kind === 'state') {
		if (value !== 'down') {
			clearTimeout(hint);
			hint = 0;
			link.textContent = '';
		} else if (!hint) {
			link.textContent = 'lost connection to koined; reconnecting';
			hint = setTimeout(() => { link.textContent = 'koined is not running, or your session has ended. To sign in again, run koine page on the machine where koined runs.'; }, HINT_MS);
		}
		document.body.classList.toggle('away', value === 'down');
		if (value === 'up')
			look();
	}
	if (kind === 'event' && value.type.startsWith('approval.'))
		look();
	if (kind === 'gone')
		say(`Missed ${value} events: koined has already deleted them`);
});

onTurnedAway(() => {
	put(document.body, h('main', {class: 'away-page'}, h('h1', {}, 'koine'),
		h('p', {}, 'You are no longer signed in, or koined has stopped.'),
		h('p', {}, 'To sign in again, run ', h('code', {}, 'koine page'), ' on the machine where koined runs, and open the link.')));
});

// ---- keys ----

export function typing(e) {
	return e.target.closest?.('input, textarea, select') || e.ctrlKey || e.altKey || e.metaKey;
}

document.addEventListener('keydown', e => {
	if (e.key === 'Escape' && e.target.closest?.('input, textarea, select')) {
		e.target.blur();
		return;
	}
	if (typing(e) || document.querySelector('dialog[open]'))
		return;
	const names = Object.keys(rooms);

	if (e.key >= '1' && e.key <= String(names.length))
		location.hash = `#/${names[Number(e.key) - 1]}`;
	else if (e.key === '/')
		main.querySelector('input[type=search]')?.focus();
	else if (e.key === '?')
		help();
	else if (!room?.key?.(e))
		return;
	e.preventDefault();
});

function help() {
	const rows = [['1 – 6', 'switch to another view'], ['/', 'search or filter the list'], ['j k', 'select the next or previous request'],
		['a', 'approve'], ['d', 'deny'], ['s', 'allow the tool for this session'],
		['s', 'stash or enqueue the task'], ['+ −', 'raise or lower the priority'], ['e', 'edit the task'], ['p', 'pause or resume all tasks'],
		['Enter', 'open'], ['Esc', 'leave an input field'], ['?', 'show a list of all keys']];
	const dialog = h('dialog', {'aria-label': 'Keys'}, h('h2', {}, 'Keys'),
		h('dl', {class: 'keys'}, rows.map(([k, v]) => [h('dt', {}, h('kbd', {}, k)), h('dd', {}, v)])),
		h('form', {method: 'dialog'}, h('button', {}, 'Close')));

	// The policy of this page forbids forms that go anywhere; this one only closes.
	dialog.querySelector('form').addEventListener('submit', e => {
		e.preventDefault();
		dialog.close();
	});
	dialog.addEventListener('close', () => dialog.remove());
	document.body.append(dialog);
	dialog.showModal();
}

window.addEventListener('hashchange', show);
document.getElementById('skip').addEventListener('click', e => {
	e.preventDefault();
	main.focus();
});
setInterval(() => document.hidden || age(main), AGE_MS);
nav();
show();
start();
look();
