// SPDX-License-Identifier: LGPL-2.1-or-later
// screenshots.mjs PAGE PICTURE, for test/screenshots: the page with its first stack opened.
import { openBrowser, openPage } from "./browser.mjs";

const [path, picture] = process.argv.slice(2);
const browser = await openBrowser();
const page = await openPage(browser, path, { width: 1100, height: 1000 });
await page.locator("#table-body tr.row").first().click();
await page.mouse.move(0, 0);
await page.evaluate(() => {
	document.activeElement.blur();
	scrollTo(0, 0);
});
const bottom = await page.locator("tr.frames").first().evaluate((row) => row.getBoundingClientRect().bottom);
await page.screenshot({ path: picture, clip: { x: 0, y: 0, width: 1100, height: Math.ceil(bottom) + 10 }, fullPage: true });
await browser.close();
