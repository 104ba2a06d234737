// SPDX-License-Identifier: LGPL-2.1-or-later
// The table of stacks: those of the selection, the filters, the search and the enlarged frame, fifty at a time.

const ROWS_AT_ONCE = 50, ROWS_AT_FIRST = isDiff ? 10 : ROWS_AT_ONCE;
const table = {
	shown: ROWS_AT_FIRST, sort: isDiff ? "change" : "value", open: new Set(),
	heads: [], // cells of the head, as `columns`
	rows: [],  // what is shown, from the top; their elements are filled again rather than made again
};

// The time in which the values came about.
function spanOf(recording) {
	const { from, to } = selection;
	return Math.max(1, measures[selection.measure].atEnd ? recording.duration : to - from);
}

// Nanoseconds since the oldest and the youngest mapping that is still there was made, at the end of the range.
function agesOf(recording, i, stack) {
	const one = sums[i];
	if (!one.count[stack])
		return null;
	if (one.whole) {
		const times = stacks[stack].times[i];
		return times ? { oldest: recording.duration - times[0], youngest: recording.duration - times[1] } : null;
	}
	if (one.youngest[stack] < 0)
		return null;
	const end = Math.min(stillTime(), recording.duration);
	return {
		oldest: Math.max(0, end - stepTime(recording, one.oldest[stack])),
		youngest: Math.max(0, end - stepTime(recording, one.youngest[stack] + 1)),
	};
}

function ageText(ages) {
	if (!ages)
		return "";
	const oldest = formatDuration(ages.oldest), youngest = formatDuration(ages.youngest);
	return oldest === youngest ? oldest : oldest + " to " + youngest;
}

function rowOf(i) {
	const last = values.length - 1, recording = data.recordings[last];
	const value = values[last][i], before = isDiff ? values[0][i] : 0;
	const ages = agesOf(recording, last, i);
	const classes = largestWord(i, (part) => part.className);
	const files = largestWord(i, (part) => part.file < 0 ? "" : data.strings[part.file]);
	return {
		stack: i, value, before, change: value - before, ages,
		rate: value / spanOf(recording) * 60e9,
		count: sums[last].count[i],
		age: ages ? ages.oldest : -1,
		class: classes.word + (classes.others ? " +" + classes.others : ""),
		file: files.word, otherFiles: files.others,
	};
}

const columns = isDiff ? [
	{ key: "before", label: "Before", sort: true },
	{ key: "value", label: "After", sort: true },
	{ key: "change", label: "Change", sort: true },
	{ key: "kind", label: "" },
	{ key: "class", label: "Class", text: true },
	{ key: "file", label: "File", text: true },
	{ key: "title", label: "Stack", text: true },
] : [
	{ key: "value", label: "", sort: true },
	{ key: "share", label: "Share" },
	{ key: "count", label: "Count", sort: true },
	{ key: "rate", label: "Per minute", sort: true },
	{ key: "age", label: "Age", sort: true },
	{ key: "class", label: "Class", text: true },
	{ key: "file", label: "File", text: true },
	{ key: "title", label: "Stack", text: true },
];

function makeHead() {
	find("table-head").append(element("th", "unsorted", "#"));
	for (const column of columns) {
		const cell = element("th", (column.text ? "text" : "") + (column.sort ? "" : " unsorted"));
		const label = column.sort ? element("button") : cell;
		cell.scope = "col";
		label.textContent = column.label;
		if (column.sort) {
			label.type = "button";
			label.addEventListener("click", () => {
				table.sort = column.key;
				table.shown = ROWS_AT_FIRST;
				drawTable();
			});
			cell.append(label);
		}
		find("table-head").append(cell);
		table.heads.push(cell);
	}
}

function fillHead() {
	columns.forEach((column, i) => {
		const cell = table.heads[i];
		if (column.sort)
			cell.setAttribute("aria-sort", table.sort === column.key ? "descending" : "none");
		if (column.key === "value" && !isDiff)
			cell.firstChild.textContent = measureLabel();
	});
}

// `everyFunction`: also stacks that are not through the chosen function.
function chooseRows(everyFunction = false) {
	const text = selection.search.trim().toLowerCase(), isAny = !graph.zoom && (everyFunction || !selection.focus);
	const candidates = text ? findMatches(text) : Array.from(stacks.keys());
	return candidates.filter((i) => widths[i] > 0 && (isAny || goesThrough(i, graph.zoom)));
}

// Only what is compared is calculated for every stack.
function sortRows(list) {
	const last = values.length - 1, key = table.sort;
	const figure = {
		value: (i) => values[last][i],
		before: (i) => values[0][i],
		change: (i) => Math.abs(values[last][i] - values[0][i]),
		count: (i) => sums[last].count[i],
		rate: (i) => values[last][i],
		age: (i) => { const ages = agesOf(data.recordings[last], last, i); return ages ? ages.oldest : -1; },
	}[key];
	const figures = new Float64Array(stacks.length);
	for (const i of list)
		figures[i] = figure(i);
	return list.sort((a, b) => figures[b] - figures[a] || a - b);
}

