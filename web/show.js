// What agents want to do, and what they printed, so that people can read it.
import {button, bytes, h} from './dom.js';
import {compare} from './diff.js';

const CUT = 16000; // characters that are shown before somebody asks for more
const PIECE = 1 << 16;

// Long texts come in pieces that the browser lays out only when they are seen.
function pieces(text) {
	const out = [];

	for (let i = 0; i < text.length; i += PIECE)
		out.push(h('span', {class: 'piece'}, text.slice(i, i + PIECE)));
	return out;
}

export function long(text, props) {
	const pre = h('pre', {tabindex: 0, ...props}, text.slice(0, CUT));

	if (text.length <= CUT)
		return pre;
	const rest = text.length - CUT;
	const more = button(`Show all: ${rest.toLocaleString()} characters more`, () => {
		more.remove();
		mark.remove();
		pre.replaceChildren(...pieces(text));
		pre.focus();
	});
	const mark = h('span', {class: 'mark'}, ' … cut here');

	pre.append(mark);
	return h('div', {}, pre, more);
}

// ---- JSON, folded ----

function leaf(value) {
	if (typeof value === 'string' && (value.length > 200 || value.includes('\n')))
		return long(value);
	return h('code', {class: `json-${value === null ? 'null' : typeof value}`}, JSON.stringify(value));
}

const MEMBERS = 200;

function members(entries, depth) {
	const list = h('ul', {class: 'json'}, entries.slice(0, MEMBERS).map(([key, value]) =>
		h('li', {}, h('span', {class: 'key'}, `${key}: `), json(value, depth + 1))));

	if (entries.length > MEMBERS) {
		const more = button(`${entries.length - MEMBERS} more`, () => {
			more.replaceWith(members(entries.slice(MEMBERS), depth));
		});

		return h('div', {}, list, more);
	}
	return list;
}

export function json(value, depth = 0) {
	if (value === null || typeof value !== 'object')
		return leaf(value);
	const entries = Object.entries(value);
	const what = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;

	if (entries.length === 0)
		return h('code', {}, Array.isArray(value) ? '[]' : '{}');
	const details = h('details', {open: depth < 2}, h('summary', {}, what));
	let made = false;
	const make = () => {
		if (details.open && !made)
			details.append(members(entries, depth));
		made ||= details.open;
	};

	details.addEventListener('toggle', make);
	make();
	return details;
}

// ---- a tool's input ----

function commandOf(input) {
	const c = input.command ?? input.cmd;

	if (typeof c === 'string')
		return c;
	return Array.isArray(c) && c.every(w => typeof w === 'string') ? c.join(' ') : null;
}

function pairsOf(input) {
	const one = e => typeof e?.old_string === 'string' && typeof e?.new_string === 'string';

	if (one(input))
		return [input];
	return Array.isArray(input.edits) && input.edits.length > 0 && input.edits.every(one)
		? input.edits : null;
}

function rest(input, without) {
	const left = Object.fromEntries(Object.entries(input).filter(([k]) => !without.includes(k)));

	return Object.keys(left).length > 0 ? json(left, 1) : null;
}

function file(input) {
	const path = input.file_path ?? input.path ?? input.notebook_path;

	return typeof path === 'string' ? h('p', {class: 'path'}, path) : null;
}

// All of it is there: a command as a command, an edit as a comparison, the rest as it is.
export function input(value) {
	if (value === null || typeof value !== 'object')
		return json(value);
	const command = commandOf(value);
	const pairs = pairsOf(value);

	if (command !== null)
		return h('div', {}, long(command, {class: 'command', 'aria-label': 'Command'}),
			rest(value, ['command', 'cmd']));
	if (pairs)
		return h('div', {}, file(value), pairs.map(p => compare(p.old_string, p.new_string)),
			rest(value, ['old_string', 'new_string', 'edits', 'file_path', 'path']));
	if (typeof value.content === 'string' && file(value))
		return h('div', {}, file(value), h('p', {class: 'note'}, `writes ${bytes(value.content.length)}`),
			long(value.content), rest(value, ['content', 'file_path', 'path']));
	if (typeof value.msg === 'string')
		return h('div', {}, h('p', {class: 'question'}, value.msg), rest(value, ['msg']));
	return json(value);
}
