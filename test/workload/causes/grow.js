// SPDX-License-Identifier: LGPL-2.1-or-later
// Memory of Node outside or inside its heap: grow.js buffers|reused|heap. Waits for a line, grows, waits for another.
const kept = [];
const buffer = Buffer.alloc(1 << 19);

function keep(kind, i) {
	if (kind === 'buffers')
		kept.push(Buffer.alloc(1 << 20, 1));
	else if (kind === 'heap')
		kept.push(new Array(131072).fill(i));
	else
		buffer.fill(i);
}

let lines = 0;
process.stdin.on('data', () => {
	if (lines++)
		return;
	for (let i = 0; i < 64; i++)
		keep(process.argv[2], i);
	console.log('done');
});
process.stdin.on('end', () => process.exit());
console.log('ready');
