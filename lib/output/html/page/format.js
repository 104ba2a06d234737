// SPDX-License-Identifier: LGPL-2.1-or-later
// Numbers as the text report writes them, and elements made without markup: text is only ever textContent.

const byteUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

function formatBytes(bytes) {
	let unit = 0, value = Math.abs(bytes);
	while (value >= (unit ? 1023.5 : 1024) && unit < byteUnits.length - 1) {
		value /= 1024;
		unit++;
	}
	const digits = unit === 0 || value >= 999.95 ? 0 : value >= 99.995 ? 1 : 2;
	// A figure in the middle is rounded to the even one, as printf() does.
	const scaled = value * 10 ** digits, rounded = Math.round(scaled), isOdd = rounded - scaled === 0.5 && rounded % 2 === 1;
	return (bytes < 0 ? "-" : "") + ((isOdd ? rounded - 1 : rounded) / 10 ** digits).toFixed(digits) + " " + byteUnits[unit];
}

function formatCount(count) {
	return String(Math.round(count)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function formatChange(value, format) {
	return (value > 0 ? "+" : "") + format(value);
}

function formatPercent(part, total) {
	return total > 0 ? (100 * part / total).toFixed(1) + " %" : "-";
}

function formatDuration(ns) {
	const ms = ns / 1e6;
	if (ms < 1)
		return ns ? (ns / 1e3).toFixed(ns < 1e4 ? 1 : 0) + " us" : "0 s";
	if (ms < 1000)
		return ms.toFixed(ms < 10 ? 1 : 0) + " ms";
	const s = ms / 1000;
	if (s < 120)
		return s.toFixed(s < 10 ? 2 : 1) + " s";
	const minutes = Math.floor(s / 60);
	if (minutes < 120)
		return minutes + " min " + Math.floor(s % 60) + " s";
	return Math.floor(minutes / 60) + " h " + minutes % 60 + " min";
}

// A name without the arguments of its templates and functions if it is long, and then without its middle.
function shortName(name, room = 90) {
	let text = name;
	const fold = (brackets, mark) => {
		for (let before = ""; text.length > room && text !== before;) {
			before = text;
			text = text.replace(brackets, mark);
		}
	};
	fold(/<[^<>]*>/g, "\u2039\u203a");
	text = text.replace(/\u2039\u203a/g, "<\u2026>");
	fold(/(?<! )\([^()]*\)/g, "(\u2026)");
	return text.length > room ? text.slice(0, room >> 1) + "\u2026" + text.slice(-(room >> 1)) : text;
}

// The same as an element that shows all of the name to the pointer.
function shortElement(name, className, text, room) {
	const made = element(name, className, shortName(text, room));
	made.title = made.textContent === text ? "" : text;
	return made;
}

function element(name, className, text) {
	const made = document.createElement(name);
	if (className)
		made.className = className;
	if (text !== undefined)
		made.textContent = text;
	return made;
}

const find = (id) => document.getElementById(id);

// Colours of the style sheet, which follow the colour scheme; canvases cannot use them by name.
let printing = false;

// Colours, and the width of chart and graph in CSS pixels. Kept, because reading them makes the browser lay out the page.
const colours = new Map();
let pageWidth = 0, dark = false;

function measurePage() {
	colours.clear();
	dark = !printing && matchMedia("(prefers-color-scheme: dark)").matches;
	pageWidth = printing ? 680 : document.querySelector("main").clientWidth;
}

function colour(name) {
	if (!colours.has(name))
		colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
	return colours.get(name);
}

// Makes the canvas as sharp as the screen; returns its context, in CSS pixels, cleared.
function prepareCanvas(canvas, width, height) {
	const ratio = Math.min(devicePixelRatio || 1, 3);
	canvas.style.height = height + "px";
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	const context = canvas.getContext("2d");
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	return context;
}
