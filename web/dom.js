// Making elements. Text is only ever text: nothing that koined sends is read as markup.

const SVG = 'http://www.w3.org/2000/svg';

// What would be invisible, or change the order of what is seen, is shown by its number: a command must not look
// like another. Joiners and the like that make one sign of several stay between those.
const JOINED = '(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}])\\ufe0f|(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d';
const HIDDEN = new RegExp(`(?![\\n\\t]|${JOINED}|(?<=[\\p{L}\\p{M}])[\\u200c\\u200d])` +
	'[\\p{Cc}\\p{Cf}\\p{Co}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]', 'gu');
const UNSURE = new RegExp(`(?![\\n\\t ]|${JOINED})[\\p{C}\\p{Z}\\p{Default_Ignorable_Code_Point}\\u2800]`, 'gu');
const USUAL = /^[\n\t\x20-\x7e]*$/;

function named(c) {
	const code = c.codePointAt(0);

	return code < 0x20 ? String.fromCharCode(0x2400 + code) : `\u27e8U+${code.toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
}

export function plain(text) {
	return USUAL.test(text) ? text : text.replace(HIDDEN, named);
}

// For what somebody decides about: also spaces that are none, and joiners between letters.
export function exact(text) {
	return USUAL.test(text) ? text : text.replace(UNSURE, named);
}

// So many characters at most, and no half of one.
export function start(text, n) {
	return text.slice(0, text.codePointAt(n - 1) > 0xffff ? n - 1 : n);
}

function fill(element, props, children) {
	for (const [name, value] of Object.entries(props ?? {})) {
		if (value === undefined || value === null || value === false)
			continue;
		if (name.startsWith('on'))
			element.addEventListener(name.slice(2), value);
		else if (name === 'value' || name === 'checked')
			element[name] = value;
		else
			element.setAttribute(name, value === true ? '' : String(value));
	}
	for (const child of children.flat(Infinity)) {
		if (child !== undefined && child !== null && child !== false)
			element.append(child instanceof Node ? child : plain(String(child)));
	}
	return element;
}

export function h(tag, props, ...children) {
	return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
	return fill(document.createElementNS(SVG, tag), props, children);
}

export function put(element, ...children) {
	element.replaceChildren(...children.flat(Infinity).filter(c => c || c === 0)
		.map(c => (c instanceof Node ? c : plain(String(c)))));
	return element;
}

// What is shown anew takes the focus from nobody.
export function renew(place, ...children) {
	const was = place.contains(document.activeElement) && document.activeElement;
	const mark = e => [e.tagName, e.getAttribute('href'), e.getAttribute('aria-label'), e.closest('[data-key]')?.dataset.key, e.type && e.textContent].join('\n');

	put(place, ...children);
	if (was)
		[...place.querySelectorAll(was.tagName)].find(e => mark(e) === mark(was))?.focus({preventScroll: true});
}

export function button(text, onclick, props) {
	return h('button', {type: 'button', onclick, ...props}, text);
}

let fields = 0;

// A label with its control.
export function field(label, control, props) {
	control.id ||= `field-${++fields}`;
	return h('div', {class: 'field', ...props}, h('label', {for: control.id}, label), control);
}

// Says something to people, also to those who hear the page.
export function say(text, bad) {
	const said = document.getElementById('said');

	said.textContent = plain(text);
	said.classList.toggle('bad', Boolean(bad));
	clearTimeout(say.timer);
	say.timer = setTimeout(() => { said.textContent = ''; }, bad ? 12000 : 4000);
}

// Runs what a button starts, and says what went wrong.
export async function doing(work, done) {
	try {
		const result = await work();

		if (done)
			say(done);
		return result;
	} catch (error) {
		say(error.message, true);
		return undefined;
	}
}

const UNITS = [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']];

export function span(ms) {
	const seconds = Math.max(0, Math.round(ms / 1000));
	const [size, unit] = UNITS.find(([s]) => seconds >= s) ?? [1, 's'];

	return `${Math.floor(seconds / size)} ${unit}`;
}

export function ago(iso) {
	const ms = iso ? Date.now() - Date.parse(iso) : 0;

	return !iso ? '' : ms < -1000 ? `in ${span(-ms)}` : `${span(ms)} ago`;
}

export function time(iso) {
	if (!iso)
		return '';
	const at = new Date(iso);

	return h('time', {class: 'ago', datetime: iso, title: at.toLocaleString()}, ago(iso));
}

// What time() has made grows older.
export function age(root) {
	for (const t of root.querySelectorAll('time.ago')) {
		const text = ago(t.dateTime);

		if (t.textContent !== text)
			t.textContent = text;
	}
}

export function clock(iso) {
	return iso ? new Date(iso).toLocaleTimeString([], {hour12: false}) : '';
}

export function bytes(n) {
	if (n < 1024)
		return `${n} B`;
	return n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`;
}

export function chip(text, kind) {
	return h('span', {class: `chip ${kind ?? ''}`}, text);
}

export function short(id) {
	return (id ?? '').slice(0, 8);
}

// Calls `work` soon, once for many wishes, and never twice at a time.
export function soon(work, ms = 150) {
	let timer = 0;
	let busy = false;
	let again = false;

	async function run() {
		timer = 0;
		if (busy) {
			again = true;
			return;
		}
		busy = true;
		try {
			await work();
		} catch (error) {
			if (!error.left)
				say(error.message, true);
		}
		busy = false;
		if (again) {
			again = false;
			wish();
		}
	}
	function wish() {
		timer ||= setTimeout(run, ms);
	}
	return wish;
}

export function heading(title, ...more) {
	return h('div', {class: 'head'}, h('h1', {}, title), ...more);
}

export function empty(text) {
	return h('p', {class: 'empty'}, text);
}
