// SPDX-License-Identifier: LGPL-2.1-or-later
// Chromium for the tests and benchmarks of pages. What is loaded from anywhere but a file, printed on the console or shown
// as a dialog is a fault of the page, which `faults` collects.
import { chromium } from "playwright-core";

const options = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
	"--disable-component-update", "--disable-sync"];

export async function openBrowser() {
	return chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: options });
}

export async function openPage(browser, path, { width = 1280, height = 900, colorScheme = "light" } = {}) {
	const context = await browser.newContext({ viewport: { width, height }, colorScheme });
	const page = await context.newPage();
	page.faults = [];
	page.on("console", (message) => page.faults.push("console: " + message.text()));
	page.on("pageerror", (error) => page.faults.push("error: " + error.stack));
	page.on("request", (request) => {
		if (!request.url().startsWith("file:") && request.url() !== "data:,")
			page.faults.push("request: " + request.url());
	});
	page.on("dialog", (dialog) => {
		page.faults.push("dialog: " + dialog.message());
		dialog.dismiss();
	});
	await page.goto("file://" + path);
	return page;
}
