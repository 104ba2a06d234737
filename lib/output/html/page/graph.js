// SPDX-License-Identifier: LGPL-2.1-or-later
// The icicle graph: a tree of frames, as wide as what their stacks hold. Outermost frames on top, or innermost (inverted). Of
// a function that is chosen: its callers above, and what it calls below.

const ROW = 19;
const SHORT_NAME = 60; // characters
const WIDTH_MIN = 0.4; // of a box; what is narrower is left out
const graph = {
	canvas: find("graph"),
	tree: null,
	boxes: [],    // what is drawn: node, x, y, width
	zoom: 0,      // node
	current: -1,  // node that the keyboard or the pointer is at
	rows: { top: 0, bottom: 0 }, // the first and the last that is drawn
	options: { inverted: false, flame: false, merge: "function", folded: true },
};

// A name of the tree: what frames that are merged have in common.
function mergeKey(frame) {
	if (graph.options.merge === "module")
		return frame.moduleId;
	if (graph.options.merge === "line")
		return [frame.nameId, frame.moduleId, frame.sourceId, frame.line].join();
	return frame.nameId * moduleIds.size + frame.moduleId;
}

function mergedName(frame) {
	if (graph.options.merge === "module")
		return { name: frame.module || "(no module)", module: "", place: "", flags: frame.flags & (FRAME_JIT | FRAME_RUNTIME), frame };
	const place = graph.options.merge === "line" ? placeOf(frame) : "";
	return { name: frame.name, module: frame.module, place, flags: frame.flags, frame };
}

// Ids of names, the outermost first, runs of runtime frames as one.
function pathOf(stack, names) {
	const path = [], list = stack.frames, options = graph.options;
	let run = 0;
	const endRun = () => {
		if (run)
			path.push(names.folded);
		run = 0;
	};
	if (!list.length)
		return [names.label(stack.label || "(no stack)")];
	for (let i = list.length - 1; i >= 0; i--) {
		if (options.folded && frames[list[i]].flags & FRAME_RUNTIME) {
			run++;
			continue;
		}
		endRun();
		const id = names.ofFrame[list[i]];
		if (options.merge !== "module" || path[path.length - 1] !== id)
			path.push(id);
	}
	endRun();
	if (stack.truncated)
		path.unshift(names.truncated);
	return path;
}

function collectNames() {
	const ids = new Map(), list = [];
	const add = (key, make) => {
		let id = ids.get(key);
		if (id === undefined) {
			id = list.length;
			ids.set(key, id);
			list.push(make());
		}
		return id;
	};
	const special = (name) => ({ name, module: "", place: "", flags: FRAME_RUNTIME, frame: null });
	const ofFrame = frames.map((frame) => add(mergeKey(frame), () => mergedName(frame)));
	return {
		list, ofFrame,
		folded: add("folded", () => special("... runtime frames")),
		truncated: add("truncated", () => special("(callers missing)")),
		label: (text) => add("label " + text, () => special(text)),
	};
}

function comparePaths(a, b) {
	const length = Math.min(a.length, b.length);
	for (let i = 0; i < length; i++) {
		if (a[i] !== b[i])
			return a[i] - b[i];
	}
	return a.length - b.length;
}

function labelOf(name) {
	return name.name + (name.place ? "  " + name.place : "") + (name.module ? " (" + name.module + ")" : "");
}

// Appends what the paths of these stacks need; returns the node at which each of them ends. Of paths that are sorted, each
// shares its beginning with the one before.
function addPaths(tree, paths, side) {
	const order = Array.from(paths.keys()).filter((i) => paths[i]).sort((a, b) => comparePaths(paths[a], paths[b]));
	const leaves = new Int32Array(stacks.length).fill(-1);
	let previous = [], nodes = [];
	for (const i of order) {
		const path = paths[i], own = [];
		let node = 0, shared = true;
		for (let depth = 0; depth < path.length; depth++) {
			shared = shared && path[depth] === previous[depth];
			if (!shared) {
				tree.parents[tree.count] = node;
				tree.nameIds[tree.count] = path[depth];
				tree.rows[tree.count] = side * (depth + 1);
			}
			node = shared ? nodes[depth] : tree.count++;
			own.push(node);
		}
		leaves[i] = node;
		previous = path;
		nodes = own;
	}
	return leaves;
}

