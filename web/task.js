// One task: what it is, what it prints, what comes after what, and what can be done with it.
import {button, bytes, chip, doing, field, h, soon, span, svg, time} from './dom.js';
import {call} from './link.js';

const TAIL = 1 << 16;
const KEPT = 1 << 18; // bytes of output that are shown at once

export const key = t => `${t.project ?? ''}\n${t.id}`;
export const href = t => `#/tasks/${encodeURIComponent(t.id)}${t.project ? `?project=${encodeURIComponent(t.project)}` : ''}`;
export const of = t => (t.project ? {id: t.id, project: t.project} : {id: t.id});

// One that is queued may be kept back, for three reasons.
export function state(t) {
	const why = t.held ? 'held' : t.stashed ? 'stashed' : t.paused ? 'paused' : null;

	return t.state === 'queued' && why ? why : t.state;
}

// Why a queued one does not start.
export function waits(t)
{
	if (!t.waits?.until)
		return t.waits?.text ?? '';
	const at = new Date(t.waits.until);

	return `at ${
		at - Date.now() < 12 * 3600000
			? at.toLocaleTimeString([], {timeStyle : 'short'})
			: at.toLocaleString([], {dateStyle : 'medium', timeStyle : 'short'})}`;
}

export function ran(t)
{
	return t.completed_at && t.started_at
		       ? span(Date.parse(t.completed_at) - Date.parse(t.started_at))
		       : null;
}

export function exit(t)
{
	return t.signal ? `signal ${t.signal}`
	       : (t.exit_status ?? null) !== null ? `exit ${t.exit_status}`
						  : null;
}

// ---- what comes after what ----

const WIDE = 110;
const TALL = 44;
const APART = 40;

function box(t, x, y, here) {
	return svg('a', {href: href(t), 'aria-label': `${t.id}, ${t.state ? state(t) : 'not listed'}`},
		svg('rect', {x: x + 1, y, width: WIDE - 2, height: TALL, rx: 8, class: `node ${t.state ?? ''} ${here ? 'here' : ''}`}),
		svg('text', {x: x + 12, y: y + 18}, t.id), svg('text', {x: x + 12, y: y + 35}, t.state ? state(t) : '?'));
}

function picture(task, all) {
	const known = id => all.find(t => t.id === id && (t.project ?? '') === (task.project ?? ''))
		?? {id, project: task.project};
	const before = task.after.map(known).slice(0, 12);
	const behind = all.filter(t => t.after?.includes(task.id) && (t.project ?? '') === (task.project ?? '')).slice(0, 12);

	if (before.length + behind.length === 0)
		return null;
	const rows = Math.max(before.length, behind.length, 1);
	const height = rows * (TALL + 10);
	const middle = (height - TALL) / 2;
	const at = (i, n) => (height - n * (TALL + 10)) / 2 + i * (TALL + 10) + 5;
	const second = before.length > 0 ? WIDE + APART : 0;
	const third = second + WIDE + APART;
	const wide = behind.length > 0 ? third + WIDE : second + WIDE;
	const line = (x1, y1, x2, y2) => svg('path', {class: 'edge',
		d: `M${x1} ${y1 + TALL / 2}C${x1 + 20} ${y1 + TALL / 2} ${x2 - 20} ${y2 + TALL / 2} ${x2} ${y2 + TALL / 2}`});

	return h('figure', {}, h('figcaption', {}, 'Dependencies'),
		svg('svg', {viewBox: `0 0 ${wide} ${height}`, width: wide, role: 'group', 'aria-label': 'This task, its dependencies and its dependents'},
			before.map((t, i) => [line(WIDE, at(i, before.length), second, middle), box(t, 0, at(i, before.length))]),
			behind.map((t, i) => [line(second + WIDE, middle, third, at(i, behind.length)), box(t, third, at(i, behind.length))]),
			box(task, second, middle, true)));
}

// ---- its output ----

// Only the end is at hand; a program that prints faster than that is skipped through.
export function output(task) {
	const pre = h('pre', {class: 'output', tabindex: 0, role: 'group', 'aria-label': 'Output'});
	const sizes = new WeakMap(); // bytes of each piece
	const size = h('span', {class: 'note'});
	let first = 0;
	let next = -TAIL;
	let shown = 0;
	const earlier = button('Earlier output', () => doing(async () => {
		const from = Math.max(0, first - TAIL);
		const piece = await call('task.output', {...of(task), offset: from, max: first - from});
		const height = pre.scrollHeight;

		pre.prepend(part(piece));
		pre.scrollTop += pre.scrollHeight - height;
		first = piece.offset;
		earlier.hidden = first === 0 || piece.offset > from;
	}));

	function part(piece) {
		const span = h('span', {class: 'piece'}, piece.text);

		sizes.set(span, piece.next - piece.offset);
		shown += piece.next - piece.offset;
		return span;
	}

	function trim() {
		while (shown > KEPT && pre.childElementCount > 1) {
			const n = sizes.get(pre.firstElementChild);

			shown -= n;
			first += n;
			pre.firstElementChild.remove();
		}
	}

	async function read() {
		const piece = await call('task.output', {...of(task), offset: next, max: TAIL});
		const bottom = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 40;

		if (next < 0 || piece.end - piece.next > KEPT) {
			shown = 0;
			pre.replaceChildren();
			first = piece.offset;
		}
		if (next >= 0 && piece.end - piece.next > KEPT) {
			next = -TAIL;
			await read();
			return;
		}
		if (piece.text)
			pre.append(part(piece));
		trim();
		next = piece.next;
		earlier.hidden = first === 0;
		size.textContent = piece.end === 0 ? 'no output yet' : bytes(piece.end);
		if (bottom)
			pre.scrollTop = pre.scrollHeight;
		if (piece.next < piece.end)
			await read();
	}

	return {element: h('section', {}, h('h3', {}, 'Output ', size), earlier, pre), read: soon(read, 20)};
}

