// SPDX-License-Identifier: LGPL-2.1-or-later
// The chart of memory over time, in which a range is selected with the pointer or the keyboard.

const chart = {
	canvas: find("chart"),
	left: 74, right: 14, top: 12, bottom: 26,
	series: [],
	drag: null,
};

const seriesColours = {
	light: { rss: "#0b62c4", committed: "#1a7f37", unfreed: "#c9430f", rssBefore: "#7aa5dc", unfreedBefore: "#e5a58b", committedBefore: "#8cbf9a" },
	dark: { rss: "#6cb0ff", committed: "#5fd07f", unfreed: "#ff8a5c", rssBefore: "#3d6391", unfreedBefore: "#914f36", committedBefore: "#356b45" },
};

function addSeries(key, label, points, before) {
	if (points.length)
		chart.series.push({ key: before ? key + "Before" : key, label, points, shown: true, before });
}

// The largest and the smallest figure of a series.
function peakOf(series) {
	let peak = 0;
	for (let i = 1; i < series.points.length; i += 2)
		peak = Math.max(peak, series.points[i]);
	return peak;
}

function lowestOf(series) {
	let lowest = Infinity;
	for (let i = 1; i < series.points.length; i += 2)
		lowest = Math.min(lowest, series.points[i]);
	return lowest;
}

const SMALL_CHANGE = 0.25; // of the largest figure: then the axis does not begin at 0

// Where the axis begins: near the figures if they change little, so that the change can be seen.
function baseOf(series) {
	const top = Math.max(...series.map(peakOf), 0), low = Math.min(...series.map(lowestOf), top);
	return top - low < SMALL_CHANGE * top ? Math.max(0, low - (top - low) * 0.15 - top * 0.002) : 0;
}

function pairs(points, column, columns) {
	const list = [];
	for (let i = 0; i < points.length; i += columns)
		list.push(points[i], points[i + column]);
	return list;
}

function makeSeries() {
	const hidden = new Set(chart.series.filter((series) => !series.shown).map((series) => series.key));
	const first = !chart.series.length;
	chart.series = [];
	data.recordings.forEach((recording, i) => {
		const before = isDiff && i === 0, suffix = isDiff ? (before ? " before" : " after") : "";
		addSeries("rss", "RSS" + suffix, recording.rss, before);
		addSeries("committed", "Committed" + suffix, recording.committed, before);
		if (recording.hasLifetimes)
			addSeries("unfreed", "Unfreed" + suffix, unfreedOverTime(recording), before);
	});
	for (const series of chart.series)
		series.shown = !hidden.has(series.key);
	// Address space that nobody touches may be a thousand times the memory: then it would hide everything else. So would
	// figures that begin at 0 beside a resident size that changes little.
	if (first) {
		const rss = Math.max(0, ...chart.series.filter((series) => series.key.startsWith("rss")).map(peakOf));
		const resident = chart.series.filter((series) => series.key.startsWith("rss"));
		const isSmall = resident.length > 0 && baseOf(resident) > 0;
		for (const series of chart.series)
			series.shown = !rss || series.key.startsWith("rss") || (!isSmall && peakOf(series) <= 16 * rss);
	}
}

function makeLegend() {
	const legend = find("legend");
	legend.textContent = "";
	for (const series of chart.series) {
		const label = element("label"), box = element("input"), swatch = element("span", "swatch");
		box.type = "checkbox";
		box.checked = series.shown;
		box.addEventListener("change", () => {
			series.shown = box.checked;
			drawChart();
		});
		swatch.style.color = seriesColours[dark ? "dark" : "light"][series.key];
		label.append(box, swatch, element("span", "", series.label));
		legend.append(label);
	}
}

function niceStep(span, count, bases) {
	const raw = span / count;
	let unit = 1;
	const base = bases === "binary" ? 1024 : 10;
	while (unit * base <= raw)
		unit *= base;
	while (bases !== "binary" && unit > raw)
		unit /= base;
	const factors = bases === "binary" ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] : [1, 2, 5, 10];
	return unit * factors.find((factor) => unit * factor >= raw * 0.999);
}

