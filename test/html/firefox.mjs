// SPDX-License-Identifier: LGPL-2.1-or-later
// The checks of firefox.sh: firefox.mjs PAGE GRAPH REPORT [PICTURE], the page of a recording, the file for the graph that
// the page saves, and what report --json says of the recording.
// Firefox speaks WebDriver BiDi; playwright-core needs commands that Debian's does not have.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";

const [path, graphPath, reportPath, picture] = process.argv.slice(2);
const report = JSON.parse(readFileSync(reportPath, "utf8"));
const profile = mkdtempSync(`${tmpdir()}/mmtrace-firefox-`);
const firefox = spawn(process.env.FIREFOX || "firefox-esr", ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0",
	"--width", "1280", "--height", "1000"], { stdio: ["ignore", "ignore", "pipe"] });
const ended = new Promise((resolve) => firefox.on("exit", resolve));
const faults = [], answers = new Map();
let socket, number = 0;

process.on("SIGTERM", () => {
	firefox.kill();
	process.exit(1);
});

async function listening() {
	for await (const line of createInterface(firefox.stderr)) {
		const address = line.match(/WebDriver BiDi listening on (ws:\S+)/);
		if (address) {
			firefox.stderr.resume(); // nobody reads it any more: a full pipe would block Firefox
			return address[1];
		}
	}
	throw new Error("Firefox ended before it listened");
}

function call(method, params) {
	socket.send(JSON.stringify({ id: ++number, method, params }));
	return new Promise((resolve, reject) => answers.set(number, { resolve, reject }));
}

function take({ data }) {
	const message = JSON.parse(data), answer = answers.get(message.id);
	if (answer)
		message.type === "success" ? answer.resolve(message.result) : answer.reject(new Error(`${message.error}: ${message.message}`));
	else if (message.method === "log.entryAdded")
		faults.push(`console: ${message.params.text}`);
	else if (message.method === "network.beforeRequestSent" && !/^(file|data):/.test(message.params.request.url))
		faults.push(`request: ${message.params.request.url}`);
}

function equal(found, expected, text) {
	if (found !== expected)
		faults.push(`${text}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
}

async function check(context) {
	const evaluate = async (expression) => {
		const { type, result, exceptionDetails } = await call("script.evaluate", { expression, target: { context }, awaitPromise: true });
		if (type !== "success")
			throw new Error(`${expression}: ${exceptionDetails.text}`);
		return result.value;
	};
	const text = (id) => evaluate(`document.getElementById("${id}").textContent`);
	const value = async (id) => Number(await evaluate(`document.getElementById("${id}").dataset.value`));
	const act = (id, type, actions) => call("input.performActions", { context, actions: [{ type, id, actions }] });
	const press = (key) => act("keys", "key", [{ type: "keyDown", value: key }, { type: "keyUp", value: key }]);
	const sum = (figure, groups = report.groups) => groups.reduce((total, group) => total + group[figure], 0);

	await evaluate(`document.querySelector("#measures [value=unfreed]").click()`);
	equal(await value("total"), sum("unfreed_bytes"), "unfreed bytes");
	if (picture)
		writeFileSync(picture, Buffer.from((await call("browsingContext.captureScreenshot", { context })).data, "base64"));

	// A range, with the pointer; then with a key.
	const box = JSON.parse(await evaluate(`JSON.stringify(document.getElementById("chart").getBoundingClientRect())`));
	const at = (share) => ({ type: "pointerMove", x: Math.round(box.x + share * box.width), y: Math.round(box.y + 80) });
	await act("mouse", "pointer", [at(0.2), { type: "pointerDown", button: 0 }, at(0.4), at(0.6), { type: "pointerUp", button: 0 }]);
	const range = await text("range-text");
	if (range.startsWith("Whole"))
		faults.push(`dragging selects nothing: ${range}`);
	if (!((await value("total")) < sum("unfreed_bytes")))
		faults.push("the range does not change the sum");
	await evaluate(`document.getElementById("chart").focus()`);
	await press("\uE00C");
	equal((await text("range-text")).startsWith("Whole"), true, "Escape selects the whole recording");
	equal(await value("total"), sum("unfreed_bytes"), "unfreed bytes after Escape");

	const word = report.groups[3].frames[2].function;
	const matching = report.groups.filter((group) => group.frames.some((frame) => `${frame.function}\n${frame.module}`.includes(word)));
	await press("/");
	equal(await evaluate("document.activeElement.id"), "search", "the focus after /");
	for (const letter of word)
		await press(letter);
	await evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(1))))");
	equal(await value("matched"), sum("unfreed_bytes", matching), `search for ${word}`);

	// Nothing is downloaded: the link's text is written here.
	writeFileSync(graphPath, await evaluate(`{
		const create = URL.createObjectURL;
		let saved;
		URL.createObjectURL = (blob) => create.call(URL, saved = blob);
		HTMLAnchorElement.prototype.click = () => {};
		document.getElementById("folded").click();
		document.getElementById("save-svg").click();
		saved.text();
	}`));
}

async function checkGraph(context) {
	const evaluate = async (expression) => (await call("script.evaluate", { expression, target: { context }, awaitPromise: true })).result.value;
	const word = report.groups[3].frames[2].function, total = report.groups.reduce((sum, group) => sum + group.unfreed_bytes, 0);
	const matching = report.groups.filter((group) => group.frames.some((frame) => `${frame.function} (${frame.module})`.includes(word)));
	const share = 100 * matching.reduce((sum, group) => sum + group.unfreed_bytes, 0) / total;
	const said = await evaluate(`{
		const input = document.querySelector("input");
		input.value = "${word}";
		input.dispatchEvent(new Event("input"));
		document.getElementById("said").textContent;
	}`);
	if (!(Math.abs(parseFloat(said.slice("Matched ".length)) - share) < 0.2))
		faults.push(`the search of the picture: ${said} instead of ${share} %`);
}

async function run() {
	socket = new WebSocket(`${await listening()}/session`);
	socket.onmessage = take;
	await new Promise((resolve, reject) => Object.assign(socket, { onopen: resolve, onerror: reject }));
	await call("session.new", { capabilities: {} });
	const { contexts: [{ context }] } = await call("browsingContext.getTree", {});
	await call("session.subscribe", { events: ["log.entryAdded", "network.beforeRequestSent"], contexts: [context] });
	await call("browsingContext.navigate", { context, url: `file://${path}`, wait: "complete" });
	await check(context);
	await call("browsingContext.navigate", { context, url: `file://${graphPath}`, wait: "complete" });
	await checkGraph(context);
	await call("browser.close", {});
}

try {
	await run();
} catch (error) {
	faults.push(error.stack);
	firefox.kill();
}
await ended;
rmSync(profile, { recursive: true, force: true });
for (const fault of faults)
	console.log(fault);
process.exit(faults.length ? 1 : 0);
