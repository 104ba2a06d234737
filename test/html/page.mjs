// SPDX-License-Identifier: LGPL-2.1-or-later
// The checks of page.sh: page.mjs DIRECTORY, where the pages and their recordings are.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { openBrowser, openPage } from "./browser.mjs";

const directory = process.argv[2];
const browser = await openBrowser();
let failed = 0;

function check(condition, text) {
	if (condition)
		return;
	console.log(text);
	failed++;
}

function equal(found, expected, text) {
	check(found === expected, `${text}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
}

function report(name, ...options) {
	const arguments_ = ["report", "--json", ...options, `${directory}/${name}.data`];
	return JSON.parse(execFileSync(process.env.MMTRACE, arguments_, { maxBuffer: 1 << 28, encoding: "utf8" }));
}

const sum = (groups, figure) => groups.reduce((total, group) => total + group[figure], 0);
const figures = { unfreed: "unfreed_bytes", allocated: "allocated_bytes", count: "unfreed_count", committed: "committed_bytes" };

// Opens a page, runs the steps, and finds what the page must never do.
async function withPage(name, options, steps) {
	const page = await openPage(browser, `${directory}/${name}${name.includes(".") ? "" : ".html"}`, options);
	await steps(page);
	for (const fault of page.faults)
		check(false, `${name}: ${fault}`);
	await page.context().close();
}

const text = (page, selector) => page.locator(selector).textContent();
const value = async (page, selector) => Number(await page.locator(selector).getAttribute("data-value"));
const choose = (page, measure) => page.locator(`#measures input[value=${measure}]`).check({ force: true });
const tableValues = (page) => page.locator("#table-body td.value").evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.value)));

// The graph as a picture; returns the name that the page proposes.
async function savePicture(page, name) {
	const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save-svg").click()]);
	await download.saveAs(`${directory}/${name}.svg`);
	return download.suggestedFilename();
}

async function showAllRows(page) {
	while (await page.locator("#more").isVisible())
		await page.locator("#more").click();
}

// Ascending, without what holds nothing.
const sorted = (list) => list.filter((number) => number > 0).sort((a, b) => a - b);

function nameOf(frame) {
	if (!frame || frame.function)
		return frame ? frame.function : "";
	return frame.module_offset ? `${frame.module}+${frame.module_offset}` : frame.address;
}

const stackCount = (count) => count === 1 ? "1 stack" : `${count} stacks`;

// Every figure of the page against the report of the same window.
async function compareWithReport(page, name, ...window) {
	const { groups } = report(name, ...window);
	const measures = window.length ? ["unfreed", "allocated", "count"] : Object.keys(figures);
	for (const measure of measures) {
		await choose(page, measure);
		equal(await value(page, "#total"), sum(groups, figures[measure]), `${name} ${window.join(" ")}: ${measure}`);
		await showAllRows(page);
		equal(JSON.stringify(sorted(await tableValues(page))), JSON.stringify(sorted(groups.map((group) => group[figures[measure]]))),
			`${name} ${window.join(" ")}: ${measure} of each stack`);
	}
	await choose(page, "unfreed");
	// The frames of the graph: the widest below the top is the outermost function that holds most.
	const byOutermost = new Map();
	for (const group of groups) {
		const outermost = nameOf(group.frames[group.frames.length - 1]);
		byOutermost.set(outermost, (byOutermost.get(outermost) || 0) + group.unfreed_bytes);
	}
	await page.locator("#graph").focus();
	await page.keyboard.press("Home");
	equal(await value(page, "#details"), sum(groups, "unfreed_bytes"), `${name} ${window.join(" ")}: the graph`);
	await page.keyboard.press("ArrowDown");
	if ((await text(page, "#details .name")) === "(callers missing)")
		await page.keyboard.press("ArrowDown");
	equal(await value(page, "#details"), Math.max(...byOutermost.values()), `${name} ${window.join(" ")}: the widest frame`);
	equal(byOutermost.get(await text(page, "#details .name")), Math.max(...byOutermost.values()), `${name} ${window.join(" ")}: its name`);
	return groups;
}

// The window that the page says is selected, as options.
async function windowOf(page, name) {
	const { from_ns: start, end_ns: end } = report(name);
	const range = await page.locator("#range-text").evaluate((output) => ({ ...output.dataset }));
	const from = start + Number(range.from), to = start + Number(range.to);
	return to >= end ? ["--from", `@${from}`] : ["--from", `@${from}`, "--to", `@${to}`];
}

async function dragRange(page, from, to) {
	await page.locator("#chart").scrollIntoViewIfNeeded();
	const box = await page.locator("#chart").boundingBox();
	await page.mouse.move(box.x + box.width * from, box.y + 60);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * (from + to) / 2, box.y + 70);
	await page.mouse.move(box.x + box.width * to, box.y + 80);
	await page.mouse.up();
}

await withPage("before", {}, async (page) => {
	await compareWithReport(page, "before");
	for (const [from, to] of [[0.2, 0.5], [0.9, 0.4], [0.5, 1]]) {
		if (await page.locator("#range-all").isEnabled())
			await page.locator("#range-all").click();
		await dragRange(page, from, to);
		const window = await windowOf(page, "before");
		check(window.length === (to === 1 ? 2 : 4), `dragged from ${from} to ${to}: ${window.join(" ")}`);
		await compareWithReport(page, "before", ...window);
	}
	await page.locator("#range-from").fill("0.0005");
	await page.locator("#range-to").fill("0.002");
	await page.locator("#range-form button[type=submit]").click();
	await compareWithReport(page, "before", ...(await windowOf(page, "before")));
	await choose(page, "committed");
	check(await page.locator("#measure-note").isVisible(), "no note that committed bytes are those of the end");
});

