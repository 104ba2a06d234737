// SPDX-License-Identifier: LGPL-2.1-or-later
// page-speed.mjs PAGE ROUNDS, for test/bench/page-speed.
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { openBrowser, openPage } from "./browser.mjs";

const OPENED = 5; // times, after one that does not count

const [path, rounds] = process.argv.slice(2);
const browser = await openBrowser();

// A page of a few words first: it pays for the browser's start, and then shows what any page takes on this machine.
const word = join(dirname(path), "word.html");
writeFileSync(word, "<!DOCTYPE html><title>one word</title><link rel=icon href=data:,><p>word");

// Milliseconds until the first paint, and until `measure` had ended. Chromium may enter the times some frames later.
async function timesOf(page, measure) {
	for (let i = 0; i < 600; i++) {
		const times = await page.evaluate((name) => {
			const drawn = name ? performance.getEntriesByName(name)[0] : { startTime: 0, duration: 0 };
			const first = performance.getEntriesByName("first-contentful-paint")[0];
			return drawn && first && { first: first.startTime, drawn: drawn.startTime + drawn.duration };
		}, measure);
		if (times)
			return times;
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
	throw new Error("the page was not painted within a minute");
}

const median = (list) => Math.round(list.sort((a, b) => a - b)[list.length >> 1]);
const opened = { word: [], first: [], drawn: [] };
let page;
for (let i = 0; i <= OPENED; i++) {
	const other = await openPage(browser, word);
	const { first } = await timesOf(other, "");
	await other.context().close();
	await page?.context().close();
	page = await openPage(browser, path);
	const times = await timesOf(page, "changed everything");
	if (i) {
		opened.word.push(first);
		opened.first.push(times.first);
		opened.drawn.push(times.drawn);
	}
}
console.log(`first paint ${median(opened.first)} ms (of a page with one word ${median(opened.word)} ms), graph and table drawn after ${median(opened.drawn)} ms`);

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
