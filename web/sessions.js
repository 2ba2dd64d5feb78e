// Runs of agents: which there are, what was said as it comes, what it cost; go on, interrupt.
import {button, chip, doing, empty, field, h, heading, put, renew, short, soon, span, start, time} from './dom.js';
import {call, listen} from './link.js';
import {input, long} from './show.js';

export const title = 'Sessions';

const PAGE = 200;
const KEPT = 1000; // of what was said, while one follows it
const OPEN = 10;   // calls that are looked at again, since they may have been approved
const LIST = 100;
const LIST_MAX = 1000;
const GIST = 90;
const NOT_FOUND = -32001;
const NEAR = 120;  // pixels from the end
const href = s => `#/sessions/${encodeURIComponent(s.id)}`;
const name = s => s.title || s.summary || s.query || s.id;
const runs = s => ['starting', 'running', 'waiting_input', 'completing'].includes(s.status);

function cost(s) {
	return [s.cost_usd ? `$${s.cost_usd.toFixed(3)}` : null,
		s.input_tokens || s.output_tokens ? `${s.input_tokens ?? 0} in, ${s.output_tokens ?? 0} out` : null,
		s.duration_ms ? span(s.duration_ms) : null].filter(Boolean).join(' · ');
}

// ---- the tree ----

function tree(sessions) {
	const ids = new Set(sessions.map(s => s.id));
	const under = new Map();

	for (const s of sessions) {
		const parent = ids.has(s.parent_session_id) ? s.parent_session_id : '';

		under.set(parent, [...(under.get(parent) ?? []), s]);
	}
	const branch = id => (under.get(id) ?? []).map(s => h('li', {},
		h('a', {class: 'row', href: href(s)}, chip(s.status.replace('_', ' '), s.status),
			h('span', {class: 'gist'}, name(s)), s.kind && chip(s.kind), h('span', {class: 'meta'}, [s.agent, s.host && `on ${s.host}`, cost(s)].filter(Boolean).map(t => `${t} · `), time(s.active_at))),
		under.has(s.id) && h('ul', {class: 'rows inner'}, branch(s.id))));

	return h('ul', {class: 'rows'}, branch(''));
}

// ---- what was said ----

function speech(e) {
	const thinking = e.content_type === 'thinking';
	const text = long(e.content ?? '', {class: 'text'});

	return h('div', {class: `said-by ${e.role ?? ''}`, 'data-id': e.id}, h('h3', {}, e.event_type === 'system' ? 'system' : e.role ?? '', ' ', time(e.created_at)),
		thinking ? h('details', {}, h('summary', {}, 'thinking'), text) : text);
}

// In one line: what is cut ends with a mark, and the whole is inside.
function gist(given) {
	const text = ['command', 'description', 'file_path', 'path', 'pattern', 'query', 'url', 'prompt'].map(k => given?.[k]).find(v => typeof v === 'string') ?? '';
	const line = start(text.trimStart().split('\n')[0], GIST);

	return line.length < text.trim().length ? `${line} …` : line;
}

function toolSummary(e) {
	return h('summary', {}, chip('tool'), ' ', h('strong', {}, e.tool_name ?? ''), ' ', h('span', {class: 'note'}, gist(e.tool_input)), ' ',
		e.approval_status && chip(e.approval_status, {denied: 'failed', pending: 'queued'}[e.approval_status]));
}

function waits(e) {
	return h('p', {class: 'waits', hidden: e.approval_status !== 'pending'}, h('a', {href: '#/inbox'}, 'Waiting for approval in the inbox'));
}

function toolCall(e) {
	return h('details', {class: 'tool open', open: e.approval_status === 'pending', 'data-tool': e.tool_id ?? '', 'data-id': e.id},
		toolSummary(e), waits(e), e.tool_input === undefined ? h('p', {class: 'note'}, 'the input is too long to display') : input(e.tool_input),
		h('div', {class: 'result'}), h('div', {class: 'inner'}));
}

