// SPDX-License-Identifier: LGPL-2.1-or-later
// The data of the page, and the sums of what is selected in it. lib/output/html/page-data.h describes its form.

const data = JSON.parse(find("data").textContent);
const isDiff = data.recordings.length > 1;
const STILL_MAPPED = 0xffffffff;

const measures = {
	unfreed: { label: "Unfreed", format: formatBytes, help: "bytes mapped in the range and still mapped at its end" },
	resident: { label: "Resident", format: formatBytes, atEnd: true, help: "bytes of it in memory at the end of the recording" },
	committed: { label: "Committed", format: formatBytes, atEnd: true, help: "bytes made accessible by these stacks" },
	allocated: { label: "Allocated", format: formatBytes, help: "all bytes mapped in the range, whether unmapped later or not" },
	count: { label: "Count", format: formatCount, help: "mappings made in the range of which any byte is still mapped at its end" },
};

// Columns of frames and parts, in the order of page-data.h.
const FRAME_COLUMNS = 5;
const FRAME_INLINED = 1, FRAME_DOUBTFUL = 2, FRAME_RUNTIME = 4, FRAME_JIT = 8;

function readFrames() {
	const frames = [], columns = data.frames;
	for (let i = 0; i < columns.length; i += FRAME_COLUMNS) {
		const name = data.strings[columns[i]], module = data.strings[columns[i + 1]];
		const line = columns[i + 3], flags = columns[i + 4];
		frames.push({
			name, module, line, flags,
			source: data.strings[columns[i + 2]],
			moduleId: columns[i + 1],
			functionKey: columns[i] + "," + columns[i + 1],
			lineKey: columns[i] + "," + columns[i + 1] + "," + columns[i + 2] + "," + line,
		});
	}
	return frames;
}

const frames = readFrames();
const stacks = data.stacks;

function baseName(path) {
	return path.slice(path.lastIndexOf("/") + 1) || path;
}

function placeOf(frame) {
	return frame.source ? baseName(frame.source) + (frame.line ? ":" + frame.line : "") : "";
}

// A recording's lifetimes in typed arrays, one behind the other, and where those of each part begin.
function unpackLifetimes(recording) {
	let count = 0;
	for (const part of recording.parts)
		count += part.lifetimes.length / 4;
	const lifetimes = {
		allocated: new Uint32Array(count),
		released: new Uint32Array(count),
		bytes: new Float64Array(count),
		count: new Float64Array(count),
	};
	let at = 0;
	for (const part of recording.parts) {
		const flat = part.lifetimes;
		let step = 0;
		part.first = at;
		for (let i = 0; i < flat.length; i += 4, at++) {
			step += flat[i];
			lifetimes.allocated[at] = step;
			lifetimes.released[at] = flat[i + 1] < 0 ? STILL_MAPPED : step + flat[i + 1];
			lifetimes.bytes[at] = flat[i + 2] * data.unit;
			lifetimes.count[at] = flat[i + 3];
		}
		part.last = at;
	}
	return lifetimes;
}

for (const recording of data.recordings) {
	recording.parts = recording.parts.map((row) => ({
		stack: row[0], process: row[1], thread: row[2], class: row[3], file: row[4],
		unfreed: row[5], count: row[6], allocated: row[7], allocatedCount: row[8],
		committed: row[9], resident: row[10], lifetimes: row[11],
	}));
	recording.lifetimes = unpackLifetimes(recording);
	recording.hasLifetimes = recording.stepCount > 0;
}

const duration = Math.max(...data.recordings.map((recording) => recording.duration), 1);
const hasResident = data.recordings.some((recording) => recording.parts.some((part) => part.resident !== null));

const selection = {
	measure: "unfreed",
	from: 0, to: duration, // nanoseconds since the start of the window
	class: "", process: "", thread: "",
	search: "",
};