await withPage("before", {}, async (page) => {
	const range = () => page.locator("#range-text").evaluate((output) => [Number(output.dataset.from), Number(output.dataset.to)]);
	const [, whole] = await range();
	await page.locator("#chart").focus();
	await page.keyboard.press("ArrowRight");
	const [from, to] = await range();
	check(from > 0 && to === whole, `ArrowRight selects ${from} to ${to} of ${whole}`);
	await page.keyboard.press("Shift+ArrowLeft");
	await page.keyboard.press("Shift+ArrowLeft");
	const resized = await range();
	check(resized[0] === from && resized[1] < whole, `Shift+ArrowLeft selects ${resized}`);
	await compareWithReport(page, "before", ...(await windowOf(page, "before")));
	await page.locator("#chart").focus();
	await page.keyboard.press("ArrowLeft");
	const moved = await range();
	check(moved[0] < resized[0] && Math.abs(moved[1] - moved[0] - (resized[1] - resized[0])) < whole / 50, `ArrowLeft selects ${moved} after ${resized}`);
	await page.keyboard.press("Escape");
	equal(JSON.stringify(await range()), JSON.stringify([0, whole]), "Escape in the chart");
});

await withPage("before", {}, async (page) => {
	const { groups } = report("before"), total = sum(groups, "unfreed_bytes");
	const word = groups[3].frames[2].function;
	const matching = groups.filter((group) => group.frames.some((frame) => (frame.function + "\n" + frame.module).includes(word)));
	await page.locator("h1").click();
	await page.keyboard.press("/");
	await page.keyboard.type(word.toUpperCase());
	await page.waitForFunction(() => document.getElementById("matched").textContent);
	equal(await value(page, "#matched"), sum(matching, "unfreed_bytes"), `search for ${word}`);
	check((await text(page, "#matched")).includes((100 * sum(matching, "unfreed_bytes") / total).toFixed(1) + " %"), `search: ${await text(page, "#matched")}`);
	equal(await text(page, "#table-count"), stackCount(matching.filter((group) => group.unfreed_bytes).length), "stacks found");
	await page.keyboard.press("Escape");
	equal(await text(page, "#matched"), "", "Escape in the search");

	// Enlarge the widest frame: the table has the stacks through it.
	await page.locator("#graph").focus();
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	const name = await text(page, "#details .name");
	const through = groups.filter((group) => group.unfreed_bytes && group.frames[group.frames.length - 1].function === name);
	equal(await text(page, "#table-count"), `${stackCount(through.length)} through ${name}`, "stacks through an enlarged frame");
	await page.keyboard.press("Escape");
	check(!(await text(page, "#table-count")).includes("through"), "Escape in the graph");
	const box = await page.locator("#graph").boundingBox();
	await page.mouse.click(box.x + 20, box.y + 3 * 19 + 8);
	check((await text(page, "#table-count")).includes("through"), "a click on a frame");
	await page.locator("#details button", { hasText: "Show all stacks" }).click();
	check(!(await text(page, "#table-count")).includes("through"), "a click on the button that shows all stacks");

	// Inverted, the widest frame is the innermost function that holds most.
	await page.locator("#inverted").check();
	const innermost = new Map();
	for (const group of groups)
		innermost.set(group.frames[0].function, (innermost.get(group.frames[0].function) || 0) + group.unfreed_bytes);
	await page.locator("#graph").focus();
	await page.keyboard.press("Home");
	await page.keyboard.press("ArrowDown");
	equal(await value(page, "#details"), Math.max(...innermost.values()), "inverted: the widest frame");
	equal(innermost.get(await text(page, "#details .name")), Math.max(...innermost.values()), "inverted: its name");
	await page.locator("#inverted").uncheck();
	await page.locator("#merge").selectOption("module");
	await page.locator("#graph").focus();
	await page.keyboard.press("Home");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowDown");
	equal(await text(page, "#details .name"), groups[0].frames[0].module, "merged by module");
	equal(await value(page, "#details"), total, "merged by module: everything");
});

await withPage("before", {}, async (page) => {
	const { thread_totals: threads } = report("before");
	for (const { thread, unfreed_bytes: bytes } of threads) {
		await page.locator("#filter-thread").selectOption(`${thread.name} (${thread.tid})`);
		equal(await value(page, "#total"), bytes, `thread ${thread.tid}`);
	}
	await page.locator("#table-head button", { hasText: "Count" }).click();
	const counts = await page.locator("#table-body tr.row td:nth-child(4)").allTextContents();
	equal(JSON.stringify(counts.map(Number)), JSON.stringify(counts.map(Number).sort((a, b) => b - a)), "sorted by count");
	await page.locator("#table-body tr.row").first().click();
	const lines = await page.locator("tr.frames .frame-list > span:first-child").count();
	equal(lines, 1, "frames of an opened row");
	equal(await page.locator("#table-body button.unfold").first().getAttribute("aria-expanded"), "true", "an opened row says so");
	await page.keyboard.press("Enter");
	equal(await page.locator("tr.frames").count(), 0, "Enter closes the row");
});