const kinds = { new: "new", gone: "gone", grown: "grown", shrunk: "shrunk", same: "same" };

function kindOf(row) {
	// Of one process, nothing was there before, but the stack may have been in the first recording.
	if (!row.before)
		return isSameProcess && data.stacks[row.stack].inFirst && row.change > 0 ? kinds.grown : kinds.new;
	if (!row.value)
		return kinds.gone;
	return row.change > 0 ? kinds.grown : row.change < 0 ? kinds.shrunk : kinds.same;
}

function cellText(column, row) {
	const { format } = measures[selection.measure], last = values.length - 1;
	switch (column.key) {
	case "value": return format(row.value);
	case "before": return format(row.before);
	case "change": return formatChange(row.change, format);
	case "kind": return kindOf(row) + (stacks[row.stack].uncertain ? " (uncertain)" : "");
	case "share": return formatPercent(row.value, totals[last]);
	case "count": return formatCount(row.count);
	case "rate": return selection.measure === "count" ? formatCount(row.rate) : formatChange(row.rate, formatBytes);
	case "age": return ageText(row.ages);
	case "class": return row.class;
	case "file": return row.file ? baseName(row.file) + (row.otherFiles ? " +" + row.otherFiles : "") : "";
	default: return "";
	}
}

// Only what changes: the browser lays out every cell that is touched.
function setIfNew(node, property, value) {
	if (node[property] !== value)
		node[property] = value;
}

function fillCell(cell, column, row) {
	const last = values.length - 1;
	setIfNew(cell.firstChild, "data", cellText(column, row));
	switch (column.key) {
	case "value":
		setIfNew(cell.dataset, "value", String(row.value));
		setIfNew(cell, "title", formatCount(row.value) + (selection.measure === "count" ? "" : " bytes"));
		if (!isDiff)
			setIfNew(cell.lastChild.style, "width", totals[last] > 0 ? Math.max(1, 100 * row.value / totals[last]).toFixed(1) + "%" : "0%");
		break;
	case "before":
		setIfNew(cell.dataset, "value", String(row.before));
		break;
	case "change":
		setIfNew(cell, "className", row.change > 0 ? "more-bytes" : row.change < 0 ? "fewer-bytes" : "same-bytes");
		break;
	case "file":
		setIfNew(cell, "title", row.file);
		break;
	}
}

const verdictHelp = {
	leak: "mapped throughout the recording, and older than the mappings that were unmapped had become",
	"part of a leak": "all stacks of this cause are a leak together while the resident size grows",
	growing: "mapped throughout the recording, as a leak, but an allocator or a runtime keeps this memory by design",
	cache: "mapped early, and kept since",
	"allocated early": "mapped early, and kept since, but too few mappings to call them a cache",
	"short-lived": "no older than the mappings that were unmapped had become",
};

function fillTitle(cell, stack) {
	const { name, callers } = stackTitle(stacks[stack]);
	const button = shortElement("button", "unfold", name);
	const { verdict, verdictWord } = stacks[stack];
	const word = verdict && verdictWord.toLowerCase();
	cell.textContent = "";
	if (verdict) {
		cell.append(element("span", "verdict-word " + verdict, word));
		cell.lastChild.title = verdictHelp[word] || "";
	}
	button.type = "button";
	if (callers)
		button.append(shortElement("span", "callers", " < " + callers, 200));
	cell.append(button);
}

function frameList(stack) {
	const list = element("div", "frame-list");
	for (const number of stack.frames) {
		const frame = frames[number];
		const doubt = frame.flags & FRAME_DOUBTFUL ? "? " : "", inlined = frame.flags & FRAME_INLINED;
		list.append(element("span", inlined ? "frame-name inlined" : "frame-name", doubt + frame.name + (inlined ? " (inlined)" : "")),
			element("span", "module", frame.module),
			element("span", "place", placeOf(frame)));
		if (frame.source)
			list.lastChild.title = frame.source;
	}
	if (!stack.frames.length)
		list.append(element("span", "end", stack.label || "(no stack)"));
	if (stack.truncated)
		list.append(element("span", "end", "callers beyond here are missing: " + stack.truncated));
	return list;
}