function transcript(session) {
	const body = h('div', {class: 'transcript', role: 'log', 'aria-label': 'Messages'});
	const earlier = button('Earlier messages', () => doing(back), {hidden: true});
	const page = document.documentElement;
	let first = 0;
	let last = 0;

	// A tool's result, and what a sub-agent says, stand inside the call that they belong to.
	function place(e, fresh) {
		const owner = e.tool_result_for_id ?? e.parent_tool_use_id;
		const box = owner && [...body.querySelectorAll('.tool')].findLast(t => t.dataset.tool === owner);

		if (e.event_type === 'tool_result') {
			const result = h('div', {}, h('p', {class: 'note'}, 'result'), long(e.tool_result_content ?? ''));

			if (box)
				put(box.querySelector(':scope > .result'), result);
			else
				fresh.append(h('div', {class: 'tool', 'data-id': e.id}, result));
			return;
		}
		const element = e.event_type === 'tool_call' ? toolCall(e) : speech(e);

		(box && e.parent_tool_use_id ? box.querySelector(':scope > .inner') : fresh).append(element);
	}

	async function back() {
		const found = await call('session.events', {id: session.id, before: first, newest: true, limit: PAGE});
		const fresh = h('div', {'data-id': found.first});
		const height = page.scrollHeight;

		body.prepend(fresh);
		found.events.forEach(e => place(e, fresh));
		first = found.first || first;
		earlier.hidden = !found.more;
		window.scrollBy(0, page.scrollHeight - height);
	}

	// Who follows what comes has the end of it; the beginning is a button away.
	function add(found) {
		const follows = last === 0 || page.scrollTop + page.clientHeight > page.scrollHeight - NEAR;

		found.events.forEach(e => place(e, body));
		while (follows && body.childElementCount > KEPT) {
			body.firstElementChild.remove();
			first = Number(body.firstElementChild.dataset.id);
			earlier.hidden = false;
		}
		last = Math.max(last, found.last);
		if (follows && found.events.length > 0)
			page.scrollTop = page.scrollHeight;
	}

	async function read() {
		if (last === 0) {
			const found = await call('session.events', {id: session.id, newest: true, limit: PAGE});

			first = found.first;
			earlier.hidden = !found.more;
			add(found);
			return;
		}
		for (let more = true; more;) {
			const found = await call('session.events', {id: session.id, after: last, limit: PAGE});

			add(found);
			more = found.more;
		}
	}

	// Whether a call was approved is told after the call.
	async function look() {
		for (const tool of [...body.querySelectorAll('.tool.open')].slice(-OPEN)) {
			const [e] = (await call('session.events', {id: session.id, after: Number(tool.dataset.id) - 1, limit: 1})).events;

			if (e?.id !== Number(tool.dataset.id))
				continue;
			tool.querySelector(':scope > summary').replaceWith(toolSummary(e));
			tool.querySelector(':scope > .waits').replaceWith(waits(e));
			tool.classList.toggle('open', !e.approval_status || e.approval_status === 'pending');
		}
	}

	return {element: h('section', {}, earlier, body), read, look};
}

// Koined did not start it, and does not know what is said there: what it asks, and when it was last active.
async function observed(id, s) {
	const {approvals} = await call('approval.list', {session_id: id, status: 'any'});

	return h('div', {}, h('p', {class: 'note'}, s ? `koine did not start this session; it observes the session through the hooks of ${s.agent}. Last active `
		: 'koine has no transcript of this session, only its requests.', s && time(s.active_at)),
		h('h3', {}, 'Requests'), approvals.length === 0 ? empty('No requests yet.') : h('ul', {class: 'rows'}, approvals.map(a =>
			h('li', {}, h('a', {class: 'row', href: '#/inbox'}, chip(a.status, a.status === 'denied' ? 'failed' : a.status), h('span', {class: 'gist'}, a.tool),
				h('span', {class: 'meta'}, time(a.created_at)))))));
}

function speaker(session) {
	const text = h('textarea', {rows: 2});

	return h('div', {class: 'actions'}, field('Next prompt', text, {class: 'field wide'}),
		button('Continue', () => doing(async () => {
			if (!text.value.trim())
				throw new Error('Enter a prompt first');
			location.hash = href(await call('session.continue', {id: session.id, query: text.value}));
		}), {class: 'good'}),
		runs(session) && button('Interrupt', () => doing(() => call('session.interrupt', {id: session.id}), 'Interrupting…'), {class: 'bad'}));
}

