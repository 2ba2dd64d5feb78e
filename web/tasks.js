// What agents work on while nobody waits: board or list, and what is kept back.
import {button, chip, doing, empty, field, h, heading, put, soon, time} from './dom.js';
import {call, listen} from './link.js';
import {detail, editor, exit, href, key, output, raise, ran, stash, state, waits} from './task.js';

export const title = 'Tasks';

const STATES = ['queued', 'running', 'completed', 'failed', 'cancelled'];
const FILTERS = [...STATES, 'skipped']; // the board has skipped tasks among the failed ones
const PAGE = 100;
const PAGE_MAX = 1000;
const SHOWN_ALONE = 20; // tasks of older pages that are asked for one by one
const LOOK_MS = 1000;

function column(t) {
	return t.state === 'skipped' ? 'failed' : t.state;
}

function gist(text) {
	return (text ?? '').split('\n').find(l => l.trim()) ?? '';
}

// Beside its state: why it waits, unless the state says that, or how it has ended.
function more(t)
{
	return t.waits          ? (state(t) === 'queued' ? [ waits(t) ] : [])
	       : t.completed_at ? [ ran(t), exit(t) ].filter(Boolean)
				: [];
}

function card(t) {
	return h('li', {},
		 h('a', {class : 'row', href : href(t), 'data-key' : key(t)},
		   chip(state(t), t.state), h('span', {class : 'id'}, t.id),
		   h('span', {class : 'gist'}, gist(t.prompt)),
		   h('span', {class : 'meta'}, t.label && chip(t.label), t.group && chip(t.group),
		     t.priority !== 0 && `priority ${t.priority} · `, more(t).map(s => `${s} · `),
		     time(t.completed_at ?? t.started_at ?? t.created_at)),
		   t.state === 'running' && t.last_line &&
			   h('span', {class : 'last'}, t.last_line)));
}

// The rows of a list, which stay as long as what they show does: the focus stays, too, and thousands
// are not made anew for a change of one.
function rows() {
	const list = h('ul', {class: 'rows'});
	let made = new Map();

	function draw(tasks) {
		const now = new Map();
		let at = list.firstChild;

		for (const t of tasks) {
			const text = JSON.stringify(t);
			const was = made.get(key(t));
			const row = was?.text === text ? was : {text, element: card(t)};

			if (was && row !== was) {
				const focused = was.element.contains(document.activeElement);

				if (at === was.element)
					at = row.element;
				was.element.replaceWith(row.element);
				if (focused)
					row.element.firstChild.focus({preventScroll: true});
			}
			now.set(key(t), row);
			if (row.element === at)
				at = at.nextSibling;
			else
				list.insertBefore(row.element, at);
		}
		for (const [k, row] of made)
			if (!now.has(k))
				row.element.remove();
		made = now;
	}
	return {list, draw};
}

// ---- a new one ----

function adder(after) {
	const prompt = h('textarea', {rows: 3, required: true});
	const fields = {runner: h('input', {autocomplete: 'off'}), group: h('input', {autocomplete: 'off'}),
		priority: h('input', {type: 'number', value: '0', step: 1}), after: h('input', {value: after ?? '', autocomplete: 'off'}),
		cwd: h('input', {autocomplete: 'off'})};
	const add = () => doing(async () => {
		const params = {prompt: prompt.value, priority: Number(fields.priority.value) || 0};

		if (!prompt.value.trim())
			throw new Error('Enter a prompt first');
		for (const name of ['runner', 'group', 'cwd'])
			if (fields[name].value.trim())
				params[name] = fields[name].value.trim();
		if (fields.after.value.trim())
			params.after = fields.after.value.split(/[\s,]+/).filter(Boolean);
		const made = await call('task.add', params);

		prompt.value = '';
		location.hash = href(made);
	}, 'Task added');

	return h('details', {class: 'adder', open: Boolean(after)}, h('summary', {}, 'Add a task'),
		field('Prompt', prompt), h('div', {class: 'grid'}, field('Agent', fields.runner), field('Group', fields.group),
			field('Priority', fields.priority), field('After (task ids)', fields.after), field('Folder', fields.cwd)),
		button('Add', add, {class: 'good'}));
}

// ---- what is kept back ----

function pausing(paused, group) {
	const params = group === undefined ? {} : {group};
	const name = group === undefined ? 'all tasks' : `group ${group}`;

	return doing(() => call(paused ? 'task.resume' : 'task.pause', params), `${name}: ${paused ? 'resumed' : 'paused; running tasks continue'}`);
}

