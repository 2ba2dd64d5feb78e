// A real Chromium at the page, by keyboard: page_browser.mjs PACKAGES FOLDER LINK WHAT.
// Prints as JSON what it found; WHAT is "rooms", "tabs" or "pictures".
import {execFileSync} from 'node:child_process';
import {mkdirSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

const [packages, folder, link, what] = process.argv.slice(2);
const require = createRequire(join(packages, 'node_modules', 'x'));
const {chromium} = require('playwright-core');
const axe = readFileSync(join(packages, 'node_modules', 'axe-core', 'axe.min.js'), 'utf8');
const PATIENCE = 60000;
const PHONE = {width: 390, height: 844};
const DESK = {width: 1280, height: 800};
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
		found.first = await page.evaluate(() => document.activeElement.querySelector('h2').firstChild.textContent);
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
		await page.locator('.row').first().focus();
		await page.keyboard.press('Enter');
		await page.locator('.said-by').first().waitFor();
		await page.locator('.tool').first().waitFor();
		await both(page, 'a session');
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
		await page.getByText('Turn away').waitFor();
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

	// Many tabs share one stream: a browser has six connections for all of them.
	async tabs() {
		const first = await open(link);

		await first.waitForURL(`${base}/`);
		const pages = [first, ...await Promise.all(Array.from({length: 12}, () => open(`${base}/#/inbox`)))];

		await Promise.all(pages.map(p => p.locator('.card').first().waitFor()));
		koine('deny', '--comment', 'elsewhere', JSON.parse(koine('approvals', '--json'))[0].id);
		await Promise.all(pages.map(p => p.getByText('Nothing waits.').waitFor()));
		await first.close();
		console.error = () => {};
		found.tabs = pages.length;
	},

	async pictures() {
		const page = await open(link);
		const into = process.env.KOINE_PICTURES;

		mkdirSync(into, {recursive: true});
		await page.waitForURL(`${base}/`);
		await page.locator('.card').first().waitFor();
		const shoot = (name, size) => page.setViewportSize(size).then(() => page.screenshot({path: join(into, `${name}.png`)}));

		await shoot('inbox', DESK);
		await shoot('inbox-phone', PHONE);
		for (const [i, name] of Object.keys(steps).entries()) {
			if (i === 0)
				continue;
			await page.keyboard.press(String(i + 1));
			await page.locator('.row, .card, .events tbody tr').first().waitFor();
			if (name === 'machine')
				await page.locator('.chart').first().waitFor();
			await shoot(name, DESK);
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
