// SPDX-License-Identifier: LGPL-2.1-or-later
// The table of causes below the verdict: a click selects the stacks of a cause everywhere.

const TREND_WIDTH = 72, TREND_HEIGHT = 18, TREND_POINTS = 36;

function causeName(cause) {
	return cause.beforeName + shortName(cause.name) + (cause.other ? ", " + cause.beforeOther + shortName(cause.other) : "");
}

// What a cause holds over time, as a line in the colour of the text around it.
function trendOf(recording, number) {
	const points = unfreedOverTime(recording, (part) => stacks[part.stack].cause === number);
	const space = find("svg-space").namespaceURI, places = [];
	const line = document.createElementNS(space, "svg"), shape = document.createElementNS(space, "polyline");
	let peak = 1;
	for (let i = 1; i < points.length; i += 2)
		peak = Math.max(peak, points[i]);
	const last = points.length / 2 - 1, count = Math.min(last, TREND_POINTS);
	for (let i = 0; i <= count; i++) {
		const at = 2 * Math.round(i / Math.max(1, count) * last);
		const x = points[at] / duration * TREND_WIDTH, y = TREND_HEIGHT - 1.5 - points[at + 1] / peak * (TREND_HEIGHT - 3);
		places.push(x.toFixed(1) + "," + y.toFixed(1));
	}
	line.setAttribute("class", "trend");
	line.setAttribute("viewBox", "0 0 " + TREND_WIDTH + " " + TREND_HEIGHT);
	line.setAttribute("aria-hidden", "true");
	for (const [name, value] of Object.entries({ points: places.join(" "), fill: "none", stroke: "currentColor", "stroke-width": "1.5" }))
		shape.setAttribute(name, value);
	line.append(shape);
	return line;
}

function causeRow(recording, cause, number) {
	const row = element("tr", "cause"), name = element("td", "text"), button = shortElement("button", "", cause.name, 70);
	const verdict = element("td", "text"), trend = element("td", "trend-cell");
	if (cause.verdictWord) {
		verdict.append(element("span", "verdict-word " + cause.verdict, cause.verdictWord.toLowerCase()));
		verdict.lastChild.title = verdictHelp[cause.verdictWord.toLowerCase()] || "";
	}
	if (recording.hasLifetimes)
		trend.append(trendOf(recording, number));
	button.type = "button";
	button.setAttribute("aria-pressed", "false");
	name.append(cause.beforeName, button);
	if (cause.other)
		name.append(element("span", "caller", ", " + cause.beforeOther), shortElement("span", "caller", cause.other, 70));
	row.append(element("td", "", formatBytes(cause.bytes)),
		element("td", "rate", cause.rate === null ? "" : formatChange(cause.rate, formatBytes)),
		trend, verdict, element("td", "text", cause.kind), name);
	row.addEventListener("click", () => {
		selection.cause = selection.cause === number ? 0 : number;
		changed("filter");
	});
	return row;
}

function otherCauses(recording) {
	const count = recording.otherCauses;
	return count ? "; " + formatBytes(recording.otherBytes) + " in " + formatCount(count) + (count === 1 ? " other place" : " other places") : "";
}

function causesTable(recording) {
	const made = element("table", "causes"), head = element("tr"), body = element("tbody");
	for (const [label, className] of [["Memory", ""], ["per minute", "rate"], ["", "trend-cell"], ["", "text"], ["", "text"], ["mapped by (click to select)" + otherCauses(recording), "text"]])
		head.append(element("th", className, label));
	made.append(element("thead"), body);
	made.firstChild.append(head);
	recording.causes.forEach((cause, i) => body.append(causeRow(recording, cause, i + 1)));
	return made;
}

function showCauses() {
	document.querySelectorAll("tr.cause").forEach((row, i) => {
		row.classList.toggle("chosen", selection.cause === i + 1);
		row.querySelector("button").setAttribute("aria-pressed", String(selection.cause === i + 1));
	});
}