function readPaths() {
	const names = collectNames();
	graph.names = names.list;
	graph.paths = stacks.map((stack) => pathOf(stack, names));
}

// Nodes in an order in which parents come before their children; node 0 is everything, or the chosen function. Its callers
// are in rows below 0, from where it stands outermost in a stack.
function buildTree() {
	const { paths, names } = graph, room = 1 + paths.reduce((sum, path) => sum + path.length, 0);
	const chosen = selection.focus ? names.findIndex((name) => labelOf(name) === selection.focus) : -1;
	const tree = graph.tree = { count: 1, chosen, parents: new Uint32Array(room), nameIds: new Int32Array(room), rows: new Int16Array(room) };
	tree.nameIds[0] = chosen;
	if (chosen < 0) {
		selection.focus = "";
		tree.leaves = [addPaths(tree, graph.options.inverted ? paths.map((path) => path.slice().reverse()) : paths, 1)];
	} else {
		const places = paths.map((path) => path.indexOf(chosen));
		tree.leaves = [
			addPaths(tree, paths.map((path, i) => places[i] >= 0 && path.slice(places[i] + 1)), 1),
			addPaths(tree, paths.map((path, i) => places[i] >= 0 && path.slice(0, places[i]).reverse()), -1),
		];
	}
	tree.widths = new Float64Array(tree.count);
	tree.values = data.recordings.map(() => new Float64Array(tree.count));
	tree.matched = null; // by name; null: nothing is searched for
	linkChildren(tree);
	graph.zoom = 0;
	graph.current = -1;
}

// The children of node n are childList[childStart[n]] to childList[childStart[n + 1]].
function linkChildren(tree) {
	const start = new Uint32Array(tree.count + 2);
	for (let node = 1; node < tree.count; node++)
		start[tree.parents[node] + 2]++;
	for (let node = 2; node < start.length; node++)
		start[node] += start[node - 1];
	tree.childList = new Uint32Array(tree.count);
	for (let node = 1; node < tree.count; node++)
		tree.childList[start[tree.parents[node] + 1]++] = node;
	tree.childStart = start;
}

function addUp(column, figures) {
	const { parents, leaves, count } = graph.tree;
	let sum = 0;
	column.fill(0);
	for (let i = 0; i < stacks.length; i++) {
		if (leaves[0][i] < 0)
			continue;
		sum += figures[i];
		for (const ends of leaves)
			column[ends[i]] += figures[i];
	}
	for (let node = count - 1; node > 0; node--)
		column[parents[node]] += column[node];
	column[0] = sum;
}

function fillTree() {
	const { tree } = graph;
	values.forEach((figures, i) => addUp(tree.values[i], figures));
	if (isDiff)
		addUp(tree.widths, widths);
	else
		tree.widths = tree.values[0];
}

// Marks the names that match, and says how much of the total the stacks through them hold.
function searchTree() {
	const { tree } = graph, text = selection.search.trim().toLowerCase(), last = values.length - 1;
	tree.matched = null;
	find("matched").textContent = "";
	if (!text)
		return;
	tree.matched = graph.names.map((name) => name.name.toLowerCase().includes(text) ||
		(name.frame !== null && graph.options.merge !== "module" && matchesSearch(name.frame, text)));
	const sum = findMatches(text).reduce((total, stack) => total + values[last][stack], 0);
	find("matched").textContent = "Matched " + formatPercent(sum, totals[last]) + ", " + measures[selection.measure].format(sum);
	find("matched").dataset.value = String(sum);
}

function isWithin(node, ancestor) {
	const { parents, rows } = graph.tree;
	while (Math.abs(rows[node]) > Math.abs(rows[ancestor]))
		node = parents[node];
	return node === ancestor;
}

// Whether the stack goes through a node.
function goesThrough(stack, node) {
	return graph.tree.leaves.some((ends) => ends[stack] >= 0 && isWithin(ends[stack], node));
}

