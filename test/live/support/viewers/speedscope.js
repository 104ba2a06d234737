// SPDX-License-Identifier: LGPL-2.1-or-later
// speedscope.js BROWSER FILE: opens a file in speedscope, which is on the disk, too. Prints the names of the profiles.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const [browserPath, file] = process.argv.slice(2);
const page_url = new URL('node_modules/speedscope/dist/release/index.html', import.meta.url);
const loader = `${file}.js`;
const problems = [];

writeFileSync(loader, `speedscope.loadFileFromBase64("export", ${JSON.stringify(readFileSync(file).toString('base64'))})`);
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] });
const page = await browser.newPage();
page.on('console', message => message.type() === 'error' && problems.push(message.text()));
page.on('pageerror', error => problems.push(String(error)));
page.on('request', request => /^(file|data|blob):/.test(request.url()) || problems.push(`request: ${request.url()}`));
await page.goto(`file://${fileURLToPath(page_url)}#localProfilePath=${loader}`);
for (let number = 1; number <= 6; number++) {
  const title = page.getByText(new RegExp(`\\(${number}/6\\)`));
  await title.waitFor();
  console.log((await title.locator('..').innerText()).trim());
  await page.keyboard.press('n');
}
await browser.close();
if (problems.length) {
  console.error(problems.join('\n'));
  process.exit(1);
}
