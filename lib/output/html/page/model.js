// SPDX-License-Identifier: LGPL-2.1-or-later
// The data of the page, and the sums of what is selected in it. lib/output/html/html.c describes its form.

const data = JSON.parse(find("data").textContent);
const isDiff = data.recordings.length > 1;
const isSameProcess = data.relation === "same-process";
const STILL_MAPPED = 0xffffffff;

const measures = {
	unfreed: { label: "Unfreed", format: formatBytes, help: "bytes mapped in the range and still mapped at its end" },
	resident: { label: "Resident", format: formatBytes, atEnd: true, help: "bytes of it in memory at the end of the recording" },
	committed: { label: "Committed", format: formatBytes, atEnd: true, help: "bytes made accessible by these stacks, at the end of the recording" },
	allocated: { label: "Allocated", format: formatBytes, help: "all bytes mapped in the range, whether unmapped later or not" },
	count: { label: "Count", format: formatCount, help: "mappings made in the range of which any byte is still mapped at its end" },
};

// Of pages, only that is known.
if (data.touched)
	Object.assign(measures.resident, { label: "Touched", help: "bytes that page faults of these stacks brought in, in memory at the end of the recording" });

const FRAME_INLINED = 1, FRAME_DOUBTFUL = 2, FRAME_RUNTIME = 4, FRAME_JIT = 8;

// Numbers of modules from 0 on: keys made of them stay small.
const moduleIds = new Map();

for (let i = 0; i < data.origins.length; i += 3)
	moduleIds.set(data.origins[i], moduleIds.get(data.origins[i]) ?? moduleIds.size);

function readFrames() {
	const read = [], { frames: rows, origins, strings } = data;
	let name = 0;
	for (let i = 0; i < rows.length; i += 3) {
		const origin = 3 * rows[i + 1], line = rows[i + 2];
		name += rows[i];
		read.push({
			name: strings[name], nameId: name, line,
			module: strings[origins[origin]], moduleId: moduleIds.get(origins[origin]),
			source: strings[origins[origin + 1]], sourceId: origins[origin + 1],
			flags: origins[origin + 2],
		});
	}
	return read;
}

const frames = readFrames();
const stacks = data.stacks;

for (const stack of stacks) {
	if (stack.truncated !== undefined)
		stack.truncated = data.strings[stack.truncated];
	for (let i = 1; i < stack.frames.length; i++)
		stack.frames[i] += stack.frames[i - 1];
}

function baseName(path) {
	return path.slice(path.lastIndexOf("/") + 1) || path;
}

function placeOf(frame) {
	return frame.source ? baseName(frame.source) + (frame.line ? ":" + frame.line : "") : "";
}

// Before the lifetimes of a part.
const PART_COLUMNS = 7;

// Parts with their sums. Lifetimes are in typed arrays, one part behind the other.
function unpackParts(recording) {
	const count = recording.parts.reduce((sum, row) => sum + (row.length - PART_COLUMNS) / 4, 0);
	const lifetimes = recording.lifetimes = {
		allocated: new Uint32Array(count),
		released: new Uint32Array(count),
		bytes: new Float64Array(count),
		count: new Float64Array(count),
	};
	let at = 0;
	recording.parts = recording.parts.map((row) => {
		const part = {
			stack: row[0], process: row[1], thread: row[2], class: row[3], file: row[4],
			unfreed: 0, count: 0, allocated: 0, allocatedCount: 0, resident: row[6] < 0 ? null : row[6], first: at,
		};
		let step = 0;
		for (let i = PART_COLUMNS; i < row.length; i += 4, at++) {
			const mapped = row[i + 1] < 0;
			step += row[i];
			lifetimes.allocated[at] = step;
			lifetimes.released[at] = mapped ? STILL_MAPPED : step + row[i + 1];
			lifetimes.bytes[at] = row[i + 2] * data.unit;
			lifetimes.count[at] = row[i + 3];
			part.allocated += lifetimes.bytes[at];
			part.allocatedCount += row[i + 3];
			part.unfreed += mapped ? lifetimes.bytes[at] : 0;
			part.count += mapped ? row[i + 3] : 0;
		}
		part.committed = part.unfreed + row[5];
		part.last = at;
		return part;
	});
}