function chartX(ns) {
	return chart.left + ns / duration * (chart.width - chart.left - chart.right);
}

function chartTime(x) {
	const span = chart.width - chart.left - chart.right;
	return Math.max(0, Math.min(1, (x - chart.left) / span)) * duration;
}

function tickSeconds(ns) {
	const s = ns / 1e9;
	if (s >= 7200)
		return +(s / 3600).toFixed(2) + " h";
	if (s >= 180)
		return +(s / 60).toFixed(1) + " min";
	return duration < 1e9 ? +(ns / 1e6).toPrecision(4) + " ms" : +s.toPrecision(5) + " s";
}

function chartY(bytes) {
	const height = chart.height - chart.bottom - chart.top;
	return chart.top + height * (1 - (bytes - chart.base) / (chart.peak - chart.base));
}

function drawAxes(context) {
	const step = niceStep(chart.peak - chart.base, 3, "binary");
	context.fillStyle = colour("--faint");
	context.strokeStyle = colour("--line");
	context.lineWidth = 1;
	context.textBaseline = "middle";
	context.textAlign = "right";
	for (let value = Math.ceil(chart.base / step) * step; value <= chart.peak; value += step) {
		const y = Math.round(chartY(value)) + 0.5;
		context.beginPath();
		context.moveTo(chart.left, y);
		context.lineTo(chart.width - chart.right, y);
		context.stroke();
		context.fillText(formatBytes(value).replace(/\.0+ /, " "), chart.left - 8, y);
	}
	if (chart.base > 0) {
		context.textAlign = "left";
		context.fillText("the axis begins at " + formatBytes(chart.base), chart.left + 6, chart.height - chart.bottom - 9);
	}
	const every = niceStep(duration, Math.max(2, chart.width / 110), "decimal");
	context.textBaseline = "top";
	for (let ns = 0; ns <= duration * 1.0001; ns += every) {
		const x = chartX(ns);
		context.textAlign = ns === 0 ? "left" : x > chart.width - 40 ? "right" : "center";
		context.fillText(tickSeconds(ns), ns === 0 ? x : Math.min(x, chart.width - 2), chart.height - chart.bottom + 8);
		context.fillRect(Math.round(x), chart.height - chart.bottom, 1, 4);
	}
}

// `thickness`: lines of equal figures lie on each other, and each must be seen.
function drawLine(context, series, thickness) {
	context.strokeStyle = seriesColours[dark ? "dark" : "light"][series.key];
	context.lineWidth = thickness;
	context.setLineDash(series.before ? [6, 3] : []);
	context.beginPath();
	for (let i = 0; i < series.points.length; i += 2) {
		const x = chartX(series.points[i]), y = chartY(series.points[i + 1]);
		if (i)
			context.lineTo(x, y);
		else
			context.moveTo(x, y);
	}
	context.stroke();
	context.setLineDash([]);
}

function drawMarks(context) {
	context.font = "11px system-ui, sans-serif";
	context.textBaseline = "top";
	context.textAlign = "left";
	data.recordings.forEach((recording, i) => {
		for (const [name, ns] of recording.marks) {
			const x = Math.round(chartX(ns)) + 0.5;
			context.strokeStyle = context.fillStyle = colour("--ink");
			context.globalAlpha = isDiff && i === 0 ? 0.4 : 0.8;
			context.setLineDash([2, 3]);
			context.lineWidth = 1;
			context.beginPath();
			context.moveTo(x, chart.top - 8);
			context.lineTo(x, chart.height - chart.bottom);
			context.stroke();
			context.fillText(name, x + 3, chart.top - 10);
			context.setLineDash([]);
			context.globalAlpha = 1;
		}
	});
}