// Largest first; those of `least` or more, or any that hold something. `side`: 1 or -1 for only what is below or above.
function childrenOf(node, least = 0, side = 0) {
	const { childList, childStart, widths: size, nameIds, rows } = graph.tree, children = [];
	for (let i = childStart[node]; i < childStart[node + 1]; i++) {
		if (size[childList[i]] > 0 && size[childList[i]] >= least && rows[childList[i]] * side >= 0)
			children.push(childList[i]);
	}
	return children.sort((a, b) => size[b] - size[a] || nameIds[a] - nameIds[b]);
}

// Boxes of everything that is wide enough to be seen; what encloses the enlarged node takes the whole width.
function layOut(width) {
	const { tree } = graph, boxes = [];
	for (let node = graph.zoom; node; node = tree.parents[node])
		boxes.unshift({ node, x: 0, row: tree.rows[node], width, above: node !== graph.zoom });
	boxes.unshift({ node: 0, x: 0, row: 0, width, above: graph.zoom !== 0 });
	const pending = [boxes[boxes.length - 1]];
	while (pending.length) {
		const box = pending.pop();
		const scale = box.width / tree.widths[box.node], next = [box.x, box.x];
		for (const child of childrenOf(box.node, WIDTH_MIN / scale)) {
			const side = tree.rows[child] < 0 ? 1 : 0;
			const made = { node: child, x: next[side], row: tree.rows[child], width: tree.widths[child] * scale };
			next[side] += made.width;
			boxes.push(made);
			pending.push(made);
		}
	}
	return boxes;
}

// What is too narrow to be told apart makes a picture no taller: it shows when its callers are enlarged.
function rowsOf(boxes) {
	const wide = boxes.filter((box) => box.width >= 3).map((box) => box.row);
	return { top: Math.min(0, ...wide), bottom: Math.max(0, ...wide) };
}

function hashHue(text) {
	let hash = 7;
	for (let i = 0; i < text.length; i++)
		hash = (hash * 31 + text.charCodeAt(i)) % 997;
	return hash * 137 % 360;
}

const moduleColours = { light: new Map(), dark: new Map() };

function moduleColour(module) {
	const known = moduleColours[dark ? "dark" : "light"];
	if (!known.has(module))
		known.set(module, dark ? `hsl(${hashHue(module)} 32% 30%)` : `hsl(${hashHue(module)} 62% 82%)`);
	return known.get(module);
}

function differenceColour(node) {
	const [before, after] = graph.tree.values;
	const width = Math.max(before[node], after[node]);
	const share = width ? (after[node] - before[node]) / width : 0;
	const strength = Math.min(1, Math.abs(share));
	if (strength < 0.005)
		return dark ? "#3a4048" : "#e3e6ea";
	const hue = share > 0 ? 12 : 212;
	return dark ? `hsl(${hue} ${25 + 40 * strength}% ${28 + 6 * strength}%)` : `hsl(${hue} ${45 + 45 * strength}% ${92 - 20 * strength}%)`;
}

function boxColour(box) {
	const id = graph.tree.nameIds[box.node], name = nameAt(box.node);
	if (name && graph.tree.matched && graph.tree.matched[id])
		return dark ? "#8c2a78" : "#ff9ae6";
	if (isDiff && name)
		return differenceColour(box.node);
	if (!name || name.flags & FRAME_RUNTIME)
		return dark ? "#2b3138" : "#e6e9ed";
	if (name.flags & FRAME_JIT)
		return dark ? "hsl(135 28% 27%)" : "hsl(128 48% 80%)";
	return moduleColour(name.module || name.name);
}

// Null: node 0 is everything.
function nameAt(node) {
	return graph.names[graph.tree.nameIds[node]] || null;
}

function nameOf(node) {
	const name = nameAt(node);
	return name ? name.name : "all stacks";
}

function boxText(node) {
	const name = nameAt(node);
	return name ? name.name + (name.place ? "  " + name.place : "") : "all stacks: " + measures[selection.measure].format(totals[values.length - 1]);
}

// The row of a box from the top: in a flame graph, callers are below.
function rowFromTop(row, rows) {
	return graph.options.flame ? rows.bottom - row : row - rows.top;
}

