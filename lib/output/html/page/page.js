// SPDX-License-Identifier: LGPL-2.1-or-later
// The parts of the page together: headline, controls, and what is drawn again after which change.

const tones = { growing: "bad", plateau: "good", steady: "good", shrinking: "good", "too-short": "wait", unknown: "wait" };

const ADDRESSES_MIN = 2; // times the memory

function splitBadge(sentence) {
	const end = sentence.indexOf(": ");
	return end < 0 ? [sentence, ""] : [sentence.slice(0, end), sentence.slice(end + 2)];
}

// "+1.00 GiB  in mappings ...": the amount in a column of its own.
function growthLine(line) {
	const item = element("li"), split = line.trim().match(/^([+-]?[0-9.]+ [KMGTPE]?i?B) {2}(.*)$/);
	if (split)
		item.append(element("span", "amount", split[1]), element("span", "", split[2]));
	else
		item.append(element("span", "whole", line.trim()));
	return item;
}

function trustBox(recording) {
	const trust = element("div", "trust");
	for (const [tone, text] of recording.trust)
		trust.append(element("span", "chip " + tone, text.trim()));
	return trust;
}

function notesBox(recording) {
	const box = element("details", "more"), notes = recording.notes.length;
	box.append(element("summary", "", notes ? notes + (notes === 1 ? " note" : " notes") + " on the recording" : "About the recording"));
	for (const line of recording.notes.concat(recording.facts))
		box.append(element("p", "", line.trim()));
	return box;
}

function heapsBox(recording) {
	const box = element("details", "more");
	box.append(element("summary", "", "Blocks in the malloc heap"), element("pre", "", recording.heaps.join("\n")));
	return box;
}

// "demo (pid 15604), 6.7 s   RSS 1.34 MiB at start ...": the processes, and the figures, without the small graph.
function splitHeadline(recording) {
	const parts = recording.growth[0].replace(/[\u2581-\u2588]+\s*$/, "").trim().split(/\s{3,}/);
	return { title: parts[0], figures: parts.slice(1).join(" \u00b7 ") };
}

function verdictBox(recording, i) {
	const box = element("div", "verdict " + (tones[recording.verdict] || "wait"));
	const [word, sentence] = splitBadge(recording.growth[1]);
	const line = element("div", "sentence"), growth = element("ul", "growth");
	const { title, figures } = splitHeadline(recording);
	if (isDiff)
		box.append(element("h2", i ? "key-after" : "key-before", (i ? "After: " : "Before: ") + title));
	line.append(element("span", "badge", word), element("span", "", sentence));
	box.append(element("div", "headline", figures), line);
	for (const part of recording.growth.slice(2)) {
		// Further lines explain the one before.
		if (part.startsWith(" ".repeat(16)) && growth.lastChild)
			growth.lastChild.lastChild.append(element("div", "", part.trim()));
		else
			growth.append(growthLine(part));
	}
	for (const limit of recording.limits)
		box.append(element("p", "note", limit.trim()));
	if (!isDiff && recording.causes.length)
		box.append(causesTable(recording));
	if (growth.firstChild)
		box.append(growth);
	if (recording.heaps.length)
		box.append(heapsBox(recording));
	box.append(trustBox(recording));
	box.lastChild.append(notesBox(recording));
	return box;
}

// Where the two recordings are not two runs of one program.
function showRelation() {
	const box = find("relation"), lines = data.relationLines || [];
	for (const line of lines)
		box.append(element("p", data.relation === "other-program" ? "note" : "", line.trim()));
	box.hidden = !lines.length;
}

function showHeadline() {
	data.recordings.forEach((recording, i) => find("verdicts").append(verdictBox(recording, i)));
	const sources = data.recordings.map((recording) => recording.source.join(" ").trim());
	const name = splitHeadline(data.recordings[0]).title;
	find("heading").textContent = name;
	showRelation();
	find("source").textContent = "mmtrace " + (isDiff ? "diff: " : "report: ") + sources.join(" \u2192 ");
	document.title = "mmtrace: " + (isDiff ? data.recordings.map((recording) => recording.input).join(", ") : name);
	find("footer").textContent = "Made by mmtrace " + data.version + ". This file contains everything it shows and loads nothing." +
		(data.leftOut ? " " + formatCount(data.leftOut) + " smaller stacks are left out." : "");
}

