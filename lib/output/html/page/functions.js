// SPDX-License-Identifier: LGPL-2.1-or-later
// The table of functions: what the stacks hold in which a function is the innermost (self), or stands anywhere (total).

const FUNCTIONS_SHOWN = 200;
const functions = { sort: "total" };

// Of the names of the tree, so that frames are merged as in the graph; a function that calls itself counts once.
function sumFunctions() {
	const { tree } = graph, last = values.length - 1, count = tree.names.length;
	const self = new Float64Array(count), total = new Float64Array(count), seen = new Int32Array(count).fill(-1);
	for (const i of chooseRows()) {
		let node = tree.leaves[i], innermost = node;
		for (; node; node = tree.parents[node]) {
			const id = tree.nameIds[node];
			if (seen[id] !== i)
				total[id] += values[last][i];
			seen[id] = i;
			// The innermost function is the leaf, or of an inverted tree the outermost node.
			if (graph.options.inverted)
				innermost = node;
		}
		if (innermost)
			self[tree.nameIds[innermost]] += values[last][i];
	}
	return { self, total };
}

function functionRow(id, place, self, total) {
	const row = element("tr", "row"), name = graph.tree.names[id], format = measures[selection.measure].format;
	const button = element("button", "unfold", name.name), cell = element("td", "text stack");
	button.type = "button";
	button.title = "search for this name";
	cell.append(button);
	row.append(element("td", "", String(place)), element("td", "value", format(self)), element("td", "value", format(total)),
		element("td", "", formatPercent(total, totals[values.length - 1])), cell, element("td", "text", name.module));
	row.children[1].dataset.value = String(self);
	row.children[2].dataset.value = String(total);
	row.addEventListener("click", () => {
		find("search").value = selection.search = name.name;
		changed("search");
	});
	return row;
}

function drawFunctions() {
	const sums = sumFunctions(), by = sums[functions.sort], body = find("functions-body");
	const ids = Array.from(by.keys()).filter((id) => sums.total[id] > 0);
	ids.sort((a, b) => by[b] - by[a] || sums.total[b] - sums.total[a] || a - b);
	body.replaceChildren(...ids.slice(0, FUNCTIONS_SHOWN).map((id, i) => functionRow(id, i + 1, sums.self[id], sums.total[id])));
	for (const key of ["self", "total"])
		find("sort-" + key).parentElement.setAttribute("aria-sort", functions.sort === key ? "descending" : "none");
	find("table-count").textContent = formatCount(ids.length) + (ids.length === 1 ? " function" : " functions") +
		(ids.length > FUNCTIONS_SHOWN ? ", the first " + FUNCTIONS_SHOWN : "");
}

function showTable() {
	const ofFunctions = find("table-kind").value === "functions";
	find("functions").hidden = !ofFunctions;
	find("table").hidden = ofFunctions;
	if (!ofFunctions) {
		drawTable();
		return;
	}
	find("more").hidden = true;
	drawFunctions();
}

function startFunctions() {
	find("table-kind").addEventListener("change", () => changed("zoom"));
	for (const key of ["self", "total"]) {
		find("sort-" + key).addEventListener("click", () => {
			functions.sort = key;
			drawFunctions();
		});
	}
}