function drawBox(context, box, charWidth) {
	const y = rowFromTop(box.row, graph.rows) * ROW, width = Math.max(0.5, box.width - 0.6);
	context.globalAlpha = box.above ? 0.55 : 1;
	context.fillStyle = boxColour(box);
	context.fillRect(box.x, y, width, ROW - 1.5);
	context.globalAlpha = 1;
	if (box.width > 26) {
		const room = Math.floor((width - 7) / charWidth), name = nameAt(box.node);
		let text = boxText(box.node);
		// Once for each name: there are many boxes.
		if (name && text.length > room)
			text = name.short = name.short || shortName(text, SHORT_NAME);
		context.fillStyle = dark ? "#eef1f4" : "#15181c";
		context.fillText(text.length <= room ? text : text.slice(0, Math.max(1, room - 1)) + "\u2026", box.x + 4, y + ROW / 2);
	}
	if ((box.node === graph.current || (!box.node && selection.focus)) && !printing) {
		context.strokeStyle = colour("--ink");
		context.lineWidth = 2;
		context.strokeRect(box.x + 1, y + 1, Math.max(1, width - 2), ROW - 3.5);
	}
}

function drawGraph() {
	const started = performance.now(), { tree } = graph;
	const empty = !(tree.widths[0] > 0);
	find("graph-empty").hidden = !empty;
	find("graph-empty").textContent = empty ? "No stack holds anything of what is selected." : "";
	graph.canvas.hidden = empty;
	if (!empty && !(tree.widths[graph.zoom] > 0))
		graph.zoom = 0;
	graph.boxes = empty ? [] : layOut(pageWidth);
	if (empty)
		return;
	graph.rows = rowsOf(graph.boxes);
	const context = prepareCanvas(graph.canvas, pageWidth, (graph.rows.bottom - graph.rows.top + 1) * ROW);
	context.font = "12px " + (colour("--mono") || "monospace");
	context.textBaseline = "middle";
	const charWidth = context.measureText("MMMMMMMMMM").width / 10;
	for (const box of graph.boxes)
		drawBox(context, box, charWidth);
	performance.measure("graph", { start: started, end: performance.now() });
}