await withPage("more", {}, async (page) => {
	const { groups } = report("more");
	// As of a JIT runtime: address space that is reserved and never touched is many times what is resident.
	check(sum(groups, "unfreed_bytes") > 2 * sum(groups, "resident_bytes"), "more: most of it is resident");
	equal(await page.locator("#measures input:checked").getAttribute("value"), "resident", "more: the page opens on");
	await compareWithReport(page, "more");
	for (const name of Object.keys(groups[0].class_bytes)) {
		const bytes = groups.reduce((total, group) => total + group.class_bytes[name], 0);
		if (!bytes)
			continue;
		if (await page.locator("#filter-class").isEnabled())
			await page.locator("#filter-class").selectOption(name);
		equal(await value(page, "#total"), bytes, `class ${name}`);
	}
	if (await page.locator("#filter-class").isEnabled())
		await page.locator("#filter-class").selectOption("");
	check((await text(page, ".trust")).includes("all match"), "more: the check");
	equal(await page.locator(".chip.bad").count(), 0, "more: nothing is wrong");
	await choose(page, "resident");
	equal(await value(page, "#total"), sum(groups, "resident_bytes"), "resident bytes");

	// What is known of the end only does not follow a range, and says so.
	for (const [measure, bytes] of [["resident", "resident_bytes"], ["committed", "committed_bytes"]]) {
		const word = measure[0].toUpperCase() + measure.slice(1);
		await choose(page, measure);
		const counts = await page.locator("#table-body tr.row td:nth-child(4)").allTextContents();
		check(await page.locator("#measure-note").isHidden(), `${measure}: a note without a range`);
		check(await page.locator("#measures .at-end").first().isHidden(), `${measure}: "at end" without a range`);
		await dragRange(page, 0.3, 0.5);
		equal(await text(page, "#measure-note"), `${word} bytes are those at the end of the recording: they do not follow the selected range.` +
			"Show unfreed bytes of the range", `${measure}: the note`);
		check(await page.locator("#measures .at-end").first().isVisible(), `${measure}: no "at end" beside the measure`);
		equal(await value(page, "#total"), sum(groups, bytes), `${measure} bytes with a range`);
		check((await text(page, "#total")).startsWith(`${word} at the end: `), `${measure}: ${await text(page, "#total")}`);
		equal(JSON.stringify(await page.locator("#table-body tr.row td:nth-child(4)").allTextContents()), JSON.stringify(counts), `${measure}: counts with a range`);
		equal(await text(page, "#filter-text"), "", `${measure}: what is said to be selected`);
		await page.locator("#measure-note button").click();
		check((await value(page, "#total")) < sum(groups, "unfreed_bytes"), `${measure}: the button shows the range`);
		check((await text(page, "#filter-text")).startsWith("Only "), `${measure}: the range is not said`);
		await page.locator("#range-all").click();
	}
});

// The filter of processes: what children that have ended had mapped is allocated, but not unfreed.
await withPage("processes", {}, async (page) => {
	const { processes, groups } = report("processes");
	await choose(page, "allocated");
	check(processes.length > 2, "processes: there are none");
	for (const { pid, name } of processes) {
		await page.locator("#filter-process").selectOption(`${name} (${pid})`);
		const bytes = report("processes", "--pid", pid).groups.map((group) => group.allocated_bytes);
		check(bytes.some((one) => one > 0), `process ${pid} mapped nothing`);
		equal(await value(page, "#total"), bytes.reduce((total, one) => total + one, 0), `process ${pid}`);
		await showAllRows(page);
		equal(JSON.stringify(sorted(await tableValues(page))), JSON.stringify(sorted(bytes)), `process ${pid}: stacks`);
		equal(await text(page, "#filter-text"), `Only process ${name} (${pid})`, `process ${pid}: what is selected`);
	}
	await page.locator("#filter-process").selectOption("");
	equal(await value(page, "#total"), sum(groups, "allocated_bytes"), "all processes");
});

await withPage("troubled", {}, async (page) => {
	const trust = await page.locator(".chip.bad").allTextContents();
	check(trust.some((line) => line.startsWith("LOST: 2 events")), `troubled: ${trust.join("; ")}`);
	check(trust.some((line) => line.includes("48.00 KiB differ")), `troubled: ${trust.join("; ")}`);
});

await withPage("diff", {}, async (page) => {
	const before = report("before"), after = report("after");
	const total = page.locator("#total");
	for (const measure of ["unfreed", "allocated", "count"]) {
		await choose(page, measure);
		equal(Number(await total.getAttribute("data-before")), sum(before.groups, figures[measure]), `diff: ${measure} before`);
		equal(await value(page, "#total"), sum(after.groups, figures[measure]), `diff: ${measure} after`);
	}
	await choose(page, "unfreed");
	const diff = JSON.parse(execFileSync(process.env.MMTRACE, ["diff", "--json", `${directory}/before.data`, `${directory}/after.data`],
		{ maxBuffer: 1 << 28, encoding: "utf8" }));
	const kinds = { new: 0, gone: 0, grown: 0, shrunk: 0 };
	for (const entry of diff.entries.filter((one) => one.bytes))
		kinds[entry.change]++;
	await showAllRows(page);
	const shown = await page.locator("#table-body tr.row td:nth-child(5)").allTextContents();
	for (const kind of Object.keys(kinds))
		equal(shown.filter((word) => word === kind).length, kinds[kind], `diff: ${kind} stacks`);
	check((await page.locator("#table-body .more-bytes").count()) > 0 && (await page.locator("#table-body .fewer-bytes").count()) > 0,
		"diff: growth and shrinkage in two colours");
	// Both colours are in the graph.
	const colours = await page.locator("#graph").evaluate((canvas) => {
		const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		let red = 0, blue = 0;
		for (let i = 0; i < pixels.length; i += 4) {
			red += pixels[i] > pixels[i + 2] + 30 && pixels[i + 3] > 200;
			blue += pixels[i + 2] > pixels[i] + 30 && pixels[i + 3] > 200;
		}
		return { red, blue };
	});
	check(colours.red > 1000 && colours.blue > 1000, `diff: pixels of the graph: ${JSON.stringify(colours)}`);
	await dragRange(page, 0.3, 0.7);
	check(!(await text(page, "#range-text")).startsWith("Whole"), "diff: a range");
	check((await value(page, "#total")) < sum(after.groups, "unfreed_bytes"), "diff: the range changes the sum");
});

