// What waits for a human, oldest first, whoever asks.
import {button, chip, doing, empty, exact, field, h, heading, put, say, short, soon, span, time} from './dom.js';
import {call, listen} from './link.js';
import {asked} from './show.js';

export const title = 'Inbox';

const LIMIT = 200;
const RING_MS = 2000;
const LOOKED_MS = 400; // a key or a click decides nothing that has just come under it

// ---- the sound ----

let wished = localStorage.getItem('sound') === 'on';

// Of many tabs one rings.
export function ring() {
	if (!wished || !('AudioContext' in window))
		return;
	if (navigator.locks)
		navigator.locks.request('koine-ring', {ifAvailable: true}, lock => lock && new Promise(done => sound(done)));
	else
		sound(() => {});
}

function sound(done) {
	const audio = new AudioContext();
	const tone = audio.createOscillator();
	const gain = audio.createGain();

	tone.frequency.value = 660;
	gain.gain.setValueAtTime(0.08, audio.currentTime);
	gain.gain.exponentialRampToValueAtTime(0.0001, audio.currentTime + 0.5);
	tone.connect(gain).connect(audio.destination);
	tone.start();
	tone.stop(audio.currentTime + 0.5);
	tone.onended = () => audio.close().finally(done);
	setTimeout(done, RING_MS); // where the browser lets nothing be heard
}

function soundSwitch() {
	const box = h('input', {type: 'checkbox', checked: wished, onchange: () => {
		wished = box.checked;
		localStorage.setItem('sound', wished ? 'on' : 'off');
		ring();
	}});

	return h('label', {class: 'switch'}, box, ' Sound');
}

// ---- one of them ----

function left(a) {
	if (!a.deadline)
		return 'no timeout';
	const ms = Date.parse(a.deadline) - Date.now();

	return ms > 0 ? `${span(ms)} left` : 'expired';
}

const asker = a => exact(a.agent || 'an agent');

function who(a) {
	return h('p', {class: 'who'}, a.session_id && h('a', {href: `#/sessions/${encodeURIComponent(a.session_id)}`}, `session ${exact(short(a.session_id))}`),
		a.origin && h('span', {class: 'path'}, exact(a.origin)), a.host && h('span', {}, 'on ', h('strong', {}, exact(a.host))),
		h('span', {}, 'asked ', time(a.created_at)));
}

async function decide(card, decision, more) {
	card.busy = true;
	card.element.setAttribute('aria-busy', 'true');
	const done = {approve: 'Approved', deny: 'Denied', respond: 'Answered'}[decision];
	const result = await doing(() => call('approval.decide',
		{id: card.approval.id, exact: true, decision, ...more}), `${done}: ${card.approval.tool}`);

	card.busy = false;
	card.element.removeAttribute('aria-busy');
	return Boolean(result);
}

function actions(card, decided) {
	const a = card.approval;
	const comment = h('textarea', {rows: 1, maxlength: 4000});
	const said = () => (comment.value.trim() ? {comment: comment.value.trim()} : {});
	const go = async (decision, more) => {
		if (decision === 'approve' && !card.whole)
			say('The request is still loading. Try again in a moment', true);
		else if (!card.busy && await decide(card, decision, {...said(), ...more}))
			decided(card);
	};

	card.comment = comment;
	if (a.kind === 'human_contact') {
		card.approve = () => comment.focus();
		card.deny = card.approve;
		return h('div', {class: 'actions'}, field('Answer', comment, {class: 'field wide'}),
			button('Send answer', () => (comment.value.trim() ? go('respond')
				: say('Enter an answer first', true)), {class: 'good'}));
	}
	card.approve = () => go('approve');
	card.deny = () => go('deny');
	card.always = () => a.session_id && go('approve', {grant: {scope: 'session'}});
	return h('div', {class: 'actions'},
		button('Approve', card.approve, {class: 'good', 'aria-keyshortcuts': 'a'}),
		button('Deny', card.deny, {class: 'bad', 'aria-keyshortcuts': 'd'}),
		a.session_id && button(`Allow ${exact(a.tool)} for the session`, card.always, {'aria-keyshortcuts': 's'}),
		field('Comment', comment, {class: 'field wide'}));
}

// Asked for again, if koined was away, when the list is read anew.
async function whole(card, place) {
	if (card.whole || card.reading)
		return;
	card.reading = true;
	const a = await doing(() => call('approval.get', {id: card.approval.id, exact: true}));

	card.reading = false;
	if (a) {
		put(place, asked(a));
		card.whole = true;
	}
}