function makeMeasures() {
	const box = find("measures");
	for (const [key, measure] of Object.entries(measures)) {
		const label = element("label"), input = element("input");
		input.type = "radio";
		input.name = "measure";
		input.value = key;
		input.checked = key === selection.measure;
		input.disabled = key === "resident" ? !hasResident : data.touched;
		label.title = !input.disabled ? measure.help : data.touched ? "only what was touched is known" : "the recording has no resident sizes";
		label.classList.toggle("absent", input.disabled);
		label.append(input, element("span", "", measure.label));
		if (measure.atEnd)
			label.append(element("span", "at-end", " at end"));
		input.addEventListener("change", () => {
			selection.measure = key;
			changed("measure");
		});
		box.append(label);
	}
}

function showMeasure() {
	for (const label of find("measures").querySelectorAll("label"))
		label.classList.toggle("chosen", label.querySelector("input").value === selection.measure);
	const note = find("measure-note"), measure = measures[selection.measure];
	note.hidden = !(measure.atEnd && !isWhole());
	note.textContent = note.hidden ? "" : measure.label +
		" bytes are those at the end of the recording: they do not follow the selected range.";
	find("measures").classList.toggle("of-range", !isWhole());
	if (!note.hidden) {
		const button = element("button", "screen", "Show unfreed bytes of the range");
		button.type = "button";
		button.addEventListener("click", () => find("measures").querySelector("[value=unfreed]").click());
		note.append(button);
	}
}

// Memory rather than addresses: what is reserved and never touched would hide all else, and memory mapped before the
// window is not unfreed, however much of it these stacks made accessible.
function chooseMeasure() {
	const total = (figure) => data.recordings[data.recordings.length - 1].parts.reduce((sum, part) => sum + (part[figure] || 0), 0);
	const memory = hasResident && total("resident") > 0 ? "resident" : "committed";
	const mostlyReserved = total("unfreed") > ADDRESSES_MIN * total(memory) && total(memory) > 0;
	if (data.touched || mostlyReserved || total("committed") > total("unfreed"))
		selection.measure = data.touched ? "resident" : memory;
}

function fillSelect(select, key, all) {
	const bytes = new Map();
	for (const recording of data.recordings) {
		for (const part of recording.parts) {
			if (part[key])
				bytes.set(part[key], (bytes.get(part[key]) || 0) + part.unfreed);
		}
	}
	const first = element("option", "", all);
	first.value = "";
	select.append(first);
	for (const [name] of Array.from(bytes).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))) {
		const option = element("option", "", name);
		option.value = name;
		select.append(option);
	}
	select.disabled = bytes.size < 2;
}

function makeFilters() {
	for (const [name, key] of [["class", "className"], ["process", "processKey"], ["thread", "threadKey"]]) {
		const select = find("filter-" + name);
		fillSelect(select, key, name === "class" ? "all classes" : name === "process" ? "all processes" : "all threads");
		select.addEventListener("change", () => {
			selection[name] = select.value;
			changed("filter");
		});
	}
	let pending = 0;
	find("search").addEventListener("input", () => {
		selection.search = find("search").value;
		cancelAnimationFrame(pending);
		pending = requestAnimationFrame(() => changed("search"));
	});
}