for (const name of ["hostile", "hostile-diff"]) {
	await withPage(name, {}, async (page) => {
		const state = () => page.evaluate(() => ({
			hostile: window.hostile, scripts: document.scripts.length,
			made: document.querySelectorAll("img, a, b:not(.facts b), textarea, iframe").length,
		}));
		for (const row of await page.locator("#table-body tr.row").all())
			await row.click({ position: { x: 5, y: 5 } });
		await page.locator("details.more").first().evaluate((details) => { details.open = true; });
		await page.locator("#folded").uncheck();
		await page.locator("#search").fill("<script>");
		await page.locator("#graph").focus();
		for (const key of ["ArrowDown", "ArrowDown", "Enter", "Escape"])
			await page.keyboard.press(key);
		equal(JSON.stringify(await state()), JSON.stringify({ scripts: 2, made: 0 }), `${name}: elements`);
		check((await text(page, "body")).includes("</script><script>window.hostile=1;alert(1)</script>"), `${name}: names are not shown as they are`);
		check((await page.title()).includes("</script>"), `${name}: the title`);
		check((await text(page, ".frame-list")).length > 0, `${name}: no frames`);
		await savePicture(page, name);
	});
	await withPage(`${name}.svg`, {}, async (page) => {
		const made = await page.evaluate(() => [document.documentElement.localName, window.hostile, document.getElementsByTagName("script").length, document.querySelectorAll("img, parsererror").length]);
		equal(JSON.stringify(made), JSON.stringify(["svg", null, 1, 0]), `${name}: elements of the picture`);
		check((await page.locator("title").allTextContents()).some((one) => one.includes("</script><script>window.hostile=1;alert(1)</script>")), `${name}: names are not in the picture as they are`);
	});
}

// Marks are lines in the chart, where they were made, and are listed below the verdict.
await withPage("hostile", {}, async (page) => {
	// Who touched a part of the growth stands in its item.
	check(/^touched in .* began\s*touched by <img src=x .*: 3.00 MiB$/.test(await text(page, ".growth li:has(.amount) span:last-child")),
		`growth: ${JSON.stringify(await text(page, ".growth"))}`);
	const pixels = await page.locator("#chart").evaluate((canvas) => {
		const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
		const column = (share) => {
			const x = Math.round((74 + share * (canvas.clientWidth - 88)) * width / canvas.clientWidth);
			let count = 0;
			for (let y = 0; y < height; y++)
				count += data[4 * (y * width + x) + 3] > 100;
			return count;
		};
		return { marks: [0.25, 0.75].map(column), others: [0.35, 0.65].map(column) };
	});
	for (const count of pixels.marks)
		check(count > 50 && pixels.others.every((other) => other < 20), `marks in the chart: ${JSON.stringify(pixels)}`);
});

// The table of causes of the text report: the memory of each, and what other causes have together.
function textCauses(name) {
	const lines = execFileSync(process.env.MMTRACE, ["report", `${directory}/${name}.data`], { encoding: "utf8" }).split("\n");
	const first = lines.findIndex((line) => /^ +memory .* mapped by/.test(line)) + 1;
	const table = first ? lines.slice(first, lines.indexOf("", first)) : [];
	const size = (pattern) => table.map((line) => line.match(pattern)).filter(Boolean).map((found) => found.slice(1).join(" in "));
	return { sizes: size(/^ *\d+ +([\d.]+ [KMG]?i?B)\b/), rest: size(/^ +([\d.]+ [KMG]?i?B) .*in ([\d,]+ other places?)/) };
}

// A click on a cause selects its stacks everywhere; another takes that back.
for (const name of ["before", "troubled"]) {
	await withPage(name, {}, async (page) => {
		const { causes, groups } = report(name), { sizes, rest } = textCauses(name), listed = causes.slice(0, sizes.length);
		check(listed.length > 0, `${name}: there are no causes`);
		await choose(page, "unfreed");
		equal(JSON.stringify(await page.locator("tr.cause td:first-child").allTextContents()), JSON.stringify(sizes), `${name}: causes`);
		equal((await text(page, ".causes thead th:last-child")).replace(/^[^;]*(; )?/, ""), rest.join(), `${name}: other causes`);
		const whole = sum(groups, "unfreed_bytes");
		for (const [i, cause] of listed.entries()) {
			const row = page.locator("tr.cause").nth(i), own = groups.filter((group) => cause.groups.includes(group.id));
			if (cause.name)
				equal(await row.locator("button").textContent(), cause.caller || cause.name, `${name}: cause ${i}`);
			await row.click();
			equal(await value(page, "#total"), sum(own, "unfreed_bytes"), `${name}: the stacks of cause ${i}`);
			equal(await row.locator("button").getAttribute("aria-pressed"), "true", `${name}: a chosen cause says so`);
			check((await text(page, "#filter-text")).startsWith("Only cause "), `${name}: ${await text(page, "#filter-text")}`);
			await row.click();
			equal(await value(page, "#total"), whole, `${name}: cause ${i} clicked again`);
		}
		await page.locator("tr.cause button").first().focus();
		await page.keyboard.press("Enter");
		check((await text(page, "#filter-text")).startsWith("Only cause "), `${name}: Enter on a cause`);
		await page.locator("#filter-reset").click();
		equal(await value(page, "#total"), whole, `${name}: everything again`);
	});
}

// Functions: self is what the stacks hold whose innermost function it is, total what all stacks through it hold.
await withPage("before", {}, async (page) => {
	const { groups } = report("before"), self = new Map(), total = new Map();
	for (const group of groups) {
		const names = group.frames.map(nameOf);
		self.set(names[0], (self.get(names[0]) || 0) + group.unfreed_bytes);
		for (const name of new Set(names))
			total.set(name, (total.get(name) || 0) + group.unfreed_bytes);
	}
	await choose(page, "unfreed");
	for (const inverted of [false, true]) {
		await page.locator("#inverted").setChecked(inverted);
		await page.locator("#table-kind").selectOption("functions");
		check(await page.locator("#table").isHidden(), "both tables are shown");
		for (const [key, column, expected] of [["self", 1, self], ["total", 2, total]]) {
			await page.locator("#sort-" + key).click();
			const rows = await page.locator("#functions-body tr").evaluateAll((list, at) => list.map((row) =>
				[row.querySelector("button").textContent, Number(row.children[at].dataset.value)]), column);
			check(rows.length > 3, "there are no functions");
			for (const [name, bytes] of rows.filter(([name]) => name !== "(callers missing)"))
				equal(bytes, expected.get(name) || 0, `${key} of ${name}, inverted ${inverted}`);
			check(rows.some(([, bytes]) => bytes === Math.max(...expected.values())), `the largest ${key}`);
		}
	}
});

