// What agents work on while nobody waits: board or list, output as it comes, what follows what.
import {button, bytes, chip, doing, empty, field, h, heading, put, soon, svg, time} from './dom.js';
import {call, listen} from './link.js';

export const title = 'Tasks';

const STATES = ['queued', 'running', 'completed', 'failed', 'cancelled'];
const PAGE = 100;
const TAIL = 1 << 16;
const LOOK_MS = 1000;

const key = t => `${t.project ?? ''}\n${t.id}`;
const href = t => `#/tasks/${encodeURIComponent(t.id)}${t.project ? `?project=${encodeURIComponent(t.project)}` : ''}`;
const of = t => (t.project ? {id: t.id, project: t.project} : {id: t.id});

function gist(text) {
	return (text ?? '').split('\n').find(l => l.trim()) ?? '';
}

function card(t) {
	return h('li', {}, h('a', {class: 'row', href: href(t)},
		chip(t.held ? 'held' : t.state, t.state), h('span', {class: 'id'}, t.id),
		h('span', {class: 'gist'}, gist(t.prompt)),
		h('span', {class: 'meta'}, t.group && chip(t.group), t.priority !== 0 && `priority ${t.priority} `,
			time(t.completed_at ?? t.started_at ?? t.created_at)),
		t.state === 'running' && t.last_line && h('span', {class: 'last'}, t.last_line)));
}

// ---- what comes after what ----

function box(t, x, y, here) {
	const node = svg('a', {href: href(t), 'aria-label': `${t.id}, ${t.state ?? 'not in the list'}`},
		svg('rect', {x, y, width: 150, height: 34, rx: 8, class: `node ${t.state ?? ''} ${here ? 'here' : ''}`}),
		svg('text', {x: x + 12, y: y + 22}, `${t.id} · ${t.state ?? '?'}`));

	return node;
}

function picture(task, all) {
	const known = id => all.find(t => t.id === id && (t.project ?? '') === (task.project ?? ''))
		?? {id, project: task.project};
	const before = task.after.map(known).slice(0, 12);
	const behind = all.filter(t => t.after?.includes(task.id) && (t.project ?? '') === (task.project ?? '')).slice(0, 12);

	if (before.length + behind.length === 0)
		return null;
	const rows = Math.max(before.length, behind.length, 1);
	const height = rows * 46 + 8;
	const middle = height / 2 - 17;
	const at = (i, n) => (height - n * 46) / 2 + i * 46 + 6;
	const line = (x1, y1, x2, y2) => svg('path', {class: 'edge',
		d: `M${x1} ${y1 + 17}C${x1 + 25} ${y1 + 17} ${x2 - 25} ${y2 + 17} ${x2} ${y2 + 17}`});

	return h('figure', {}, h('figcaption', {}, 'What comes after what'),
		svg('svg', {viewBox: `0 0 550 ${height}`, role: 'group', 'aria-label': 'Tasks before and behind this one'},
			before.map((t, i) => [line(150, at(i, before.length), 200, middle), box(t, 0, at(i, before.length))]),
			behind.map((t, i) => [line(350, middle, 400, at(i, behind.length)), box(t, 400, at(i, behind.length))]),
			box(task, 200, middle, true)));
}

// ---- one task ----

function output(task) {
	const pre = h('pre', {class: 'output', tabindex: 0, 'aria-label': 'Output'});
	const earlier = button('Earlier output', () => doing(async () => {
		const from = Math.max(0, first - TAIL);
		const piece = await call('task.output', {...of(task), offset: from, max: first - from});
		const height = pre.scrollHeight;

		pre.prepend(h('span', {class: 'piece'}, piece.text));
		pre.scrollTop += pre.scrollHeight - height;
		first = piece.offset;
		earlier.hidden = first === 0 || piece.offset > from;
	}));
	const size = h('span', {class: 'note'});
	let first = 0;
	let next = -TAIL;

	async function read() {
		const piece = await call('task.output', {...of(task), offset: next, max: 1000000});
		const bottom = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 40;

		if (next < 0)
			first = piece.offset;
		if (piece.text)
			pre.append(h('span', {class: 'piece'}, piece.text));
		while (pre.childElementCount > 400)
			pre.firstElementChild.remove();
		next = piece.next;
		earlier.hidden = first === 0;
		size.textContent = piece.end === 0 ? 'nothing printed yet' : bytes(piece.end);
		if (bottom)
			pre.scrollTop = pre.scrollHeight;
		if (piece.next < piece.end)
			await read();
	}

	return {element: h('section', {}, h('h3', {}, 'Output ', size), earlier, pre), read: soon(read, 20)};
}

function facts(t) {
	const rows = [['Project', t.project || null], ['Group', t.group], ['Agent', t.agent], ['Runner', t.runner],
		['Priority', t.priority], ['Folder', t.cwd], ['Attempts', `${t.attempts} of ${t.max_attempts}`],
		['Began', time(t.started_at)], ['Ended', time(t.completed_at)], ['Exit', t.exit_status ?? t.signal],
		['Starts', t.not_before ? time(t.not_before) : null]];

	return h('dl', {class: 'facts'}, rows.filter(([, v]) => v !== null && v !== undefined && v !== '')
		.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v))));
}

