// What is remembered: found as you type, why it was found, changed, its history.
import {button, bytes, chip, doing, empty, field, h, heading, put, renew, say, soon, time} from './dom.js';
import {call, listen} from './link.js';

export const title = 'Memory';

const LIMIT = 30;
const LIMIT_MAX = 1000;
const PARTS = {words: 'words', alike: 'similar words', context: 'nearby memories', names: 'names', dates: 'times', kind: 'kind of answer'};

const listOf = answer => (Array.isArray(answer) ? answer : answer.entries ?? []);

// The words that were found are marked, wherever they begin a word.
function marked(text, words) {
	const escaped = (words ?? []).filter(Boolean).map(w => w.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));

	if (escaped.length === 0)
		return [text];
	const parts = text.split(new RegExp(`((?<![\\p{L}\\p{N}])(?:${escaped.join('|')})[\\p{L}\\p{N}]*)`, 'giu'));

	return parts.map((p, i) => (i % 2 ? h('mark', {}, p) : p));
}

function why(entry) {
	if (!entry.why)
		return null;
	const parts = Object.keys(PARTS).filter(k => entry.why[k] > 0.005);
	const words = parts.map(k => `${PARTS[k]} ${Math.round(entry.why[k] * 100)}%`).join(', ');

	return h('p', {class: 'note'}, `found by ${words}`);
}

function history(entry, place) {
	return button('History', () => doing(async () => {
		const result = await call('memory.history', {memory_id: entry.id});
		const rows = listOf(result);

		put(place, h('ol', {class: 'rows'}, rows.map(v => h('li', {class: 'row'}, h('span', {class: 'gist'}, v.content),
			h('span', {class: 'meta'}, 'from ', time(v.valid_from ?? v.created_at), v.valid_until && ' until ', v.valid_until && time(v.valid_until))))));
	}));
}

function card(entry, changed) {
	const place = h('div', {});
	const text = h('p', {class: 'question'}, marked(entry.content, entry.why?.matched));
	const sure = button('Delete', () => {
		if (sure.dataset.sure) {
			doing(() => call('memory.delete', {memory_id: entry.id}), 'Memory deleted').then(changed);
			return;
		}
		sure.dataset.sure = 'yes';
		sure.textContent = 'Confirm deletion';
	}, {class: 'bad'});
	const edit = button('Edit', () => {
		const area = h('textarea', {rows: 3, value: entry.content});

		put(place, field('Content', area), button('Save', () => doing(() => call('memory.update',
			{memory_id: entry.id, content: area.value}), 'Memory saved').then(changed), {class: 'good'}));
		area.focus();
	});

	return h('article', {class: 'card', 'aria-label': 'Memory', 'data-key': entry.id}, text,
		h('p', {class: 'who'}, entry.category && chip(entry.category), entry.user_id && `user ${entry.user_id}`,
			entry.project && h('span', {class: 'path'}, entry.project), entry.source, time(entry.updated_at ?? entry.created_at)),
		why(entry), h('div', {class: 'actions'}, edit, history(entry, place), sure), place);
}

function adder(changed) {
	const text = h('textarea', {rows: 2});

	return h('details', {class: 'adder'}, h('summary', {}, 'Add a memory'), field('Content', text),
		h('p', {}, button('Add', () => doing(async () => {
			await call('memory.add', {content: text.value});
			text.value = '';
			changed();
		}, 'Memory added'), {class: 'good'})));
}

// ---- out and in ----

async function all() {
	const lines = [];
	let cursor;

	for (;;) {
		const page = await call('memory.export', cursor ? {cursor} : {});

		if (page.entries.length === 0)
			return lines;
		lines.push(...page.entries.map(e => JSON.stringify(e)));
		cursor = page.cursor;
	}
}

function exporter() {
	return button('Export', () => doing(async () => {
		const lines = await all();
		const url = URL.createObjectURL(new Blob([`${lines.join('\n')}\n`], {type: 'application/jsonl'}));
		const a = h('a', {href: url, download: 'koine-memories.jsonl'});

		a.click();
		URL.revokeObjectURL(url);
		say(`${lines.length} memories exported`);
	}));
}

function importer(changed) {
	const file = h('input', {type: 'file', accept: '.jsonl,.json', onchange: () => doing(async () => {
		const text = await file.files[0].text();
		const entries = text.trim().startsWith('[') ? JSON.parse(text) : text.split('\n').filter(l => l.trim()).map(l => JSON.parse(l));
		let n = 0;

		for (let i = 0; i < entries.length; i += 500)
			n += (await call('memory.import', {entries: entries.slice(i, i + 500)})).imported;
		say(`${n} memories imported (${bytes(text.length)})`);
		file.value = '';
		changed();
	})});

	return field('Import', file);
}

export function enter(root, start) {
	const search = h('input', {type: 'search', value: start.query.get('q') ?? '', oninput: () => {
		limit = LIMIT;
		keep();
		wish();
	}});
	const list = h('div', {class: 'cards'});
	let limit = LIMIT;

	put(root, heading('Memory'), field('Search', search), adder(() => wish()), list,
		h('div', {class: 'tools'}, exporter(), importer(() => wish())));

	function keep() {
		const q = search.value;

		window.history.replaceState(null, '', q ? `#/memory?q=${encodeURIComponent(q)}` : '#/memory');
	}

	async function read() {
		const query = search.value.trim();
		const found = query ? await call('memory.search', {query, limit, explain: true})
			: await call('memory.list', {limit});
		const rows = listOf(found);
		const more = rows.length === limit && limit < LIMIT_MAX && button('Show more', () => {
			limit = Math.min(4 * limit, LIMIT_MAX);
			wish();
		});

		renew(list, rows.length === 0 ? empty(query ? 'No memories found.' : 'No memories yet.') : rows.map(e => card(e, () => wish())), more);
	}

	const wish = soon(read, 80);
	const stop = listen((kind, value) => {
		const changed = kind === 'event' ? value.type.startsWith('memory.') : kind === 'state' && value === 'up';

		if (changed && !list.querySelector('textarea, ol'))
			wish();
	});

	wish();
	return {
		go(place) {
			search.value = place.query.get('q') ?? '';
			wish();
		},
		close: stop,
	};
}