// A click on a function shows its callers and what it calls, in the stacks through exactly this function.
await withPage("before", {}, async (page) => {
	const { groups } = report("before"), names = groups.map((group) => group.frames.map(nameOf));
	const sumsBeside = (name, by) => {
		const sums = new Map();
		names.forEach((list, i) => {
			const place = list.lastIndexOf(name);
			if (place >= 0)
				sums.set(list[place + by], (sums.get(list[place + by]) || 0) + groups[i].unfreed_bytes);
		});
		return sums;
	};
	const total = (sums) => Array.from(sums.values()).reduce((all, bytes) => all + bytes, 0);
	await choose(page, "unfreed");
	await page.locator("#table-kind").selectOption("functions");
	const listed = await page.locator("#functions-body button").allTextContents();
	// Of a name that is a part of others.
	const name = listed.find((one) => names.some((list) => list.slice(1, -1).includes(one)) && listed.some((other) => other !== one && other.includes(one)));
	check(name !== undefined, "no name is a part of another one");
	const row = page.locator("#functions-body tr", { has: page.getByRole("button", { name, exact: true }) });
	await row.locator("button").focus();
	await page.keyboard.press("Enter");
	equal(await row.locator("button").getAttribute("aria-pressed"), "true", "a chosen function says so");
	equal(await page.evaluate(() => document.activeElement.textContent), name, "the focus after choosing a function");
	equal((await page.locator("#functions-body button").allTextContents()).length, listed.length, "the other functions");
	check((await text(page, "#filter-text")).startsWith(`Only stacks through ${name} (`), `a chosen function: ${await text(page, "#filter-text")}`);
	const callers = sumsBeside(name, 1), callees = sumsBeside(name, -1), last = page.url();
	for (const flame of [false, true]) {
		await page.locator("#flame").setChecked(flame);
		await page.locator("#graph").focus();
		await page.keyboard.press("Home");
		equal(await text(page, "#details .name"), name, "the chosen function in the graph");
		equal(await value(page, "#details"), total(callers), `stacks through ${name}`);
		for (const [key, back, sums] of [["ArrowUp", "ArrowDown", flame ? callees : callers], ["ArrowDown", "ArrowUp", flame ? callers : callees]]) {
			await page.keyboard.press(key);
			equal(await value(page, "#details"), Math.max(...sums.values()), `${key} from ${name}, flame ${flame}`);
			equal(sums.get(await text(page, "#details .name")), Math.max(...sums.values()), `the name at ${key} from ${name}`);
			await page.keyboard.press(back);
			equal(await text(page, "#details .name"), name, `${back} after ${key}`);
		}
	}
	await page.locator("#flame").uncheck();
	await page.locator("#table-kind").selectOption("stacks");
	const through = groups.filter((group, i) => group.unfreed_bytes && names[i].includes(name));
	equal(await text(page, "#table-count"), `${stackCount(through.length)} through ${name}`, "the table of a chosen function");

	// The widest caller enlarged: only the stacks through both.
	await page.locator("#graph").focus();
	await page.keyboard.press("Home");
	await page.keyboard.press("ArrowUp");
	await page.keyboard.press("Enter");
	const caller = await text(page, "#details .name");
	const both = names.filter((list, i) => groups[i].unfreed_bytes && list.includes(name) && list[list.lastIndexOf(name) + 1] === caller);
	equal(await text(page, "#table-count"), `${stackCount(both.length)} through ${caller}`, "an enlarged caller");

	// As a picture, which Chromium opens.
	await page.keyboard.press("Escape");
	equal(await savePicture(page, "chosen"), "mmtrace-unfreed.svg", "the name of the picture");
	await withPage("chosen.svg", {}, async (picture) => {
		const rows = await picture.locator("svg svg").evaluateAll((list) => list.map((one) => [Number(one.dataset.d), Number(one.getAttribute("y")), one.querySelector("title").textContent]));
		const whole = rows.find(([place]) => place === 0);
		check(whole[2].startsWith(name + " ("), `the middle of the picture: ${whole[2]}`);
		check(rows.some(([place, y]) => place < 0 && y < whole[1]) && rows.some(([place, y]) => place > 0 && y > whole[1]), "callers and callees in the picture");
		await picture.locator("input").fill(caller);
		check((await picture.locator(".found").count()) > 0 && /^Matched \d+ frames$/.test(await text(picture, "#said")), `the picture's search: ${await text(picture, "#said")}`);
		await picture.locator("svg svg[data-d='-1']").first().click();
		equal(await picture.locator("svg svg[data-d='1']").first().getAttribute("display"), "none", "callees of an enlarged caller");
	});

	await page.locator("#graph").focus();
	await page.keyboard.press("Escape");
	equal(await text(page, "#filter-text"), "", "Escape after a function is chosen");
	const again = await openPage(browser, `${directory}/before.html` + last.slice(last.indexOf("#")));
	check((await text(again, "#filter-text")).startsWith(`Only stacks through ${name} (`), "a chosen function in the address");
	await again.context().close();

	// From the graph.
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	const enlarged = await text(page, "#details .name");
	await page.locator("#details button", { hasText: "callers and callees" }).click();
	check((await text(page, "#filter-text")).startsWith(`Only stacks through ${enlarged} (`), `callers and callees of ${enlarged}`);
	await page.locator("#inverted").check();
	equal(await text(page, "#details .name"), enlarged, "an inverted graph of a chosen function");
	await page.locator("#filter-reset").click();
	equal(await text(page, "#filter-text"), "", "everything after a function was chosen");
});