// What is shown, in words: also for the printed page, which has no controls.
function showFilters() {
	const words = [];
	for (const name of ["class", "process", "thread"]) {
		if (selection[name])
			words.push(name + " " + selection[name]);
	}
	if (selection.cause)
		words.unshift("cause " + causeName(data.recordings[0].causes[selection.cause - 1]));
	if (selection.search.trim())
		words.push("search \u201c" + selection.search.trim() + "\u201d");
	if (selection.focus)
		words.push("stacks through " + shortName(selection.focus));
	if (graph.zoom)
		words.push("stacks through " + shortName(nameOf(graph.zoom)));
	if (followsRange())
		words.push(find("range-text").textContent);
	find("filter-reset").hidden = !words.length;
	find("filter-text").textContent = words.length ? "Only " + words.join("; ") : "";
}

// Of a selected range, with the time of what does not follow it.
function measureLabel() {
	const { label, atEnd } = measures[selection.measure];
	return atEnd && !isWhole() ? label + " at the end" : label;
}

function showTotal() {
	const total = find("total"), measure = measures[selection.measure];
	const words = isSameProcess ? measure.format(totals[1]) + " in the second recording" : isDiff ? measure.format(totals[0]) + " before, " + measure.format(totals[1]) + " after: " +
		formatChange(totals[1] - totals[0], measure.format) : measure.format(totals[0]);
	total.textContent = measureLabel() + ": " + words;
	if (isDiff)
		find("heading").textContent = "What changed: " + words + " (" + measureLabel().toLowerCase() + ")";
	total.dataset.value = String(totals[totals.length - 1]);
	total.dataset.before = String(totals[0]);
}

// `what`: range, filter, measure, tree, focus, search, zoom, size, or everything.
function changed(what) {
	const started = performance.now();
	if (["size", "scheme", "everything"].includes(what))
		measurePage();
	if (what === "filter" || what === "scheme") {
		makeSeries();
		makeLegend();
	}
	if (["range", "filter", "measure", "everything"].includes(what))
		recalculate();
	if (what === "tree" || what === "everything")
		readPaths();
	if (["tree", "focus", "everything"].includes(what))
		buildTree();
	if (["range", "filter", "measure", "tree", "focus", "everything"].includes(what)) {
		fillTree();
		if (what !== "tree")
			table.shown = ROWS_AT_FIRST;
	}
	if (what !== "zoom" && what !== "size")
		searchTree();
	if (!["search", "zoom", "tree", "focus", "measure"].includes(what)) {
		drawChart();
		showRange();
	}
	showTotal();
	showMeasure();
	drawGraph();
	showFilters();
	showDetails();
	if (what !== "size")
		showTable();
	showCauses();
	if (what !== "everything")
		saveState();
	performance.measure("changed " + what, { start: started, end: performance.now() });
}

function shortcuts(event) {
	const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
	if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
		find("search").focus();
		event.preventDefault();
	} else if (event.key === "Escape" && event.target === find("search")) {
		find("search").value = selection.search = "";
		changed("search");
	}
}

// Everything that "Only ..." names is taken back.
function resetFilters() {
	Object.assign(selection, { cause: 0, class: "", process: "", thread: "", search: "", focus: "", from: 0, to: duration, still: 0 });
	for (const name of ["filter-class", "filter-process", "filter-thread", "search"])
		find(name).value = "";
	changed("filter");
	changed("focus");
}

// What is selected stands behind the "#" of the address, so that a link shows the same.
function saveState() {
	const state = new URLSearchParams();
	for (const name of ["cause", "class", "process", "thread", "search", "focus"]) {
		if (selection[name])
			state.set(name, selection[name]);
	}
	if (!isWhole()) {
		state.set("from", Math.round(selection.from));
		state.set("to", Math.round(selection.to));
		if (stillTime() > selection.to)
			state.set("still", Math.round(selection.still));
	}
	state.set("measure", selection.measure);
	if (graph.options.merge !== "function")
		state.set("merge", graph.options.merge);
	for (const id of ["inverted", "flame", "folded"]) {
		if (graph.options[id] !== (id === "folded"))
			state.set(id, graph.options[id] ? "1" : "0");
	}
	if (find("table-kind").value !== "stacks")
		state.set("table", find("table-kind").value);
	history.replaceState(null, "", "#" + state);
}