function groups() {
	const list = h('ul', {class: 'rows'});
	const element = h('details', {class: 'adder', ontoggle: () => wish()}, h('summary', {}, 'Groups'), list);

	function group(g) {
		const some = STATES.filter(s => g[s] > 0).map(s => `${g[s]} ${s}`).join(', ');

		return h('li', {class: 'row'}, h('span', {class: 'id'}, g.group), g.paused && chip('paused', 'queued'),
			h('span', {class: 'gist note'}, some || 'no tasks'),
			button(g.paused ? 'Resume' : 'Pause', () => pausing(g.paused, g.group),
				{'aria-label': `${g.paused ? 'Resume' : 'Pause'} group ${g.group}`, 'data-group': g.group}));
	}

	const wish = soon(async () => {
		if (!element.open)
			return;
		const focused = document.activeElement?.dataset?.group;
		const found = (await call('task.groups')).groups;

		put(list, found.length === 0 ? h('li', {class: 'note'}, 'No groups.') : found.map(group));
		if (focused !== undefined)
			[...list.querySelectorAll('button')].find(b => b.dataset.group === focused)?.focus();
	});

	return {element, read: wish};
}

// ---- the room ----

export function enter(root, start) {
	const view = h('div', {});
	const tools = h('div', {class: 'tools'});
	const notice = h('p', {class: 'notice', role: 'status', hidden: true});
	const list = h('div', {});
	const shown = h('p', {class: 'note', role: 'status'});
	const more = button('Show more', () => further());
	const pane = h('section', {class: 'pane', 'aria-label': 'Task', hidden: true});
	const kept = groups();
	const pauser = button('Pause all', () => pausing(paused));
	const sight = new IntersectionObserver(e => e.some(i => i.isIntersecting) && further());
	const stale = new Set(); // keys of tasks that have changed
	let parts = null; // rows by column
	let to = start;
	let tasks = [];
	let next = null; // where the next page begins
	let counts = {};
	let paused = false;
	let open = null; // {key, out, task, editing}
	let editing = false; // the task that is about to be opened
	let looking = 0;
	let loading = false;
	let board = localStorage.getItem('board') === 'on' && innerWidth > 900;

	put(root, heading('Tasks'), view);

	function switcher() {
		const wanted = to.query.get('state') ?? '';
		const choose = h('select', {onchange: () => { location.hash = choose.value ? `#/tasks?state=${choose.value}` : '#/tasks'; }},
			h('option', {value: ''}, 'all'), FILTERS.map(s => h('option', {value: s}, s)));

		choose.value = wanted;
		return put(tools, field('State', choose), button(board ? 'List' : 'Board', () => {
			board = !board;
			localStorage.setItem('board', board ? 'on' : 'off');
			parts = null;
			switcher();
			draw();
		}), pauser);
	}

	function lay() {
		parts = new Map((board ? STATES : ['']).map(s => [s, {...rows(), count: h('span', {class: 'note'})}]));
		put(list, board ? h('div', {class: 'board'}, [...parts].map(([s, p]) =>
			h('section', {'aria-label': s}, h('h2', {}, `${s} `, p.count), p.list))) : parts.get('').list, shown, more);
		sight.disconnect();
		sight.observe(more);
	}

	function draw() {
		if (tasks.length === 0) {
			parts = null;
			put(list, empty('No tasks. Add a task above, or with koine task add.'));
			return;
		}
		if (!parts)
			lay();
		for (const [s, p] of parts) {
			p.draw(s ? tasks.filter(t => column(t) === s) : tasks);
			p.count.textContent = counts[s] ?? '';
		}
		more.hidden = next === null;
		const total = counts[to.query.get('state') ?? 'total'] ?? tasks.length;

		shown.textContent = next === null ? '' : `${tasks.length} of ${total}`;
	}

	function banner(found) {
		paused = found.paused;
		pauser.textContent = paused ? 'Resume all' : 'Pause all';
		const text = paused ? 'All tasks are paused. Running tasks continue; no new task starts.'
			: found.paused_groups.length > 0 ? `Paused: ${found.paused_groups.join(', ')}` : '';

		notice.hidden = !text;
		if (notice.textContent !== text)
			put(notice, text);
	}

	// ---- pages ----

	function page(limit, before) {
		const wanted = to.query.get('state');

		return call('task.find', {limit, lines: before === undefined, ...(before && {before}), ...(wanted && {state: wanted})});
	}

	async function further() {
		if (loading || next === null)
			return;
		loading = true;
		await doing(async () => {
			const of = to;
			const found = await page(PAGE, next);

			if (of !== to)
				return;
			const known = new Set(tasks.map(key));

			tasks = tasks.concat(found.tasks.filter(t => !known.has(key(t))));
			next = found.next;
			draw();
		});
		loading = false;
		// It may still be in sight: then nothing would tell.
		if (next !== null) {
			sight.unobserve(more);
			sight.observe(more);
		}
	}

	// As many as there were, from the store.
	async function all(n) {
		let found = await page(Math.min(Math.max(n, PAGE), PAGE_MAX));
		const first = found;
		let some = found.tasks;

		while (some.length < n && found.next !== null) {
			found = await page(Math.min(n - some.length, PAGE_MAX), found.next);
			some = some.concat(found.tasks);
		}
		return {...first, tasks: some, next: found.next};
	}

	// The newest, and of the others those that have changed.
	async function merged() {
		const told = [...stale];

		stale.clear();
		const first = await page(PAGE);
		const fresh = new Set(first.tasks.map(key));
		const last = first.tasks.at(-1);
		const at = last ? tasks.findIndex(t => key(t) === key(last)) : -1;
		const older = tasks.slice(at + 1).filter(t => !fresh.has(key(t)));
		const changed = told.filter(k => !fresh.has(k));
		const known = new Set(older.map(key));

		if (tasks.length <= PAGE || first.next === null)
			return first;
		if (at < 0 || changed.length > SHOWN_ALONE || (to.query.get('state') && changed.some(k => !known.has(k))))
			return all(tasks.length);
		for (const k of changed.filter(c => known.has(c))) {
			const [project, id] = k.split('\n');
			const t = await call('task.show', {id, project});
			const i = older.findIndex(o => key(o) === k);

			older[i] = Object.fromEntries(Object.keys(older[i]).map(name => [name, t[name] ?? older[i][name]]));
			older[i].waits = t.waits;
		}
		const wanted = to.query.get('state');

		return {...first, tasks: first.tasks.concat(older.filter(t => !wanted || t.state === wanted)), next};
	}

	async function read() {
		const of = to;
		const found = await merged();

		if (of !== to)
			return;
		({tasks, next} = found);
		counts = found.counts ?? {};
		banner(found);
		kept.read();
		if (to.rest[0])
			await one();
		else
			draw();
	}

	// ---- one of them ----

	async function one() {
		const id = to.rest[0];
		const project = to.query.get('project');
		const task = await call('task.show', project ? {id, project} : {id});

		if (open?.key !== key(task))
			open = {key: key(task), out: output(task)};
		open.task = task;
		open.out.read();
		if (!open.editing && open.shown !== JSON.stringify({...task, output_bytes: 0})) {
			open.shown = JSON.stringify({...task, output_bytes: 0});
			const focused = document.activeElement?.closest?.('.pane button')?.textContent;

			put(pane, detail(task, tasks, open.out, edit));
			if (focused)
				[...pane.querySelectorAll('button')].find(b => b.textContent === focused)?.focus();
		}
		if (editing)
			edit();
		editing = false;
		clearTimeout(looking);
		if (task.state === 'running' || task.state === 'queued')
			looking = setTimeout(() => (document.hidden ? null : wish()), LOOK_MS);
	}

	// What is typed stays, whatever becomes of the task meanwhile.
	function edit() {
		if (!open || open.editing || open.task.state !== 'queued')
			return;
		open.editing = true;
		pane.querySelector('.actions').after(editor(open.task, () => {
			open.editing = false;
			open.shown = null;
			wish();
		}));
	}

	const wish = soon(read);

	function go(place) {
		const filter = place.query.get('state') !== to.query.get('state');

		to = place;
		open = null;
		pane.hidden = !to.rest[0];
		list.hidden = Boolean(to.rest[0]);
		if (filter && !to.rest[0])
			tasks = [];
		switcher();
		put(view, to.rest[0] ? pane : [adder(to.query.get('after')), kept.element, tools, notice, list]);
		pane.replaceChildren();
		wish();
	}

	const stop = listen((kind, value) => {
		if (kind === 'event' && value.type.startsWith('task.')) {
			if (value.run_id)
				stale.add(key({project: value.project, id: value.run_id}));
			if (value.type === 'task.cleaned')
				tasks = tasks.slice(0, PAGE);
			wish();
		}
		if (kind === 'state' && value === 'up')
			wish();
	});

	// The task that a key is about: the open one, or that of the row with the focus.
	function chosen() {
		const at = document.activeElement?.dataset?.key;

		return open?.task ?? tasks.find(t => key(t) === at);
	}

	function move(by) {
		const all = [...list.querySelectorAll('.row')];
		const at = all.indexOf(document.activeElement);

		all[Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
	}

	const keys = {
		j: () => move(1),
		k: () => move(-1),
		p: () => pausing(paused),
		s: t => t?.state === 'queued' && stash(t),
		'+': t => t?.state === 'queued' && raise(t, 1),
		'-': t => t?.state === 'queued' && raise(t, -1),
		e: t => {
			if (open || !t) {
				edit();
				return;
			}
			editing = t.state === 'queued';
			location.hash = href(t);
		},
	};

	go(start);
	return {
		go,
		close() {
			stop();
			sight.disconnect();
			clearTimeout(looking);
		},
		key(e) {
			keys[e.key]?.(chosen());
			return e.key in keys;
		},
	};
}