// Made between t1 and t2 and still there at t3: the second selection.
await withPage("before", {}, async (page) => {
	const { start_ns: start, end_ns: end } = report("before");
	const range = () => page.locator("#range-text").evaluate((output) => ({ from: Number(output.dataset.from), to: Number(output.dataset.to), still: Number(output.dataset.still) }));
	const compare = async (name, perStack) => {
		const { from, to, still } = await range();
		const until = start + still >= end ? [] : ["--to", `@${start + still}`], expected = new Map();
		check(from < to && to < still, `${name}: ${from} to ${to}, ${still}`);
		for (const group of report("before", "--from", `@${start + from}`, ...until).groups)
			expected.set(group.identity, group.unfreed_bytes);
		for (const group of report("before", "--from", `@${start + to}`, ...until).groups)
			expected.set(group.identity, expected.get(group.identity) - group.unfreed_bytes);
		const bytes = Array.from(expected.values());
		equal(await value(page, "#total"), bytes.reduce((total, one) => total + one, 0), `${name}: all`);
		if (perStack) {
			await showAllRows(page);
			equal(JSON.stringify(sorted(await tableValues(page))), JSON.stringify(sorted(bytes)), `${name}: of each stack`);
		}
		check((await text(page, "#filter-text")).includes("still there at"), `${name}: ${await text(page, "#filter-text")}`);
	};
	await choose(page, "unfreed");
	await dragRange(page, 0.1, 0.4);
	const { from, to, still } = await range();
	equal(still, to, "without a second selection");
	const atEnd = await value(page, "#total"), box = await page.locator("#chart").boundingBox();
	await page.keyboard.down("Shift");
	await page.mouse.click(box.x + box.width * 0.7, box.y + 60);
	await page.keyboard.up("Shift");
	equal(JSON.stringify([(await range()).from, (await range()).to]), JSON.stringify([from, to]), "the range after the second selection");
	check((await value(page, "#total")) < atEnd, "the second selection changes the sum");
	await compare("a click with Shift", true);
	const address = page.url(), before = await text(page, "#range-text");

	// Its line is dragged, and typed.
	await page.locator("#chart").scrollIntoViewIfNeeded();
	const { x, y, width } = await page.locator("#chart").boundingBox();
	await page.mouse.move(x + 74 + (await range()).still / (end - start) * (width - 88), y + 70);
	await page.mouse.down();
	await page.mouse.move(x + width * 0.85, y + 70);
	await page.mouse.up();
	check((await range()).still > (end - start) * 0.8 && (await range()).to === to, `the line dragged: ${JSON.stringify(await range())}`);
	await compare("the line dragged");
	await page.locator("#range-still").fill(String((end - start) / 2e9));
	await page.keyboard.press("Enter");
	await compare("a typed time");
	await page.locator("#range-still").fill("");
	await page.keyboard.press("Enter");
	equal(await value(page, "#total"), atEnd, "a second selection before the first");
	const again = await openPage(browser, `${directory}/before.html` + address.slice(address.indexOf("#")));
	equal(await text(again, "#range-text"), before, "the second selection in the address");
	await again.context().close();
});

// The address has what is selected, so that it can be opened again; nonsense in it selects nothing.
await withPage("before", {}, async (page) => {
	await page.locator("#search").fill("a");
	await choose(page, "allocated");
	await page.locator("#flame").check();
	await page.locator("#merge").selectOption("line");
	await page.locator("tr.cause").first().click();
	await page.locator("#range-all").isDisabled();
	await dragRange(page, 0.2, 0.6);
	const state = () => page.evaluate(() => ["#filter-text", "#total", "#table-count", "#range-text"].map((id) => document.querySelector(id).textContent).join("|") +
		document.getElementById("flame").checked + document.getElementById("merge").value);
	const before = await state(), address = page.url();
	check(address.includes("#") && !before.includes("Whole recording"), `the address: ${address}`);
	const again = await openPage(browser, `${directory}/before.html` + address.slice(address.indexOf("#")));
	const opened = await again.evaluate(() => ["#filter-text", "#total", "#table-count", "#range-text"].map((id) => document.querySelector(id).textContent).join("|") +
		document.getElementById("flame").checked + document.getElementById("merge").value);
	equal(opened, before, "the address opened again");
	equal(again.faults.length, 0, `an address: ${again.faults.join("; ")}`);
	await again.context().close();
	const odd = await openPage(browser, `${directory}/before.html#cause=99&class=nonsense&from=9e99&to=-1&measure=%22%5D&merge=x&table=<b>&thread=%00`);
	equal(await odd.locator("#filter-text").textContent(), "", "nonsense in the address");
	equal(await value(odd, "#total"), sum(report("before").groups, "unfreed_bytes"), "nonsense in the address: the total");
	equal(odd.faults.length, 0, `nonsense in the address: ${odd.faults.join("; ")}`);
	await odd.context().close();
});

// The selection as folded stacks.
await withPage("before", {}, async (page) => {
	await choose(page, "unfreed");
	const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save").click()]);
	const lines = readFileSync(await download.path(), "utf8").trim().split("\n");
	equal(download.suggestedFilename(), "mmtrace-unfreed.folded", "the name of the file");
	equal(lines.reduce((total, line) => total + Number(line.slice(line.lastIndexOf(" ") + 1)), 0), sum(report("before").groups, "unfreed_bytes"), "folded stacks");
	check(lines.every((line) => /^[^;].* \d+$/.test(line)) && lines.some((line) => line.includes(";")), `folded stacks: ${lines[0]}`);
});

// A flame graph has the outermost frame at the bottom.
await withPage("before", {}, async (page) => {
	const box = () => page.locator("#graph").boundingBox();
	const nameAt = async (x, y) => {
		await page.mouse.move(x, y);
		return text(page, "#details .name");
	};
	await page.locator("#graph").scrollIntoViewIfNeeded();
	const icicle = await box(), top = await nameAt(icicle.x + 20, icicle.y + 8);
	await page.locator("#flame").check();
	await page.locator("#graph").evaluate((canvas) => scrollTo(0, canvas.getBoundingClientRect().bottom + scrollY - innerHeight + 20));
	const flame = await box();
	equal(await nameAt(flame.x + 20, flame.y + flame.height - 8), top, "the frame at the bottom of a flame graph");
	check((await nameAt(flame.x + 20, flame.y + flame.height - 27)) !== top, "the frame above it");
});

