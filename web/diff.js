// Two texts side by side, by lines. What is too different to compare in time is shown as replaced,
// and only so many rows are made at a time.
import {button, exact, h, start} from './dom.js';

const EFFORT = 600; // lines that may differ before comparing ends
const ROWS = 300;   // rows that are made at a time
const AROUND = 3;   // equal lines that are shown beside changes
const LINE = 2000;  // characters of a line

// Myers: the shortest way from a to b; null when it takes more than EFFORT steps.
function walk(a, b) {
	const trace = [];
	let v = new Map([[1, 0]]);

	for (let d = 0; d <= Math.min(a.length + b.length, EFFORT); d++) {
		trace.push(new Map(v));
		for (let k = -d; k <= d; k += 2) {
			let x = k === -d || (k !== d && v.get(k - 1) < v.get(k + 1)) ? v.get(k + 1) : v.get(k - 1) + 1;

			while (x < a.length && x - k < b.length && a[x] === b[x - k])
				x++;
			v.set(k, x);
			if (x >= a.length && x - k >= b.length)
				return trace;
		}
	}
	return null;
}

function back(trace, a, b) {
	const rows = [];
	let x = a.length;
	let y = b.length;

	for (let d = trace.length - 1; d >= 0; d--) {
		const v = trace[d];
		const k = x - y;
		const from = k === -d || (k !== d && v.get(k - 1) < v.get(k + 1)) ? k + 1 : k - 1;
		const px = v.get(from);
		const py = px - from;

		while (x > px && y > py)
			rows.push(['same', a[--x], b[--y]]);
		if (d > 0 && x > px)
			rows.push(['old', a[--x], null]);
		else if (d > 0)
			rows.push(['new', null, b[--y]]);
	}
	return rows.reverse();
}

export function rowsOf(before, after) {
	const a = before.split('\n');
	const b = after.split('\n');
	let head = 0;
	let tail = 0;

	while (head < a.length && head < b.length && a[head] === b[head])
		head++;
	while (tail < a.length - head && tail < b.length - head &&
		a[a.length - 1 - tail] === b[b.length - 1 - tail])
		tail++;
	const ma = a.slice(head, a.length - tail);
	const mb = b.slice(head, b.length - tail);
	const trace = walk(ma, mb);
	const middle = trace ? back(trace, ma, mb)
		: [...ma.map(l => ['old', l, null]), ...mb.map(l => ['new', null, l])];
	const same = l => ['same', l, l];

	return pair([...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)]);
}

// Lines that went and lines that came stand beside each other.
function pair(rows) {
	const out = [];

	for (let i = 0; i < rows.length;) {
		if (rows[i][0] === 'same') {
			out.push(rows[i++]);
			continue;
		}
		const old = [];
		const fresh = [];

		for (; i < rows.length && rows[i][0] !== 'same'; i++)
			(rows[i][0] === 'old' ? old : fresh).push(rows[i][0] === 'old' ? rows[i][1] : rows[i][2]);
		for (let n = 0; n < Math.max(old.length, fresh.length); n++)
			out.push(['changed', old[n] ?? null, fresh[n] ?? null]);
	}
	return out;
}

// Runs of equal lines become one row that says how many there are.
function fold(rows) {
	const near = new Uint8Array(rows.length);

	rows.forEach((row, i) => {
		if (row[0] !== 'same')
			near.fill(1, Math.max(0, i - AROUND), i + AROUND + 1);
	});
	const out = [];

	for (let i = 0; i < rows.length;) {
		if (near[i] || rows.length <= 2 * AROUND + 2) {
			out.push(rows[i++]);
			continue;
		}
		const from = i;

		while (i < rows.length && !near[i])
			i++;
		out.push(['folded', i - from, rows.slice(from, i)]);
	}
	return out;
}

function cell(kind, text) {
	const whole = exact(text ?? '');
	const shown = start(whole, LINE);
	const left = whole.slice(shown.length);

	return h('td', {class: text === null ? 'none' : kind}, shown,
		left && button(`… ${left.length.toLocaleString()} more`, e => e.target.replaceWith(left)));
}

function row([kind, a, b]) {
	const changed = kind === 'changed';

	return h('tr', {}, cell(changed && 'old', a), cell(changed && 'new', b));
}

function folded(text, rows) {
	const body = h('tbody', {class: 'folded'}, h('tr', {}, h('td', {colspan: 2}, button(text, () => grow(body, rows)))));

	return body;
}

// Lines that changed together are a body of their own: on a narrow screen the old ones stand above the new ones.
function bodies(rows) {
	const out = [];
	let last = null;

	for (const r of rows) {
		if (r[0] === 'folded')
			out.push(folded(`${r[1]} unchanged lines`, r[2]));
		else if (r[0] === last)
			out.at(-1).append(row(r));
		else
			out.push(h('tbody', {class: r[0]}, row(r)));
		last = r[0];
	}
	return out;
}

// In place of a body, these; some at a time.
function grow(body, rows) {
	body.replaceWith(...bodies(rows.slice(0, ROWS)), ...(rows.length > ROWS ? [folded(`${rows.length - ROWS} more rows`, rows.slice(ROWS))] : []));
}

export function compare(before, after) {
	const first = h('tbody', {});
	const table = h('table', {}, h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'before'), h('th', {scope: 'col'}, 'after'))), first);

	grow(first, fold(rowsOf(before, after)));
	return h('div', {class: 'diff', tabindex: 0, role: 'region', 'aria-label': 'Changes'}, table);
}