function detail(task, all, out) {
	const act = (method, name, done) => button(name, () => doing(() => call(method, of(task)), done));
	const open = task.state === 'queued' || task.state === 'running';

	return [h('p', {}, h('a', {href: '#/tasks'}, '← all tasks')),
		h('h2', {}, task.id, ' ', chip(task.held ? 'held' : task.state, task.state)),
		h('div', {class: 'actions'},
			open && button('Cancel', () => doing(() => call('task.cancel', {taskId: task.id, project: task.project || undefined}), 'It is told to end'), {class: 'bad'}),
			task.held && act('task.release', 'Release', 'Released'),
			(task.state === 'failed' || task.state === 'cancelled') && act('task.retry', 'Try again', 'Queued again'),
			button('Add one after it', () => { location.hash = `#/tasks?after=${encodeURIComponent(task.id)}`; })),
		h('pre', {class: 'prompt', tabindex: 0, 'aria-label': 'Prompt'}, task.prompt), facts(task),
		task.error && h('section', {}, h('h3', {}, 'Error'), h('pre', {class: 'error', tabindex: 0}, task.error)),
		picture(task, all), out.element];
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
			throw new Error('A task needs a prompt');
		for (const name of ['runner', 'group', 'cwd'])
			if (fields[name].value.trim())
				params[name] = fields[name].value.trim();
		if (fields.after.value.trim())
			params.after = fields.after.value.split(/[\s,]+/).filter(Boolean);
		const made = await call('task.add', params);

		prompt.value = '';
		location.hash = href(made);
	}, 'Added');

	return h('details', {class: 'adder', open: Boolean(after)}, h('summary', {}, 'Add a task'),
		field('What is to be done', prompt), h('div', {class: 'grid'}, field('Runner', fields.runner), field('Group', fields.group),
			field('Priority', fields.priority), field('After (ids)', fields.after), field('Folder', fields.cwd)),
		button('Add', add, {class: 'good'}));
}

// ---- the room ----

export function enter(root, start) {
	const view = h('div', {});
	const tools = h('div', {class: 'tools'});
	const list = h('div', {});
	const pane = h('section', {class: 'pane', 'aria-label': 'Task', hidden: true});
	let to = start;
	let limit = PAGE;
	let tasks = [];
	let open = null; // {key, out, state}
	let looking = 0;
	let board = localStorage.getItem('board') === 'on' && innerWidth > 900;

	put(root, heading('Tasks'), view);

	function switcher() {
		const state = to.query.get('state') ?? '';
		const choose = h('select', {onchange: () => { location.hash = choose.value ? `#/tasks?state=${choose.value}` : '#/tasks'; }},
			h('option', {value: ''}, 'all'), STATES.map(s => h('option', {value: s}, s)));

		choose.value = state;
		return put(tools, field('State', choose), button(board ? 'As a list' : 'As a board', () => {
			board = !board;
			localStorage.setItem('board', board ? 'on' : 'off');
			switcher();
			draw();
		}));
	}

	function columns() {
		return h('div', {class: 'board'}, STATES.map(s => {
			const some = tasks.filter(t => t.state === s);

			return h('section', {'aria-label': s}, h('h2', {}, `${s} `, h('span', {class: 'note'}, counts[s] ?? some.length)),
				h('ul', {class: 'rows'}, some.map(card)));
		}));
	}

	let counts = {};

	function draw() {
		const focused = document.activeElement?.closest?.('.row')?.getAttribute('href');
		const more = tasks.length >= limit && button('Show more', () => { limit = Math.min(limit + 2 * PAGE, 1000); wish(); });

		put(list, tasks.length === 0 ? empty('No tasks. Add one above, or with koine task add.')
			: board ? columns() : h('ul', {class: 'rows'}, tasks.map(card)), more);
		if (focused)
			[...list.querySelectorAll('.row')].find(a => a.getAttribute('href') === focused)?.focus({preventScroll: true});
	}

	async function read() {
		const state = to.query.get('state');
		const found = await call('task.find', {limit, lines: true, ...(state && {state})});

		tasks = found.tasks;
		counts = found.counts ?? {};
		if (!open)
			draw();
		if (to.rest[0])
			await one();
	}

	async function one() {
		const id = to.rest[0];
		const project = to.query.get('project');
		const task = await call('task.show', project ? {id, project} : {id});

		if (open?.key !== key(task))
			open = {key: key(task), out: output(task)};
		open.state = task.state;
		open.out.read();
		if (open.shown !== JSON.stringify({...task, output_bytes: 0})) {
			open.shown = JSON.stringify({...task, output_bytes: 0});
			put(pane, detail(task, tasks, open.out));
		}
		clearTimeout(looking);
		if (task.state === 'running' || task.state === 'queued')
			looking = setTimeout(() => (document.hidden ? null : wish()), LOOK_MS);
	}

	const wish = soon(read);

	function go(place) {
		to = place;
		open = null;
		pane.hidden = !to.rest[0];
		list.hidden = Boolean(to.rest[0]);
		switcher();
		put(view, to.rest[0] ? pane : [adder(to.query.get('after')), tools, list]);
		pane.replaceChildren();
		wish();
	}

	const stop = listen((kind, value) => {
		if ((kind === 'event' && value.type.startsWith('task.')) || (kind === 'state' && value === 'up'))
			wish();
	});

	go(start);
	return {
		go,
		close() {
			stop();
			clearTimeout(looking);
		},
		key(e) {
			const rows = [...list.querySelectorAll('.row')];
			const at = rows.indexOf(document.activeElement);

			if (e.key !== 'j' && e.key !== 'k')
				return false;
			rows[Math.max(0, Math.min(rows.length - 1, at + (e.key === 'j' ? 1 : -1)))]?.focus();
			return true;
		},
	};
}