function drawRange(context) {
	const from = chartX(selection.from), to = chartX(selection.to);
	const top = chart.top - 6, height = chart.height - chart.bottom - top;
	if (isWhole())
		return;
	context.fillStyle = colour("--accent");
	context.globalAlpha = dark ? 0.22 : 0.14;
	context.fillRect(from, top, Math.max(1, to - from), height);
	context.globalAlpha = 1;
	for (const x of [from, to, chartX(stillTime())]) {
		context.fillRect(Math.round(x) - 1, top, 2, height);
		context.fillRect(Math.round(x) - 4, top + height / 2 - 10, 8, 20);
	}
	if (stillTime() > selection.to) {
		context.textAlign = "right";
		context.textBaseline = "top";
		context.fillText("still there here", chartX(stillTime()) - 7, top + 2);
	}
}

function drawChart() {
	chart.width = pageWidth;
	chart.height = 150;
	const context = prepareCanvas(chart.canvas, chart.width, chart.height);
	const shown = chart.series.filter((series) => series.shown);
	chart.base = baseOf(shown);
	chart.peak = Math.max(...shown.map(peakOf), 1);
	chart.peak += (chart.peak - chart.base) * 0.05;
	context.font = "12px system-ui, sans-serif";
	drawAxes(context);
	shown.forEach((series, i) => drawLine(context, series, isDiff ? 2 : 2 + 2.5 * (shown.length - 1 - i)));
	if (!chart.series.length) {
		context.textAlign = "center";
		context.fillText("The recording has no sizes over time.", chart.width / 2, chart.height / 2 - 10);
	}
	drawMarks(context);
	drawRange(context);
}

// The range as text: of boundaries between steps, to which sums refer.
function showRange() {
	const canSelect = data.recordings.every((recording) => recording.hasLifetimes);
	const last = data.recordings[data.recordings.length - 1];
	const from = canSelect ? stepTime(last, nearestStep(last, selection.from)) : 0;
	const to = canSelect ? Math.max(stepTime(last, nearestStep(last, selection.to)), from) : duration;
	const still = canSelect ? Math.max(stepTime(last, nearestStep(last, stillTime())), to) : duration;
	const seconds = (ns) => String(+(ns / 1e9).toPrecision(5));
	find("range-from").value = seconds(selection.from);
	find("range-to").value = seconds(selection.to);
	find("range-still").value = stillTime() > selection.to ? seconds(selection.still) : "";
	find("range-text").textContent = isWhole() ? "Whole recording: " + formatDuration(duration) :
		formatDuration(from) + " to " + formatDuration(to) + " (" + formatDuration(to - from) + ")" +
			(still > to ? ", still there at " + formatDuration(still) : "");
	find("range-text").dataset.from = String(Math.round(from));
	find("range-text").dataset.to = String(Math.round(to));
	find("range-text").dataset.still = String(Math.round(still));
	find("range-all").disabled = isWhole();
	find("range-form").hidden = !canSelect;
	find("chart-help").hidden = !canSelect || !isWhole();
	chart.canvas.setAttribute("aria-valuetext", find("range-text").textContent);
	chart.canvas.setAttribute("aria-valuenow", String(Math.round(selection.from / duration * 100)));
}

// Boundaries are those of steps, one apart at least.
function selectRange(from, to) {
	const last = data.recordings[data.recordings.length - 1];
	if (!data.recordings.every((recording) => recording.hasLifetimes))
		return;
	let first = nearestStep(last, Math.min(from, to)), end = nearestStep(last, Math.max(from, to));
	if (first === end)
		end < last.stepCount ? end++ : first--;
	first = Math.max(0, first);
	selection.from = stepTime(last, first);
	selection.to = end >= last.stepCount ? duration : stepTime(last, end);
	changed("range");
}

function selectAll() {
	Object.assign(selection, { from: 0, to: duration, still: 0 });
	changed("range");
}

// The second selection; at the end of the range or before, it is taken back.
function selectStill(ns) {
	const last = data.recordings[data.recordings.length - 1];
	selection.still = isWhole() || ns <= selection.to ? 0 : stepTime(last, nearestStep(last, ns));
	changed("range");
}

