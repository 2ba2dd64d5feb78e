// What happens, as it happens; and the rules that act on it. The filter is kept in the address.
import {button, chip, clock, doing, empty, field, h, heading, put, renew, soon, time} from './dom.js';
import {call, listen} from './link.js';
import {json} from './show.js';

export const title = 'Events and rules';
export const brief = 'Events';

const LIMIT = 100;
const SHOWN = 500;
const GIST = 140;
const LONG_ID = /\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

function words(o) {
	return Object.entries(o ?? {}).filter(([, v]) => v !== null && v !== '').map(([k, v]) => `${k} ${typeof v === 'object' ? JSON.stringify(v) : v}`).join(', ');
}

// In one line: what is cut ends with a mark, and the whole is inside.
function gist(data) {
	const text = words(data).replace(LONG_ID, '$1') || 'no data';

	return text.length > GIST ? `${text.slice(0, GIST)} …` : text;
}

function line(e) {
	const details = h('details', {}, h('summary', {}, gist(e.data)));

	details.addEventListener('toggle', () => details.childElementCount > 1 || details.append(json(e.data ?? {})));
	return h('tr', {'data-seq': e.seq}, h('td', {}, h('time', {datetime: e.time, title: e.time}, clock(e.time))),
		h('td', {}, chip(e.type)), h('td', {}, details));
}

function fits(e, type) {
	if (!type)
		return true;
	const parts = type.split('*').map(p => p.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));

	return new RegExp(`^${parts.join('.*')}$`).test(e.type);
}

// ---- rules ----

function rule(r, changed) {
	const of = r.project ? {project: r.project} : {};
	const box = h('input', {type: 'checkbox', role: 'switch', checked: r.enabled, onchange: () => doing(() =>
		call(box.checked ? 'automation.enable' : 'automation.disable', {ruleId: r.rule, ...of})).then(changed)});

	return h('li', {class: 'row', 'data-key': `${r.project ?? ''} ${r.rule}`}, h('label', {class: 'switch'}, box, ' ', h('strong', {}, r.rule)),
		h('span', {class: 'gist'}, `${words(r.trigger)} → ${words(r.action)}`),
		h('span', {class: 'meta'}, r.next_at ? `next ${new Date(r.next_at).toLocaleString()} ` : '', r.fired ? `ran ${r.fired} times, last ` : '', r.fired_at && time(r.fired_at)),
		button('Run now', () => doing(() => call('automation.run', {rule: r.rule, ...of}), `${r.rule} started`)));
}

export function enter(root, start) {
	const type = h('input', {type: 'search', list: 'types', placeholder: 'task.*', value: start.query.get('type') ?? '', oninput: () => {
		window.history.replaceState(null, '', type.value ? `#/events?type=${encodeURIComponent(type.value)}` : '#/events');
		wish();
	}});
	const hold = h('input', {type: 'checkbox'});
	const body = h('tbody', {});
	const rules = h('ul', {class: 'rows'});
	const types = h('datalist', {id: 'types'}, ['approval.*', 'task.*', 'session.*', 'memory.*', 'chat.*', 'agent.*'].map(t => h('option', {value: t})));

	put(root, heading('Events and rules'), h('h2', {}, 'Rules'), rules, h('h2', {}, 'Events'),
		h('div', {class: 'tools'}, field('Type', type), types, h('label', {class: 'switch'}, hold, ' Pause updates')),
		h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Events'}, h('table', {class: 'events'}, h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'Time'),
			h('th', {scope: 'col'}, 'Type'), h('th', {scope: 'col'}, 'Data'))), body)));

	async function read() {
		const filter = type.value.trim();
		const page = await call('event.list', {limit: LIMIT, ...(filter && {types: [filter]})});

		put(body, page.events.reverse().map(line));
	}

	async function readRules() {
		const found = await call('automation.rules');

		renew(rules, found.rules.length === 0 ? empty('No rules. See [rule NAME] in koine.conf(5).') : found.rules.map(r => rule(r, wishRules)));
	}

	const wish = soon(read, 120);
	const wishRules = soon(readRules);
	const stop = listen((kind, value) => {
		if (kind === 'state' && value === 'up' && !hold.checked)
			wish();
		if (kind !== 'event')
			return;
		if (value.type.startsWith('automation.') || value.type.startsWith('rule.'))
			wishRules();
		if (hold.checked || !fits(value, type.value.trim()))
			return;
		if (Number(body.firstElementChild?.dataset.seq ?? 0) < value.seq)
			body.prepend(line(value));
		while (body.childElementCount > SHOWN)
			body.lastElementChild.remove();
	});

	wish();
	wishRules();
	return {
		go(place) {
			type.value = place.query.get('type') ?? '';
			wish();
		},
		close: stop,
	};
}
