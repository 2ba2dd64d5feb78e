// What agents want to do, and what they printed, so that people can read it.
import {button, bytes, exact, h, start} from './dom.js';
import {compare} from './diff.js';

const CUT = 16000; // characters that are shown before somebody asks for more
const PIECE = 1 << 16;

// Long texts come in pieces that the browser lays out only when they are seen.
function pieces(text) {
	const out = [];

	for (let left = text; left; left = left.slice(out.at(-1).length))
		out.push(start(left, PIECE));
	return out.map(piece => h('span', {class: 'piece'}, piece));
}

export function long(text, props) {
	const shown = start(text, CUT);
	const pre = h('pre', {tabindex: 0, ...props}, shown);

	if (text.length <= CUT)
		return pre;
	const rest = text.length - shown.length;
	const more = button(`Show ${rest.toLocaleString()} more characters`, () => {
		more.remove();
		mark.remove();
		pre.replaceChildren(...pieces(text));
		pre.focus();
	});
	const mark = h('span', {class: 'mark'}, ' … (cut)');

	pre.append(mark);
	return h('div', {}, pre, more);
}

// A box that scrolls says so: on a phone nothing else does, and what is asked may stand below blank lines.
const boxes = new ResizeObserver(all => all.forEach(({target}) => {
	target.nextElementSibling.hidden = target.scrollHeight <= target.clientHeight + 1;
}));

function boxed(element) {
	const place = h('div', {}, element);
	const box = place.querySelector('pre, .diff');

	box.after(h('p', {class: 'note part', hidden: true}, 'Scroll this box to see the rest.'));
	boxes.observe(box);
	return place;
}

// ---- JSON, folded ----

function leaf(value) {
	if (typeof value === 'string' && (value.length > 200 || value.includes('\n')))
		return boxed(long(exact(value)));
	return h('code', {class: `json-${value === null ? 'null' : typeof value}`}, exact(JSON.stringify(value)));
}

const MEMBERS = 200;
const SMALL = 1000; // characters of what is not folded
const SHORT = 120;  // characters of a list in one line

function members(entries, depth) {
	const list = h('ul', {class: 'json'}, entries.slice(0, MEMBERS).map(([key, value]) =>
		h('li', {}, h('span', {class: 'key'}, `${exact(key)}: `), json(value, depth + 1))));

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

	if (Array.isArray(value) && entries.length > 0 && value.every(v => v === null || typeof v !== 'object') && JSON.stringify(value).length < SHORT)
		return h('code', {}, exact(JSON.stringify(value, null, 1).replace(/\n */g, ' ')));
	if (entries.length === 0)
		return h('code', {}, Array.isArray(value) ? '[]' : '{}');
	const details = h('details', {open: depth < 2 || JSON.stringify(value).length < SMALL}, h('summary', {}, what));
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

const PATHS = ['file_path', 'filePath', 'path', 'notebook_path'];
const PAIRS = [['old_string', 'new_string'], ['oldString', 'newString'], ['old_str', 'new_str']];
const isText = v => typeof v === 'string';
const pairOf = v => PAIRS.find(names => names.every(n => isText(v?.[n])));

// A command's words as a shell would want them, so that no word looks like two.
const quoted = w => (/^[\w@%+=:,./-]+$/.test(w) ? w : `'${w.replaceAll("'", "'\\''")}'`);

// Each of these shows some members its own way, and says which: [names, element]; or nothing.

function asCommand(v) {
	const name = ['command', 'cmd'].find(k => isText(v[k]) || (Array.isArray(v[k]) && v[k].length > 0 && v[k].every(isText)));

	return name && [[name], boxed(long(exact(isText(v[name]) ? v[name] : v[name].map(quoted).join(' ')), {class: 'command', 'aria-label': 'Command'}))];
}

function change(v, names) {
	return [boxed(compare(v[names[0]], v[names[1]])), rest(v, names)];
}

function asEdit(v) {
	const names = pairOf(v);

	if (names)
		return [names, boxed(compare(v[names[0]], v[names[1]]))];
	return Array.isArray(v.edits) && v.edits.length > 0 && v.edits.every(pairOf) &&
		[['edits'], h('div', {}, v.edits.map(e => change(e, pairOf(e))))];
}

function asFile(v) {
	return isText(v.content) && PATHS.some(k => isText(v[k])) &&
		[['content'], h('div', {}, h('p', {class: 'note'}, `writes ${bytes(new Blob([v.content]).size)}`), boxed(long(exact(v.content))))];
}

function asQuestion(v) {
	return isText(v.msg) && [['msg'], h('p', {class: 'question'}, exact(v.msg))];
}

function rest(v, shown) {
	const left = Object.entries(v).filter(([k]) => !shown.includes(k));

	return left.length > 0 && members(left, 1);
}

// What a browser would read otherwise than it was written: the text.
export function asked(approval) {
	return approval.input_text === undefined ? input(approval.input)
		: h('div', {}, h('p', {class: 'notice'}, 'The input contains duplicate names or very long numbers. Exact text of the input:'), boxed(long(exact(approval.input_text))));
}

// All of it is there: a command as a command, an edit as a comparison, the rest as it is.
export function input(value) {
	if (value === null || typeof value !== 'object' || Array.isArray(value))
		return json(value);
	const [shown, element] = asCommand(value) || asEdit(value) || asFile(value) || asQuestion(value) || [];

	if (!element)
		return Object.keys(value).length > 0 ? members(Object.entries(value), 1) : json(value);
	const path = PATHS.find(k => isText(value[k]) && !shown.includes(k) && shown[0] !== 'command' && shown[0] !== 'cmd');

	return h('div', {}, path && h('p', {class: 'path'}, exact(value[path])), element, rest(value, path ? [...shown, path] : shown));
}