function pointerTime(event) {
	return chartTime(event.clientX - chart.canvas.getBoundingClientRect().left);
}

// An edge that is near is moved, a place within the range moves it, any other begins a new one.
function beginDrag(event) {
	const x = event.clientX - chart.canvas.getBoundingClientRect().left, ns = pointerTime(event);
	const near = (time) => !isWhole() && Math.abs(x - chartX(time)) < 7;
	if (event.button !== 0)
		return;
	if (event.shiftKey || (selection.still > selection.to && near(selection.still)))
		chart.drag = { isStill: true };
	else if (near(selection.from))
		chart.drag = { fixed: selection.to };
	else if (near(selection.to))
		chart.drag = { fixed: selection.from };
	else if (!isWhole() && ns > selection.from && ns < selection.to)
		chart.drag = { move: ns, from: selection.from, to: selection.to };
	else
		chart.drag = { fixed: ns, x };
	if (chart.drag.isStill)
		selectStill(ns);
	chart.canvas.setPointerCapture(event.pointerId);
}

function moveRange(from, by) {
	const width = from.to - from.from;
	const start = Math.max(0, Math.min(duration - width, from.from + by));
	selectRange(start, start + width);
}

function drag(event) {
	const ns = pointerTime(event), x = event.clientX - chart.canvas.getBoundingClientRect().left;
	const atEdge = !isWhole() && [selection.from, selection.to, stillTime()].some((edge) => Math.abs(x - chartX(edge)) < 7);
	if (!chart.drag) {
		chart.canvas.style.cursor = atEdge ? "ew-resize" : !isWhole() && ns > selection.from && ns < selection.to ? "grab" : "crosshair";
		return;
	}
	if (chart.drag.isStill)
		selectStill(ns);
	else if (chart.drag.move !== undefined)
		moveRange(chart.drag, ns - chart.drag.move);
	else if (chart.drag.x === undefined || Math.abs(x - chart.drag.x) > 3)
		selectRange(chart.drag.fixed, ns);
}

function endDrag(event) {
	const x = event.clientX - chart.canvas.getBoundingClientRect().left;
	if (chart.drag && chart.drag.x !== undefined && Math.abs(x - chart.drag.x) <= 3)
		selectAll();
	chart.drag = null;
}

function chartKey(event) {
	const step = duration / 50 * (event.key === "ArrowLeft" ? -1 : 1);
	if (event.key === "Escape" && !isWhole()) {
		selectAll();
	} else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
		if (isWhole())
			event.key === "ArrowRight" ? selectRange(step, duration) : selectRange(0, duration + step);
		else if (event.shiftKey)
			selectRange(selection.from, Math.max(selection.from, Math.min(duration, selection.to + step)));
		else
			moveRange(selection, step);
	} else if (event.key === "Home" && !isWhole()) {
		moveRange(selection, -duration);
	} else if (event.key === "End" && !isWhole()) {
		moveRange(selection, duration);
	} else {
		return;
	}
	event.preventDefault();
}

function startChart() {
	makeSeries();
	makeLegend();
	chart.canvas.setAttribute("aria-valuemin", "0");
	chart.canvas.setAttribute("aria-valuemax", "100");
	chart.canvas.addEventListener("pointerdown", beginDrag);
	chart.canvas.addEventListener("pointermove", drag);
	chart.canvas.addEventListener("pointerup", endDrag);
	chart.canvas.addEventListener("pointercancel", endDrag);
	chart.canvas.addEventListener("keydown", chartKey);
	find("range-all").addEventListener("click", selectAll);
	find("range-form").addEventListener("submit", (event) => {
		const from = Number(find("range-from").value) * 1e9, to = Number(find("range-to").value) * 1e9;
		const still = Number(find("range-still").value) * 1e9;
		event.preventDefault();
		if (!Number.isFinite(from + to + still))
			return;
		selectRange(Math.max(0, from), to > from ? Math.min(to, duration) : duration);
		selectStill(Math.min(still, duration));
	});
}
