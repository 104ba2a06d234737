// SPDX-License-Identifier: LGPL-2.1-or-later
// Two workers that generate code and allocate on and off the managed heap, until they are killed.
const { Worker, isMainThread } = require('worker_threads');

function work() {
	const kept = [];
	for (let round = 0; ; round++) {
		const double = new Function('x', `return x * ${round} + ${round % 7}`);
		let sum = 0;
		for (let i = 0; i < 20000; i++)
			sum += double(i);
		kept[round % 50] = [Buffer.alloc(300000 + sum % 2), new Array(20000).fill(sum)];
	}
}

if (isMainThread) {
	new Worker(__filename);
	new Worker(__filename);
} else {
	work();
}
