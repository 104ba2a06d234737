// SPDX-License-Identifier: LGPL-2.1-or-later
// The table of functions: what the stacks hold in which a function is the innermost (self), or stands anywhere (total).

const FUNCTIONS_SHOWN = 200;
const functions = { sort: "total" };

// Of the names of the tree, so that frames are merged as in the graph; a function that calls itself counts once.
function sumFunctions() {
	const last = values.length - 1, count = graph.names.length;
	const self = new Float64Array(count), total = new Float64Array(count), seen = new Int32Array(count).fill(-1);
	for (const i of chooseRows(true)) {
		const path = graph.paths[i];
		for (const id of path) {
			if (seen[id] !== i)
				total[id] += values[last][i];
			seen[id] = i;
		}
		self[path[path.length - 1]] += values[last][i];
	}
	return { self, total };
}

function functionRow(id, place, self, total) {
	const row = element("tr", "row"), name = graph.names[id], format = measures[selection.measure].format;
	const button = shortElement("button", "unfold", name.name), cell = element("td", "text stack"), isChosen = id === graph.tree.chosen;
	button.type = "button";
	button.title = button.title || "show callers and callees";
	button.setAttribute("aria-pressed", String(isChosen));
	row.classList.toggle("chosen", isChosen);
	cell.append(button);
	row.append(element("td", "", String(place)), element("td", "value", format(self)), element("td", "value", format(total)),
		element("td", "", formatPercent(total, totals[values.length - 1])), cell, element("td", "text", name.module));
	row.children[1].dataset.value = String(self);
	row.children[2].dataset.value = String(total);
	row.addEventListener("click", () => {
		chooseFunction(isChosen ? null : name);
		find("functions-body").querySelectorAll("button")[place - 1].focus({ preventScroll: true });
		find("graph-section").scrollIntoView({ block: "nearest" });
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
