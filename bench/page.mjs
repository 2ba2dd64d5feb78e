// When each room of the page shows its data: page.mjs PACKAGES ROUNDS EMPTY FULL SESSION.
// EMPTY and FULL are links to two daemons; SESSION is the long one in the full
// one, and a short one in the other. Prints milliseconds as JSON.
import {createRequire} from 'node:module';
import {join} from 'node:path';

const [packages, rounds, empty, full, session] = process.argv.slice(2);
const {chromium} = createRequire(join(packages, 'node_modules', 'x'))('playwright-core');
const browser = await chromium.launch({
	executablePath: '/usr/bin/chromium', headless: true, timeout: 60000,
	args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
});

// What is there once a room's data is, in an empty store as well.
const ROOMS = {
	inbox: '.card, .room-inbox .note:not(:empty), .empty',
	tasks: '.row[data-key], .empty',
	sessions: 'a.row, .empty',
	memory: '.card, .empty',
	events: '.events tbody tr',
	machine: '.chip.ok',
	'a session': '.said-by',
};

// The browser has drawn what was put into the page when the second frame after it begins.
function watch(selector) {
	const seen = () => {
		if (!document.querySelector(selector))
			return false;
		requestAnimationFrame(() => requestAnimationFrame(() => { globalThis.shownAt = performance.now(); }));
		return true;
	};
	const eye = new MutationObserver(() => seen() && eye.disconnect());

	eye.observe(document, {childList: true, subtree: true, characterData: true});
}

// A cookie is one for all ports of a host: each daemon has a profile of its own.
async function enter(link) {
	const context = await browser.newContext({viewport: {width: 1280, height: 800}});
	const page = await context.newPage();

	await page.goto(link);
	await page.waitForURL(`${new URL(link).origin}/`);
	await page.close();
	return {context, origin: new URL(link).origin};
}

async function time({context, origin}, room, path) {
	const page = await context.newPage();

	await page.addInitScript(watch, ROOMS[room]);
	await page.goto(`${origin}/#/${path}`);
	await page.waitForFunction(() => globalThis.shownAt).catch(e => {
		throw new Error(`${room} of ${origin} shows nothing`, {cause: e});
	});
	const ms = await page.evaluate(() => globalThis.shownAt);

	await page.close();
	return ms;
}

const daemons = {empty: await enter(empty), full: await enter(full)};
const times = {};

// Side by side, so that what else the machine does concerns both.
for (let i = 0; i <= rounds; i++) {
	for (const room of Object.keys(ROOMS)) {
		for (const [kind, daemon] of Object.entries(daemons)) {
			const ms = await time(daemon, room, room === 'a session' ? `sessions/${session}` : room);

			// The first round fills the browser's cache.
			if (i > 0)
				((times[room] ??= {empty: [], full: []})[kind]).push(ms);
		}
	}
}
await browser.close();
console.log(JSON.stringify(times));