function factsOf(row) {
	const facts = element("div", "facts");
	const add = (label, text) => {
		const fact = element("span", "", label + " ");
		fact.append(element("b", "", text));
		facts.append(fact);
	};
	data.recordings.forEach((recording, i) => {
		const one = sums[i], stack = row.stack, suffix = isDiff ? (i ? " after" : " before") : "";
		add("unfreed" + suffix, formatBytes(one.unfreed[stack]) + " in " + formatCount(one.count[stack]));
		add("allocated" + suffix, formatBytes(one.allocated[stack]) + " in " + formatCount(one.allocatedCount[stack]));
		if (one.whole || !recording.hasLifetimes) {
			add("committed" + suffix, formatBytes(one.committed[stack]));
			if (hasResident)
				add("resident" + suffix, formatBytes(one.resident[stack]));
		}
	});
	const threads = new Map();
	for (const part of partsOfStack[row.stack]) {
		if (part.threadKey && isChosen(part))
			threads.set(part.threadKey, (threads.get(part.threadKey) || 0) + part.unfreed);
	}
	const names = Array.from(threads).sort((a, b) => b[1] - a[1]).map((entry) => entry[0]);
	if (names.length)
		add(names.length > 1 ? "threads" : "thread", names.slice(0, 4).join(", ") + (names.length > 4 ? " and " + (names.length - 4) + " more" : ""));
	if (row.file)
		add("file", row.file);
	return facts;
}

function framesRow(row) {
	const made = element("tr", "frames"), cell = element("td");
	cell.colSpan = columns.length + 1;
	if (stacks[row.stack].uncertain)
		cell.append(element("p", "", stacks[row.stack].uncertain));
	if (stacks[row.stack].linesDiffer)
		cell.append(element("p", "", "also calls at other lines of these functions"));
	if (stacks[row.stack].pattern)
		cell.append(element("p", "", stacks[row.stack].pattern));
	cell.append(frameList(stacks[row.stack]), factsOf(row));
	made.append(cell);
	return made;
}

// The elements of a row, without what they show.
function makeRow(number) {
	const made = element("tr", "row"), shown = { element: made, cells: [], stack: -1, frames: null };
	made.append(element("td", "", String(number)));
	for (const column of columns) {
		const cell = element("td", column.text ? "text" : "");
		const label = column.key === "value" && !isDiff ? "" : column.label;
		if (label && column.key !== "title")
			cell.dataset.label = label;
		if (["value", "file"].includes(column.key))
			cell.classList.add(column.key);
		if (column.key === "title")
			cell.classList.add("stack");
		cell.append(document.createTextNode(""));
		if (column.key === "value" && !isDiff)
			cell.append(element("span", "bar"));
		made.append(cell);
		shown.cells.push(cell);
	}
	made.addEventListener("click", () => {
		table.open.has(shown.stack) ? table.open.delete(shown.stack) : table.open.add(shown.stack);
		fillRow(shown, rowOf(shown.stack));
		made.querySelector("button").focus({ preventScroll: true });
	});
	return shown;
}

function fillRow(shown, row) {
	const isOpen = table.open.has(row.stack), isOther = shown.stack !== row.stack;
	columns.forEach((column, i) => {
		if (column.key !== "title")
			fillCell(shown.cells[i], column, row);
		else if (isOther)
			fillTitle(shown.cells[i], row.stack);
	});
	shown.stack = row.stack;
	setIfNew(shown.element.dataset, "stack", String(row.stack));
	setIfNew(shown.element, "className", isOpen ? "row open" : "row");
	shown.element.querySelector("button").setAttribute("aria-expanded", String(isOpen));
	if (shown.frames)
		shown.frames.remove();
	shown.frames = isOpen ? framesRow(row) : null;
	if (isOpen)
		shown.element.after(shown.frames);
}

function setRowCount(count) {
	while (table.rows.length > count) {
		const { element: row, frames: below } = table.rows.pop();
		row.remove();
		if (below)
			below.remove();
	}
	const added = document.createDocumentFragment(), first = table.rows.length;
	while (table.rows.length < count)
		table.rows.push(makeRow(table.rows.length + 1));
	table.rows.slice(first).forEach((shown) => added.append(shown.element));
	find("table-body").append(added);
}

function drawTable() {
	const started = performance.now(), list = sortRows(chooseRows());
	fillHead();
	setRowCount(Math.min(list.length, table.shown));
	table.rows.forEach((shown, i) => fillRow(shown, rowOf(list[i])));
	const rest = list.length - table.shown, more = find("more");
	more.hidden = rest <= 0;
	more.textContent = "Show " + formatCount(Math.min(rest, ROWS_AT_ONCE)) + " more of " + formatCount(rest);
	find("table-count").textContent = formatCount(list.length) + (list.length === 1 ? " stack" : " stacks") +
		(graph.zoom || selection.focus ? " through " + shortName(nameOf(graph.zoom)) : "");
	performance.measure("table", { start: started, end: performance.now() });
}

function startTable() {
	makeHead();
	find("more").addEventListener("click", () => {
		table.shown += ROWS_AT_ONCE;
		drawTable();
	});
}