function launcher() {
	const query = h('textarea', {rows: 3});
	const agent = h('input', {autocomplete: 'off'});
	const folder = h('input', {autocomplete: 'off'});
	const go = () => doing(async () => {
		const params = {query: query.value};

		if (!query.value.trim())
			throw new Error('Enter a prompt first');
		if (agent.value.trim())
			params.agent = agent.value.trim();
		if (folder.value.trim())
			params.working_dir = folder.value.trim();
		location.hash = href(await call('session.launch', params));
	});

	return h('details', {class: 'adder'}, h('summary', {}, 'Start a session'), field('Prompt', query),
		h('div', {class: 'grid'}, field('Agent', agent), field('Folder', folder)), button('Start', go, {class: 'good'}));
}

export function enter(root, place) {
	const view = h('div', {});
	let to = place;
	let open = null; // {id, head, said}
	let asked = false; // an approval of it has come or gone
	let most = LIST;

	put(root, heading('Sessions'), view);

	function head(s) {
		return [h('p', {}, h('a', {href: '#/sessions'}, '← all sessions')),
			h('h2', {}, name(s), ' ', chip(s.status.replace('_', ' '), s.status)),
			h('p', {class: 'who'}, s.agent && chip(s.agent, 'agent'), s.kind && chip(s.kind), s.project && h('span', {}, s.project), s.model && h('span', {}, s.model), s.working_dir && h('span', {class: 'path'}, s.working_dir),
				h('span', {}, `session ${short(s.id)}`), s.host && h('span', {}, `on ${s.host}`), s.parent_session_id && h('a', {href: `#/sessions/${s.parent_session_id}`}, 'continues another session'), h('span', {}, cost(s))),
			s.error && h('pre', {class: 'error', tabindex: 0}, s.error)];
	}

	async function other(id, s) {
		const shown = to.rest[0];
		const requests = await observed(id, s);

		if (to.rest[0] === shown)
			renew(view, h('section', {class: 'pane', 'aria-label': 'Session'}, s ? head(s) : h('p', {}, h('a', {href: '#/sessions'}, '← all sessions')), requests));
	}

	// The user may leave the session while a response is on its way.
	async function one() {
		const id = to.rest[0];
		const s = await call('session.get', {id}).catch(error => {
			if (error.code === NOT_FOUND)
				return null;
			throw error;
		});

		if (to.rest[0] !== id)
			return undefined;
		if (!s || s.kind)
			return other(s?.id ?? id, s);
		if (open?.id !== s.id) {
			open = {id: s.id, head: h('div', {}), foot: h('div', {}), said: transcript(s)};
			put(view, h('section', {class: 'pane', 'aria-label': 'Session'}, open.head, open.said.element, open.foot));
		}
		put(open.head, head(s));
		if (open.status !== s.status)
			put(open.foot, speaker(s));
		open.status = s.status;
		const {said} = open;

		await said.read();
		if (asked)
			await said.look();
		asked = false;
		return undefined;
	}

	const list = h('div', {});

	async function read() {
		if (to.rest[0])
			return one();
		const {sessions} = await call('session.list', {archived: 'any', limit: most});
		const more = sessions.length < most ? null : most === LIST_MAX ? h('p', {class: 'note'}, `Showing the ${LIST_MAX} most recently active sessions.`)
			: button('Show more', () => {
				most = LIST_MAX;
				wish();
			});

		renew(list, sessions.length === 0 ? empty('No sessions. Start a session above, or with koine session add.') : tree(sessions), more);
		return undefined;
	}

	const wish = soon(read);

	function go(next) {
		to = next;
		open = null;
		put(view, to.rest[0] ? empty('…') : [launcher(), list]);
		wish();
	}

	const stop = listen((kind, value) => {
		const mine = kind === 'event' && /^(session|approval|agent)\./.test(value.type) &&
			(!to.rest[0] || (value.session_id ?? '').startsWith(to.rest[0]));

		asked ||= mine && value.type.startsWith('approval.');
		if (mine || (kind === 'state' && value === 'up'))
			wish();
	});

	go(place);
	return {go, close: stop};
}