function isWhole() {
	return selection.from <= 0 && selection.to >= duration;
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

// The keys by which processes and threads of two recordings are the same.
function processKey(recording, part) {
	const process = recording.processes[part.process];
	return process ? (isDiff ? process[1] : process[1] + " (" + process[0] + ")") : "";
}

function threadKey(recording, part) {
	const thread = recording.threads[part.thread];
	return thread ? (isDiff ? data.strings[thread[2]] : data.strings[thread[2]] + " (" + thread[1] + ")") : "";
}

for (const recording of data.recordings) {
	for (const part of recording.parts) {
		part.processKey = processKey(recording, part);
		part.threadKey = threadKey(recording, part);
		part.className = data.classes[part.class];
	}
}

function isChosen(part) {
	return (!selection.class || part.className === selection.class) &&
		(!selection.process || part.processKey === selection.process) &&
		(!selection.thread || part.threadKey === selection.thread);
}

function newSums() {
	const sums = { total: 0 };
	for (const name of ["unfreed", "resident", "committed", "allocated", "count", "allocatedCount", "oldest", "youngest"])
		sums[name] = new Float64Array(stacks.length);
	sums.oldest.fill(Infinity);
	sums.youngest.fill(-1);
	sums.classBytes = new Map();
	sums.fileBytes = new Map();
	return sums;
}

function noteWord(words, stack, word, bytes) {
	let sizes = words.get(stack);
	if (!sizes)
		words.set(stack, sizes = new Map());
	sizes.set(word, (sizes.get(word) || 0) + bytes);
}

function largestWord(words, stack) {
	const sizes = words.get(stack);
	let best = "", most = -1;
	if (sizes) {
		for (const [word, bytes] of sizes) {
			if (bytes > most) {
				best = word;
				most = bytes;
			}
		}
	}
	return { word: best, others: sizes ? sizes.size - 1 : 0 };
}

function addPartOfRange(recording, part, from, to, sums) {
	const { allocated, released, bytes, count } = recording.lifetimes;
	const stack = part.stack;
	let unfreed = 0, mapped = 0;
	for (let i = part.first; i < part.last; i++) {
		const step = allocated[i];
		if (step < from || step >= to)
			continue;
		mapped += bytes[i];
		sums.allocatedCount[stack] += count[i];
		if (released[i] < to)
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
	return unfreed || mapped;
}

// Sums per stack of one recording, of the selected range and filters.
function sumUp(recording) {
	const sums = newSums(), whole = isWhole() || !recording.hasLifetimes;
	const from = nearestStep(recording, selection.from), to = nearestStep(recording, selection.to);
	for (const part of recording.parts) {
		const stack = part.stack;
		let weight = part.unfreed || part.committed || part.allocated;
		if (!isChosen(part))
			continue;
		if (whole) {
			sums.unfreed[stack] += part.unfreed;
			sums.count[stack] += part.count;
			sums.allocated[stack] += part.allocated;
			sums.allocatedCount[stack] += part.allocatedCount;
		} else {
			weight = addPartOfRange(recording, part, from, to, sums);
		}
		sums.committed[stack] += part.committed;
		sums.resident[stack] += part.resident || 0;
		noteWord(sums.classBytes, stack, part.className, weight);
		if (part.file >= 0)
			noteWord(sums.fileBytes, stack, data.strings[part.file], weight);
	}
	sums.whole = whole;
	return sums;
}

let sums = [];
let widths = new Float64Array(stacks.length); // of the graph: of two recordings, the larger figure
let values = [];                              // of the selected measure, by recording
let totals = [];

function recalculate() {
	sums = data.recordings.map(sumUp);
	values = sums.map((one) => one[selection.measure]);
	totals = values.map((one) => one.reduce((sum, value) => sum + value, 0));
	for (let i = 0; i < stacks.length; i++)
		widths[i] = isDiff ? Math.max(values[0][i], values[1][i]) : values[0][i];
}

// Unfreed bytes at each boundary between steps, of the filters that are set.
function unfreedOverTime(recording) {
	const changes = new Float64Array(recording.stepCount + 2);
	const { allocated, released, bytes } = recording.lifetimes;
	for (const part of recording.parts) {
		if (!isChosen(part))
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

// The C library and the loader: they map memory for others.
function isPlumbing(frame) {
	return /^(libc[.-]|ld-|\[vdso\]|libpthread|libstdc\+\+)/.test(frame.module);
}

const TITLE_CALLERS = 4;

// What a stack is called in one line: its innermost function outside the C library, and who called that.
function stackTitle(stack) {
	const list = stack.frames.map((number) => frames[number]);
	const others = list.filter((frame) => !isPlumbing(frame));
	const own = others.filter((frame, i) => i === 0 || !(frame.flags & FRAME_RUNTIME));
	const named = own.length > 1 ? own : others.length ? others : list;
	const names = named.map((frame) => frame.name).filter((name, i, all) => name !== all[i - 1]);
	return { name: names[0] || stack.label || "(no stack)", callers: names.slice(1, 1 + TITLE_CALLERS).join(" < ") };
}