// An address may contain anything: what the page does not have is not selected.
function restoreState() {
	const state = new URLSearchParams(location.hash.slice(1));
	const number = (name, other) => state.has(name) && Number(state.get(name)) >= 0 ? Math.min(Number(state.get(name)), duration) : other;
	const choose = (id, value) => {
		const select = find(id);
		select.value = value;
		if (select.selectedIndex < 0)
			select.selectedIndex = 0;
		return select.value;
	};
	const cause = Number(state.get("cause"));
	selection.cause = !isDiff && data.recordings[0].causes[cause - 1] ? cause : 0;
	for (const name of ["class", "process", "thread"])
		selection[name] = choose("filter-" + name, state.get(name) || "");
	selection.search = find("search").value = state.get("search") || "";
	selection.focus = state.get("focus") || "";
	const from = number("from", 0), to = number("to", duration);
	selection.from = from < to ? from : 0;
	selection.to = from < to ? to : duration;
	selection.still = number("still", 0);
	const measure = find("measures").querySelector("[value=" + CSS.escape(state.get("measure") || selection.measure) + "]");
	if (measure && !measure.disabled) {
		measure.checked = true;
		selection.measure = measure.value;
	}
	choose("merge", state.get("merge") || "function");
	choose("table-kind", state.get("table") || "stacks");
	for (const id of ["inverted", "flame", "folded"])
		find(id).checked = state.has(id) ? state.get(id) === "1" : id === "folded";
}

// One line for each selected stack: outermost function first, and bytes or count.
function saveFolded() {
	const last = values.length - 1, lines = [];
	for (const i of chooseRows()) {
		const names = stacks[i].frames.map((number) => frames[number].name.replace(/;/g, ":")).reverse();
		if (values[last][i] > 0)
			lines.push((names.join(";") || stacks[i].label || "(no stack)") + " " + Math.round(values[last][i]));
	}
	saveFile("folded", lines.join("\n") + "\n", "text/plain");
}

function saveFile(suffix, text, type) {
	const link = element("a"), url = URL.createObjectURL(new Blob([text], { type }));
	link.href = url;
	link.download = "mmtrace-" + selection.measure + "." + suffix;
	link.click();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function setPrinting(value) {
	printing = value;
	changed("scheme");
}

// What changed comes first, then the two recordings.
function arrangeDiff() {
	const help = find("graph-help");
	help.textContent = "Red holds more than before, blue less; a frame is as wide as the larger of the two. " + help.textContent;
	document.body.classList.add("diff");
	document.querySelector("main").prepend(find("table-section"), find("verdicts"));
}

function readTreeOptions() {
	graph.options.merge = find("merge").value;
	for (const id of ["inverted", "flame", "folded"])
		graph.options[id] = find(id).checked;
}

function start() {
	measurePage();
	showHeadline();
	chooseMeasure();
	makeMeasures();
	makeFilters();
	if (isDiff)
		arrangeDiff();
	restoreState();
	readTreeOptions();
	startChart();
	startGraph();
	startTable();
	startFunctions();
	find("save").addEventListener("click", saveFolded);
	find("save-svg").addEventListener("click", () => saveFile("svg", svgOfGraph(), "image/svg+xml"));
	find("filter-reset").addEventListener("click", resetFilters);
	addEventListener("hashchange", () => {
		restoreState();
		readTreeOptions();
		makeSeries();
		makeLegend();
		changed("everything");
	});
	changed("everything");
	let width = document.documentElement.clientWidth, pending = 0;
	addEventListener("resize", () => {
		cancelAnimationFrame(pending);
		pending = requestAnimationFrame(() => {
			if (width !== document.documentElement.clientWidth)
				changed("size");
			width = document.documentElement.clientWidth;
		});
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => changed("scheme"));
	addEventListener("beforeprint", () => setPrinting(true));
	addEventListener("afterprint", () => setPrinting(false));
	document.addEventListener("keydown", shortcuts);
}

start();