for (const recording of data.recordings) {
	unpackParts(recording);
	recording.hasLifetimes = recording.stepCount > 0;
}

const duration = Math.max(...data.recordings.map((recording) => recording.duration), 1);
const hasResident = data.recordings.some((recording) => recording.parts.some((part) => part.resident !== null));

const selection = {
	measure: "unfreed",
	from: 0, to: duration, // nanoseconds since the start of the window
	still: 0,              // when memory of the range must still be mapped, if after its end
	cause: 0, // its number, or 0
	class: "", process: "", thread: "",
	search: "",
	focus: "", // label of the function whose callers and callees are shown
};

function isWhole() {
	return selection.from <= 0 && selection.to >= duration;
}

function stillTime() {
	return Math.max(selection.to, selection.still);
}

// False: everything is that of the whole recording. When memory was committed or became resident is not known.
function followsRange() {
	return !isWhole() && !measures[selection.measure].atEnd;
}

// The boundary between steps that is nearest to a time: only at these are sums exact.
function nearestStep(recording, ns) {
	if (ns >= duration)
		return recording.stepCount;
	return Math.max(0, Math.min(recording.stepCount, Math.round(ns / recording.stepNs)));
}

function stepTime(recording, step) {
	return Math.min(step * recording.stepNs, recording.duration);
}

// The key by which processes or threads of two recordings are the same.
function keyOf(name, id) {
	return isDiff ? name : name + " (" + id + ")";
}

const partsOfStack = stacks.map(() => []);

for (const recording of data.recordings) {
	const processKeys = recording.processes.map(([pid, name]) => keyOf(name, pid));
	const threadKeys = recording.threads.map(([, tid, name]) => keyOf(data.strings[name], tid));
	for (const part of recording.parts) {
		partsOfStack[part.stack].push(part);
		part.processKey = processKeys[part.process] || "";
		part.threadKey = threadKeys[part.thread] || "";
		part.className = data.classes[part.class];
	}
}

function isChosen(part) {
	return (!selection.cause || stacks[part.stack].cause === selection.cause) &&
		(!selection.class || part.className === selection.class) &&
		(!selection.process || part.processKey === selection.process) &&
		(!selection.thread || part.threadKey === selection.thread);
}

function newSums() {
	const sums = { total: 0 };
	for (const name of ["unfreed", "resident", "committed", "allocated", "count", "allocatedCount", "oldest", "youngest"])
		sums[name] = new Float64Array(stacks.length);
	sums.oldest.fill(Infinity);
	sums.youngest.fill(-1);
	return sums;
}

// The word with the most bytes among the chosen parts of a stack, and how many others there are.
function largestWord(stack, word) {
	const sizes = new Map();
	for (const part of partsOfStack[stack]) {
		if (isChosen(part) && word(part))
			sizes.set(word(part), (sizes.get(word(part)) || 0) + (part.unfreed || part.committed || part.allocated));
	}
	const [largest] = Array.from(sizes).sort((a, b) => b[1] - a[1]);
	return largest ? { word: largest[0], others: sizes.size - 1 } : { word: "", others: 0 };
}

// Steps: mapped from `from` to `to`, and not unmapped before `still`.
function addPartOfRange(recording, part, from, to, still, sums) {
	const { allocated, released, bytes, count } = recording.lifetimes;
	const stack = part.stack;
	let unfreed = 0, mapped = 0;
	for (let i = part.first; i < part.last; i++) {
		const step = allocated[i];
		if (step < from || step >= to)
			continue;
		mapped += bytes[i];
		sums.allocatedCount[stack] += count[i];
		if (released[i] < still)
			continue;
		unfreed += bytes[i];
		sums.count[stack] += count[i];
		if (step < sums.oldest[stack])
			sums.oldest[stack] = step;
		if (step > sums.youngest[stack])
			sums.youngest[stack] = step;
	}
	sums.unfreed[stack] += unfreed;
	sums.allocated[stack] += mapped;
}