// ---- what it is ----

function facts(t) {
	const rows = [
		[ 'Project', t.project || null ], [ 'Label', t.label ], [ 'Group', t.group ],
		[ 'Agent', t.runner ], [ 'Claude agent', t.agent ], [ 'Priority', t.priority ],
		[ 'Dependencies', t.after.join(', ') ], [ 'Folder', t.cwd ], [ 'Host', t.host ],
		[ 'Attempts', `${t.attempts} of ${t.max_attempts}` ],
		[ 'Started', time(t.started_at) ], [ 'Ended', time(t.completed_at) ],
		[ 'Duration', ran(t) ], [ 'Result', exit(t) ],
		[ 'Earliest start', t.not_before ? time(t.not_before) : null ]
	];

	return h('dl', {class: 'facts'}, rows.filter(([, v]) => v !== null && v !== undefined && v !== '')
		.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v))));
}

// ---- what can be done ----

// Counted here at once, so that two presses count as two.
export function raise(task, by) {
	task.priority += by;
	return doing(() => call('task.edit', {...of(task), priority: task.priority}), `${task.id} has priority ${task.priority}`);
}

export function stash(task) {
	return task.stashed ? doing(() => call('task.enqueue', of(task)), `${task.id} is enqueued`)
		: doing(() => call('task.stash', of(task)), `${task.id} is stashed`);
}

const ids = text => text.split(/[\s,]+/).filter(Boolean);

// A form for what may be changed until it begins; only what is different is sent.
export function editor(task, close) {
	const prompt = h('textarea', {rows: 6, value: task.prompt});
	const inputs = {
		priority: h('input', {type: 'number', step: 'any', value: task.priority}),
		label: h('input', {autocomplete: 'off', value: task.label ?? ''}),
		runner: h('input', {autocomplete: 'off', value: task.runner ?? ''}),
		after: h('input', {autocomplete: 'off', value: task.after.join(' ')}),
		timeout: h('input', {type: 'number', min: 0, step: 'any', value: task.timeout / 1000}),
	};

	function changes() {
		const change = {};

		if (!task.command && prompt.value !== task.prompt)
			change.prompt = prompt.value;
		if (Number(inputs.priority.value) !== task.priority)
			change.priority = Number(inputs.priority.value);
		for (const name of ['label', 'runner'])
			if (inputs[name].value.trim() !== (task[name] ?? ''))
				change[name] = inputs[name].value.trim();
		if (ids(inputs.after.value).join(' ') !== task.after.join(' '))
			change.after = ids(inputs.after.value);
		if (Math.round(inputs.timeout.value * 1000) !== task.timeout)
			change.timeout = Math.round(inputs.timeout.value * 1000);
		return change;
	}

	const save = () => doing(async () => {
		const change = changes();

		if (Object.keys(change).length > 0)
			await call('task.edit', {...of(task), ...change});
		close();
	}, 'Task saved');
	const form = h('section', {class: 'card', 'aria-label': `Edit ${task.id}`}, h('h3', {}, 'Edit'),
		!task.command && field('Prompt', prompt),
		h('div', {class: 'grid'}, field('Priority', inputs.priority), field('Label', inputs.label),
			!task.command && field('Agent', inputs.runner), field('After (task ids)', inputs.after),
			field('Timeout (seconds)', inputs.timeout)),
		h('div', {class: 'actions'}, button('Save', save, {class: 'good'}), button('Cancel', close)));

	queueMicrotask(() => form.querySelector('textarea, input').focus());
	return form;
}

export function detail(task, all, out, edit) {
	const act = (method, name, done) => button(name, () => doing(() => call(method, of(task)), done));
	const open = task.state === 'queued' || task.state === 'running';
	const queued = task.state === 'queued';

	return [
		h('p', {}, h('a', {href : '#/tasks'}, '← all tasks')),
		h('h2', {}, task.id, ' ', chip(state(task), task.state)),
		task.waits && h('p', {class : 'note'}, `Waiting: ${waits(task)}`),
		h('div', {class : 'actions'},
		  open && button('Cancel',
				 () => doing(() => call('task.cancel', {
						     taskId : task.id,
						     project : task.project || undefined
					     }),
					     'Cancelling…'),
				 {class : 'bad'}),
		  task.held && act('task.release', 'Release', 'Task released'),
		  queued &&
			  [
				  button('Edit', edit),
				  button(task.stashed ? 'Enqueue' : 'Stash', () => stash(task)),
				  button('Priority +1', () => raise(task, 1)),
				  button('Priority −1', () => raise(task, -1))
			  ],
		  [ 'failed', 'skipped', 'cancelled' ].includes(task.state) &&
			  act('task.retry', 'Retry', 'Queued'),
		  button('Add a dependent task',
			 () => {
				 location.hash = `#/tasks?after=${encodeURIComponent(task.id)}`;
			 })),
		h('pre', {class : 'prompt', tabindex : 0, role : 'group', 'aria-label' : 'Prompt'},
		  task.prompt),
		facts(task),
		task.error &&
			h('section', {}, h('h3', {}, 'Error'),
			  h('pre',
			    {class : 'error', tabindex : 0, role : 'group', 'aria-label' : 'Error'},
			    task.error)),
		picture(task, all), out.element
	];
}
