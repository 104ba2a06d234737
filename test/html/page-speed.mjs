// SPDX-License-Identifier: LGPL-2.1-or-later
// page-speed.mjs PAGE ROUNDS, for test/bench/page-speed.
import { openBrowser, openPage } from "./browser.mjs";

const [path, rounds] = process.argv.slice(2);
const browser = await openBrowser();

const page = await openPage(browser, path);
// Chromium may enter the times some frames later.
const entries = () => page.evaluate(() => {
	const drawn = performance.getEntriesByName("changed everything")[0];
	const first = performance.getEntriesByName("first-contentful-paint")[0];
	return drawn && first && { first: first.startTime, drawn: drawn.startTime + drawn.duration };
});
let opened;
for (let i = 0; i < 600 && !(opened = await entries()); i++)
	await new Promise((resolve) => setTimeout(resolve, 100));
if (!opened)
	throw new Error("the page was not painted within a minute");
console.log(`first paint ${Math.round(opened.first)} ms, graph and table drawn after ${Math.round(opened.drawn)} ms`);

// Until the frame after the selection has been painted: its task runs behind the paint.
const times = await page.evaluate(async (count) => {
	const chart = document.getElementById("chart"), list = [];
	const press = (key, shiftKey) => chart.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey }));
	const painted = () => new Promise((resolve) => requestAnimationFrame(() => {
		const channel = new MessageChannel();
		channel.port1.onmessage = resolve;
		channel.port2.postMessage(0);
	}));
	press("ArrowLeft", false);
	for (let i = 0; i < 20; i++)
		press("ArrowLeft", true);
	for (let i = 0; i < count; i++) {
		await painted();
		const start = performance.now();
		press(i % 24 < 12 ? "ArrowRight" : "ArrowLeft", false);
		await painted();
		list.push(performance.now() - start);
	}
	return list.sort((a, b) => a - b);
}, Number(rounds));
console.log(`painted again after a selection ${Math.round(times[times.length >> 1])} ms, at most ${Math.round(times[times.length - 1])} ms`);
for (const fault of page.faults)
	console.error(fault);
await browser.close();
process.exit(page.faults.length ? 1 : 0);