// Sums per stack of one recording, of the selected range and filters.
function sumUp(recording) {
	const sums = newSums(), whole = !followsRange() || !recording.hasLifetimes;
	const from = nearestStep(recording, selection.from), to = nearestStep(recording, selection.to);
	const still = nearestStep(recording, stillTime());
	for (const part of recording.parts) {
		const stack = part.stack;
		if (!isChosen(part))
			continue;
		if (whole) {
			sums.unfreed[stack] += part.unfreed;
			sums.count[stack] += part.count;
			sums.allocated[stack] += part.allocated;
			sums.allocatedCount[stack] += part.allocatedCount;
		} else {
			addPartOfRange(recording, part, from, to, still, sums);
		}
		sums.committed[stack] += part.committed;
		sums.resident[stack] += part.resident || 0;
	}
	sums.whole = whole;
	return sums;
}

let sums = [];
let widths = [];                              // of the graph: of two recordings, the larger figure
let values = [];                              // of the selected measure, by recording
let totals = [];

function recalculate() {
	sums = data.recordings.map(sumUp);
	values = sums.map((one) => one[selection.measure]);
	// The second recording has only what was mapped after the first: none of it was there before.
	if (isSameProcess)
		values[0] = new Float64Array(stacks.length);
	totals = values.map((one) => one.reduce((sum, value) => sum + value, 0));
	widths = isDiff ? values[0].map((before, i) => Math.max(before, values[1][i])) : values[0];
}

// Unfreed bytes at each boundary between steps, of the filters that are set or of parts that the function chooses.
function unfreedOverTime(recording, chooses = isChosen) {
	const changes = new Float64Array(recording.stepCount + 2);
	const { allocated, released, bytes } = recording.lifetimes;
	for (const part of recording.parts) {
		if (!chooses(part))
			continue;
		for (let i = part.first; i < part.last; i++) {
			if (released[i] === allocated[i])
				continue;
			changes[allocated[i] + 1] += bytes[i];
			if (released[i] !== STILL_MAPPED)
				changes[released[i] + 1] -= bytes[i];
		}
	}
	const points = [];
	let sum = 0;
	for (let step = 0; step <= recording.stepCount; step++) {
		sum += changes[step];
		points.push(stepTime(recording, step), sum);
	}
	return points;
}

function matchesSearch(frame, text) {
	return frame.name.toLowerCase().includes(text) || frame.module.toLowerCase().includes(text) ||
		frame.source.toLowerCase().includes(text);
}

// Stacks with a frame that matches.
function findMatches(text) {
	const hits = frames.map((frame) => matchesSearch(frame, text)), found = [];
	stacks.forEach((stack, i) => {
		if (stack.frames.some((number) => hits[number]) || (stack.label && stack.label.toLowerCase().includes(text)))
			found.push(i);
	});
	return found;
}

// The C library and the loader: they map memory for others.
function isPlumbing(frame) {
	return /^(libc[.-]|ld-|\[vdso\]|libpthread|libstdc\+\+)/.test(frame.module);
}

const TITLE_CALLERS = 4;

// What a stack is called in one line: the innermost function of the program, and who called that.
function stackTitle(stack) {
	const list = stack.frames.map((number) => frames[number]);
	const others = list.slice(stack.title || 0).filter((frame, i) => i === 0 || !isPlumbing(frame));
	const own = others.filter((frame, i) => i === 0 || !(frame.flags & FRAME_RUNTIME));
	const named = own.length > 1 ? own : others.length ? others : list;
	const names = named.map((frame) => frame.name).filter((name, i, all) => name !== all[i - 1]);
	return { name: names[0] || stack.label || "(no stack)", callers: names.slice(1, 1 + TITLE_CALLERS).join(" < ") };
}