// As a picture: a box is as wide as the stacks through it. Boxes below 0.4 are left out, and rows of boxes below 3.
for (const name of ["before", "more", "troubled"]) {
	await withPage(name, {}, async (page) => {
		await choose(page, "unfreed");
		await page.locator("#flame").check();
		await page.locator("#folded").uncheck();
		await savePicture(page, name);
	});
	await withPage(`${name}.svg`, {}, async (page) => {
		const { groups } = report(name), total = sum(groups, "unfreed_bytes"), expected = new Map(), found = new Map();
		for (const group of groups.filter((one) => one.unfreed_bytes))
			for (const frame of group.frames) {
				const { width, count } = expected.get(nameOf(frame)) || { width: 0, count: 0 };
				expected.set(nameOf(frame), { width: width + 1200 * group.unfreed_bytes / total, count: count + 1 });
			}
		const boxes = await page.locator("svg svg").evaluateAll((list) => list.map((one) => [Number(one.getAttribute("width")), one.querySelector("title").textContent.split("\n")[0].replace(/ \([^()]*\)$/, "")]));
		for (const [width, label] of boxes)
			found.set(label, (found.get(label) || 0) + width);
		check(boxes.length > 2 && boxes[0][0] === 1200, `${name}: ${boxes.length} boxes in the picture`);
		for (const [frame, { width, count }] of expected) {
			const drawn = found.get(frame) || 0;
			check(drawn < width + 0.01 * count && drawn > width - 3.01 * count, `${name}: ${frame} is ${drawn} wide in the picture instead of ${width}`);
		}
		for (const label of found.keys())
			check(expected.has(label) || /^\(|^all stacks/.test(label), `${name}: the picture has ${label}`);
	});
}

// Figures with the pointer, a click enlarges, the search says what share it found.
await withPage("before.svg", {}, async (page) => {
	const { groups } = report("before"), total = sum(groups, "unfreed_bytes"), word = groups[3].frames[2].function;
	const said = () => text(page, "#said"), title = await said(), boxes = page.locator("svg svg");
	check(/: Unfreed: [0-9.]+ [KMG]iB$/.test(title), `the picture's title: ${title}`);
	await page.locator("input").fill(word.toUpperCase());
	const matching = groups.filter((group) => group.frames.some((frame) => `${frame.function} (${frame.module})`.includes(word)));
	check(Math.abs(parseFloat((await said()).slice("Matched ".length)) - 100 * sum(matching, "unfreed_bytes") / total) < 0.2, `the picture's search: ${await said()}`);
	const found = await page.locator(".found title").allTextContents();
	check(found.length > 0 && found.every((one) => one.includes(word)), `the picture's search marks ${found.length}`);
	await page.locator("input").fill("");
	equal(await said(), title, "the picture without a search");

	const place = (await boxes.locator("title").allTextContents()).findIndex((one) => one.startsWith("level3_"));
	const box = boxes.nth(place), width = Number(await box.getAttribute("width"));
	await box.click();
	equal(Number(await box.getAttribute("width")), 1200, "a box that is clicked");
	const shown = await boxes.evaluateAll((list) => list.filter((one) => one.getAttribute("display") !== "none").map((one) => Number(one.dataset.d)));
	const row = Number(await box.getAttribute("data-d"));
	check(shown.length > row && shown.filter((one) => one <= row).length === row + 1, `boxes around one that is clicked: ${shown}`);
	await page.locator("svg svg[data-d='0']").click();
	check(Math.abs(Number(await box.getAttribute("width")) - width) < 0.02, "a click on the whole picture");
	await box.hover();
	equal(await said(), (await box.locator("title").textContent()).replace("\n", ": "), "the pointer on a box");
});

// The first screen: verdict, causes, chart, and the top of the graph.
await withPage("before", { width: 1280, height: 800 }, async (page) => {
	for (const [selector, least] of [[".badge", 20], ["tr.cause", 15], ["#chart", 140], ["#graph", 40]]) {
		const { y, height } = await page.locator(selector).first().boundingBox();
		check(Math.min(y + height, 800) - y >= Math.min(least, height) && y > 0, `the first screen lacks ${selector}, which begins at ${y}`);
	}
});

// Long names take no more room, and none that is pointed at moves the graph.
const longName = "std::_Hashtable\\u003cstd::pair\\u003cint const, std::shared_ptr\\u003cns::Connection\\u003e\\u003e, std::hash\\u003cint\\u003e".padEnd(600, ", std::allocator\\u003cint\\u003e") + "\\u003e::rehash_$&(int)";
const [head, rest] = readFileSync(`${directory}/before.html`, "utf8").split("<script type=\"application/json\"");
writeFileSync(`${directory}/long.html`, `${head}<script type="application/json"${rest.slice(0, rest.indexOf("</script>")).replace(/level\d+_\d+/g, longName)}${rest.slice(rest.indexOf("</script>"))}`);
await withPage("long", { width: 1280, height: 800 }, async (page) => {
	const top = async () => (await page.locator("#graph").boundingBox()).y;
	await page.locator("tr.cause").first().click();
	const first = await top();
	check(first + 20 <= 800, `long names: the graph begins at ${first}`);
	const cause = page.locator("tr.cause button").first();
	check(/rehash_level\d+_\d+\(/.test(await cause.textContent()) && (await cause.textContent()).length < 100, `a long name: ${await cause.textContent()}`);
	check((await cause.getAttribute("title")).length > 300, "a long name is not in the title");
	const { x, width } = await page.locator("#graph").boundingBox();
	await page.mouse.move(x + width / 3, first + 2 * 19 + 5);
	check((await text(page, "#details .name")).includes("rehash_level"), `the frame with a long name: ${await text(page, "#details .name")}`);
	equal(await top(), first, "the graph after the pointer was on a long name");
	check((await page.locator("#graph").getAttribute("title")).length > 300, "the name in the graph's title");
});

// XML has neither all characters of UTF-8 nor markup in names.
writeFileSync(`${directory}/odd.html`, `${head}<script type="application/json"${rest.slice(0, rest.indexOf("</script>")).replace(/level\d+_\d+/g, 'a\\u003cb>&\\"\\ufffe$&')}${rest.slice(rest.indexOf("</script>"))}`);
await withPage("odd", {}, (page) => savePicture(page, "odd"));
await withPage("odd.svg", {}, async (page) => {
	const titles = await page.locator("svg svg title").allTextContents();
	check(titles.some((one) => /^a<b>&"\?level\d+_\d+ \(/.test(one)), `odd names in a picture: ${titles.slice(0, 5)}`);
});

// What changed comes first in a diff, then both recordings.
await withPage("diff", { width: 1280, height: 800 }, async (page) => {
	const place = async (selector) => (await page.locator(selector).first().boundingBox()).y;
	const places = [await place("#heading"), await place("#table-body tr.row"), await place(".verdict"), await place("#chart"), await place("#graph")];
	check(places.every((y, i) => !i || y > places[i - 1]) && places[2] < 700, `the order of a diff: ${places}`);
	equal(await page.locator("#table-body tr.row").count(), 10, "changes at first");
	check(/^What changed: .* before, .* after: \+.* \(unfreed\)$/.test(await text(page, "#heading")), `the heading of a diff: ${await text(page, "#heading")}`);
});

// The keyboard reaches and changes everything.
await withPage("before", {}, async (page) => {
	const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent || document.activeElement.value);
	await page.locator("#measures input[value=unfreed]").focus();
	await page.keyboard.press("ArrowLeft");
	check((await text(page, "#total")).startsWith("Count: "), `ArrowLeft in the measures: ${await text(page, "#total")}`);
	await page.keyboard.press("ArrowRight");
	check((await text(page, "#total")).startsWith("Unfreed: "), `ArrowRight in the measures: ${await text(page, "#total")}`);
	await page.locator("#search").focus();
	await page.keyboard.press("Tab");
	equal(await focused(), "graph", "Tab behind the search");
	await page.locator("#table-head button", { hasText: "Age" }).focus();
	await page.keyboard.press("Enter");
	equal(await page.locator("th[aria-sort=descending]").textContent(), "Age", "sorted with Enter");
	equal(await focused(), "Age", "the focus after sorting");
	await page.keyboard.press("Tab");
	await page.keyboard.press("Enter");
	equal(await page.locator("tr.frames").count(), 1, "Enter opens the first row");
	const first = await focused();
	await page.keyboard.press("Tab");
	await page.keyboard.press("Enter");
	equal(await page.locator("tr.frames").count(), 2, "Enter opens the second row");
	check((await focused()) !== first, "the focus after opening a row");
	await page.locator("#more").focus();
	await page.keyboard.press("Enter");
	check((await page.locator("#table-body tr.row").count()) > 50, "Enter shows more rows");
});

// Runs of runtime frames are one frame until they are asked for.
await withPage("hostile", {}, async (page) => {
	const names = async () => {
		const list = [];
		await page.locator("#graph").focus();
		await page.keyboard.press("Home");
		for (let i = 0; i < 12; i++) {
			await page.keyboard.press("ArrowDown");
			list.push(await text(page, "#details .name"));
		}
		return list;
	};
	await page.locator("#filter-class").selectOption("anon");
	const folded = await names();
	check(folded.includes("... runtime frames") && !folded.includes("RunMain"), `folded: ${folded.join(" ")}`);
	await page.locator("#folded").uncheck();
	const unfolded = await names();
	check(!unfolded.includes("... runtime frames") && unfolded.includes("RunMain"), `not folded: ${unfolded.join(" ")}`);
});

// The lowest contrast of what these elements show against what is behind them.
function contrast(page) {
	return page.evaluate(() => {
		const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
		const light = (parts) => {
			const [r, g, b] = parts.slice(0, 3).map((part) => part / 255).map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
			return 0.2126 * r + 0.7152 * g + 0.0722 * b;
		};
		const behind = (node) => {
			for (; node; node = node.parentElement) {
				const parts = parse(getComputedStyle(node).backgroundColor);
				if (parts.length < 4 || parts[3] > 0)
					return parts;
			}
			return [255, 255, 255];
		};
		const selectors = ["h1", "#source", ".headline", ".badge", ".chip", ".help", "#total", "label.chosen", "td.value", ".callers", "th", "footer"];
		return selectors.flatMap((selector) => Array.from(document.querySelectorAll(selector)).slice(0, 5).map((node) => {
			const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
			return [selector, (a + 0.05) / (b + 0.05)];
		})).reduce((least, one) => one[1] < least[1] ? one : least);
	});
}

for (const colorScheme of ["light", "dark"]) {
	await withPage("before", { colorScheme }, async (page) => {
		const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
		equal(background, colorScheme === "light" ? "rgb(255, 255, 255)" : "rgb(20, 23, 27)", `${colorScheme}: the background`);
		const [selector, least] = await contrast(page);
		check(least >= 4.5, `${colorScheme}: contrast of ${selector} is ${least.toFixed(1)}`);
		await page.emulateMedia({ media: "print", colorScheme });
		check(!(await page.locator("#controls").isVisible()), "the controls are printed");
		check((await page.locator("#graph").isVisible()) && (await page.locator("#table").isVisible()), "graph and table are not printed");
		equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)", `${colorScheme}: printed background`);
		check((await page.pdf()).length > 10000, "the printed page is empty");
	});
}

for (const name of ["before", "long", "many", "more", "troubled", "diff", "hostile", "hostile-diff"]) {
	await withPage(name, { width: 400, height: 800 }, async (page) => {
		await page.locator("#table-body tr.row").first().click({ position: { x: 5, y: 5 } });
		const width = await page.evaluate(() => document.documentElement.scrollWidth);
		check(width <= 400, `${name}: ${width} pixels wide in a window of 400`);
		check((await page.locator("#graph").boundingBox()).width > 350, `${name}: the graph is narrower than the window`);
	});
}

await browser.close();
process.exit(failed ? 1 : 0);