// The same boxes as a picture for any browser, with the script of boxes.svg.
function svgOfGraph() {
	const width = 1200, left = 30, boxes = layOut(width), rows = rowsOf(boxes), wasDark = dark; // a picture is on white
	const height = left + (rows.bottom - rows.top + 1) * ROW;
	const safe = (text) => text.replace(/[<>&"\ufffe\uffff]/g, (one) => one > "\ufffd" ? "?" : "&#" + one.charCodeAt(0) + ";");
	dark = false;
	const lines = boxes.filter((box) => box.row >= rows.top && box.row <= rows.bottom).map((box) => {
		const place = { x: box.x.toFixed(2), y: left + rowFromTop(box.row, rows) * ROW, width: box.width.toFixed(2), height: ROW - 1, "data-d": box.row };
		const name = nameAt(box.node), text = name ? labelOf(name) : boxText(box.node);
		return "<svg " + Object.entries(place).map(([key, value]) => key + '="' + value + '"').join(" ") + "><title>" + safe(text + "\n" + figureText(box.node)) +
			'</title><rect width="100%" height="100%" fill="' + boxColour(box) + '"/><text x="4" y="13">' + (box.width < 25 ? "" : safe(text)) + "</text></svg>\n";
	});
	dark = wasDark;
	return '<svg xmlns="' + find("svg-space").namespaceURI + '" width="' + width + '" height="' + height + '" viewBox="0 0 ' + width + " " + height + '">\n' +
		boxesOfSvg + '<text id="said" x="4" y="18">' + safe(find("heading").textContent + ": " + find("total").textContent) + "</text>\n" + lines.join("") + "</svg>\n";
}

function figureText(node) {
	const format = measures[selection.measure].format, tree = graph.tree;
	if (!isDiff) {
		const value = tree.values[0][node];
		return format(value) + "  " + formatPercent(value, totals[0]) +
			(graph.zoom && node !== graph.zoom ? ", " + formatPercent(value, tree.values[0][graph.zoom]) + " of the enlarged frame" : "");
	}
	const before = tree.values[0][node], after = tree.values[1][node];
	return format(before) + " before, " + format(after) + " after: " + formatChange(after - before, format);
}

function showDetails() {
	const details = find("details"), node = graph.current >= 0 ? graph.current : graph.zoom;
	details.textContent = "";
	if (!graph.tree.widths[node])
		return;
	const name = nameAt(node);
	details.append(shortElement("span", "name", nameOf(node)));
	graph.canvas.title = details.lastChild.title;
	details.dataset.value = String(graph.tree.values[values.length - 1][node]);
	if (name) {
		const place = [name.module, name.place || (name.frame && graph.options.merge === "function" ? placeOf(name.frame) : "")];
		details.append(element("span", "rest", place.filter(Boolean).join("  ")));
	}
	details.prepend(element("span", "figure", figureText(node)));
	const add = (text, action) => {
		const button = element("button", "", text);
		button.type = "button";
		button.addEventListener("click", action);
		details.append(button);
	};
	if (graph.zoom)
		add("Show callers and callees", () => chooseFunction(nameAt(graph.zoom)));
	if (graph.zoom || selection.focus)
		add("Show all stacks", () => selection.focus ? chooseFunction(null) : zoomTo(0));
}

// Its callers and what it calls, in the stacks through it; null: everything.
function chooseFunction(name) {
	selection.focus = name ? labelOf(name) : "";
	changed("focus");
}

function zoomTo(node) {
	graph.zoom = node;
	graph.current = node;
	changed("zoom");
}

function boxAt(event) {
	const rectangle = graph.canvas.getBoundingClientRect();
	const x = event.clientX - rectangle.left, row = Math.floor((event.clientY - rectangle.top) / ROW);
	return graph.boxes.find((box) => rowFromTop(box.row, graph.rows) === row && x >= box.x && x < box.x + Math.max(1, box.width));
}

function setCurrent(node) {
	if (node === graph.current)
		return;
	graph.current = node;
	drawGraph();
	showDetails();
}

function stepAside(by) {
	const { parents, rows } = graph.tree, siblings = childrenOf(parents[graph.current], 0, Math.sign(rows[graph.current]));
	const place = siblings.indexOf(graph.current) + by;
	return graph.current && graph.current !== graph.zoom && siblings[place] !== undefined ? siblings[place] : graph.current;
}

// To the widest box of the next row, or back towards node 0. `side`: 1 or -1.
function stepOn(side) {
	const node = graph.current, { parents, rows } = graph.tree;
	return rows[node] * side < 0 ? parents[node] : childrenOf(node, 0, side).concat(node)[0];
}

function graphKey(event) {
	if (graph.current < 0)
		graph.current = graph.zoom;
	const down = graph.options.flame ? -1 : 1;
	switch (event.key) {
	case "ArrowDown": setCurrent(stepOn(down)); break;
	case "ArrowUp": setCurrent(stepOn(-down)); break;
	case "ArrowLeft": setCurrent(stepAside(-1)); break;
	case "ArrowRight": setCurrent(stepAside(1)); break;
	case "Home": setCurrent(0); break;
	case "Enter": case " ": zoomTo(graph.current); break;
	case "Escape": selection.focus && !graph.zoom ? chooseFunction(null) : zoomTo(0); break;
	default: return;
	}
	event.preventDefault();
}

function startGraph() {
	graph.canvas.addEventListener("pointermove", (event) => {
		const box = boxAt(event);
		if (event.pointerType !== "touch")
			setCurrent(box ? box.node : -1);
	});
	graph.canvas.addEventListener("pointerleave", () => setCurrent(-1));
	graph.canvas.addEventListener("click", (event) => {
		const box = boxAt(event);
		if (box)
			zoomTo(box.node);
	});
	graph.canvas.addEventListener("keydown", graphKey);
	graph.canvas.addEventListener("focus", () => {
		if (graph.canvas.matches(":focus-visible") && graph.current < 0)
			setCurrent(graph.zoom);
	});
	for (const id of ["merge", "inverted", "flame", "folded"]) {
		find(id).addEventListener("change", (event) => {
			graph.options[id] = id === "merge" ? event.target.value : event.target.checked;
			changed("tree");
		});
	}
}
