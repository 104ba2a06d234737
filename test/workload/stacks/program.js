// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks so large that the runtime maps them, from interpreted and optimised functions, methods, closures, generators,
// callbacks of the library, after a wait, and in a worker. program.js ROUNDS
'use strict';
const { Worker, isMainThread, workerData } = require('worker_threads');

const BLOCK = 256 << 10;
const kept = [];

function leakBuffer() {
	kept.push(Buffer.allocUnsafeSlow(BLOCK));
	return kept.length;
}

class Circle {
	draw(scale) {
		return leakBuffer() * scale;
	}
}

function byMethod(shape) {
	return shape.draw(1.5) + 1;
}

function byClosure(action) {
	return action() + 1;
}

function byLibrary() {
	return [1].map(function inMap(number) {
		return leakBuffer() + number;
	});
}

function* generate() {
	yield leakBuffer() + 1;
}

function byGenerator() {
	let sum = 0;
	for (const number of generate())
		sum += number;
	return sum;
}

async function byWaiting() {
	await null;
	return leakBuffer() + 1;
}

function oneRound(shape) {
	const local = 1;
	return byMethod(shape) + byClosure(function inClosure() {
		return leakBuffer() + local;
	}) + byLibrary().length + byGenerator();
}

async function rounds(count) {
	const shape = new Circle();
	for (let i = 0; i < count; i++) {
		oneRound(shape);
		await byWaiting();
	}
}

if (isMainThread) {
	const count = Number(process.argv[2]);
	rounds(count).then(() => new Worker(__filename, { workerData: count }));
} else {
	rounds(workerData);
}