function make(approval, decided, choose) {
	const card = {approval, busy: false, whole: !approval.input_omitted}; // whole: all of it is on the page
	const place = h('div', {class: 'input'},
		approval.input_omitted ? h('p', {class: 'note'}, 'Loading the full input…') : asked(approval));

	card.buttons = actions(card, decided);
	card.element = h('article', {class: 'card', tabindex: 0, 'aria-label': `${asker(approval)} asks: ${exact(approval.tool)}`,
		onfocusin: () => choose(card, false)},
		h('div', {class: 'asks'}, chip(asker(approval), 'agent'), h('h2', {}, exact(approval.tool)), h('span', {class: 'left'}, left(approval))),
		who(approval), place, card.buttons);
	card.element.addEventListener('click', e => hold(card, e), {capture: true});
	card.look = () => whole(card, place);
	card.look();
	return card;
}

// ---- what has just moved ----

// A click that was meant for one card must not decide another that takes its place. A card is settled
// when its buttons have been where they are for a moment.
function measure(card) {
	const {left, top} = card.buttons.getBoundingClientRect();

	if (left !== card.left || top !== card.top)
		Object.assign(card, {left, top, moved: performance.now()});
}

function isSettled(card) {
	measure(card);
	return performance.now() - card.moved >= LOOKED_MS;
}

// Before the button sees it. A click without a pointer (detail 0) goes to the button that has the focus.
function hold(card, e) {
	if (e.detail === 0 || !card.buttons.contains(e.target) || !e.target.closest('button') || isSettled(card))
		return;
	e.stopPropagation();
	e.preventDefault();
	say('The list has just changed. Check the request, then click again.', true);
}

// ---- the room ----

export function enter(root, start) {
	const list = h('div', {class: 'cards'});
	const count = h('p', {class: 'note'});
	const cards = new Map();
	let chosen = null;
	let since = 0;
	let wanted = start.rest[0]; // #/inbox/ID: who comes by a message's link

	put(root, heading('Inbox', count, soundSwitch()), list);

	function choose(card, focus = true) {
		if (chosen !== card) {
			chosen?.element.classList.remove('chosen');
			chosen = card;
			since = performance.now();
			card?.element.classList.add('chosen');
		}
		if (focus && card) {
			card.element.focus({preventScroll: true});
			card.element.scrollIntoView({block: 'nearest'});
		}
	}

	function order() {
		return [...list.querySelectorAll('.card')].map(e => [...cards.values()].find(c => c.element === e));
	}

	function move(by) {
		const all = order();
		const at = all.indexOf(chosen);

		choose(all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))] ?? null);
	}

	function remove(card) {
		cards.delete(card.approval.id);
		card.element.remove();
		if (chosen === card)
			chosen = null;
	}

	// After one's own decision the next one is at hand; not after somebody else's.
	function decided(card) {
		const all = order();
		const next = all[all.indexOf(card) + 1] ?? all[all.indexOf(card) - 1];

		remove(card);
		tidy();
		if (next)
			choose(next);
		else
			root.focus();
	}

	function tidy(total = cards.size) {
		put(count, cards.size > 0 && [`${total} pending`,
			h('span', {class: 'hint'}, ' · ', h('kbd', {}, 'j'), ' ', h('kbd', {}, 'k'), ' next or previous request · ', h('kbd', {}, '?'), ' show all keys')]);
		if (cards.size === 0)
			put(list, empty('No pending requests. New requests appear here.'));
		else
			list.querySelector('.empty')?.remove();
	}

	async function read() {
		const {approvals, pending} = await call('approval.list', {limit: LIMIT});
		const known = new Set(approvals.map(a => a.id));

		for (const card of [...cards.values()])
			if (!known.has(card.approval.id) && !card.busy)
				remove(card);
		for (const a of approvals) {
			if (cards.has(a.id)) {
				cards.get(a.id).look();
				continue;
			}
			const card = make(a, decided, choose);

			cards.set(a.id, card);
			list.append(card.element);
		}
		tidy(pending);
		if (wanted && cards.has(wanted))
			choose(cards.get(wanted));
		else if (wanted)
			say('This approval is no longer pending');
		wanted = null;
	}

	const wish = soon(read, 50);
	const stop = listen((kind, value) => {
		if (kind === 'event' && value.type.startsWith('approval.'))
			wish();
		if (kind === 'state' && value === 'up')
			wish();
	});
	let frame = requestAnimationFrame(function watch() {
		for (const card of cards.values())
			measure(card);
		frame = requestAnimationFrame(watch);
	});
	const ticker = setInterval(() => {
		for (const card of cards.values())
			card.element.querySelector('.left').textContent = left(card.approval);
	}, 1000);

	wish();
	return {
		go(place) {
			wanted = place.rest[0];
			wish();
		},
		close() {
			stop();
			clearInterval(ticker);
			cancelAnimationFrame(frame);
		},
		key(e) {
			const act = {a: 'approve', d: 'deny', s: 'always'}[e.key];

			if (e.key === 'j' || e.key === 'k') {
				move(e.key === 'j' ? 1 : -1);
				return true;
			}
			if (!act || !chosen?.[act])
				return false;
			// Nor does one that is still held down from the one before.
			if (!e.repeat && performance.now() - since >= LOOKED_MS)
				chosen[act]();
			return true;
		},
	};
}
