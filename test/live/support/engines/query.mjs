// SPDX-License-Identifier: LGPL-2.1-or-later
// Usage: node query.mjs ENGINE SQL-DIRECTORY FILE...: loads files of rows into clickhouse or duckdb, and prints the answers to
// all questions as JSON, and their times to standard error.
import { readFileSync } from 'node:fs';

const [engine, directory, ...files] = process.argv.slice(2);
const read = name => readFileSync(`${directory}/${name}.sql`, 'utf8').replace(/^--.*$/gm, '').replace(/;\s*$/, '');
const started = () => process.hrtime.bigint();
const report = (what, since) =>
	console.error(`${engine}: ${what} in ${(Number(process.hrtime.bigint() - since) / 1e9).toFixed(2)} s`);
const questions = ['growing-stacks', 'new-since-build', 'limit-within-a-day', 'deployment', 'host-against-peers'];
const sums = `SELECT host_name, count(*) AS row_count, sum(unfreed_bytes) AS unfreed, count(DISTINCT stack_id) AS stacks,
	max(length(stack)) AS deepest FROM mmtrace_rows GROUP BY host_name ORDER BY host_name`;
const answers = {};
let time = started();

if (engine === 'duckdb') {
	const { DuckDBInstance } = await import('@duckdb/node-api');
	const connection = await (await DuckDBInstance.create(':memory:')).connect();
	await connection.run(read('table-duckdb'));
	for (const file of files)
		await connection.run(`COPY mmtrace_rows FROM '${file}' (FORMAT ${file.endsWith('.parquet') ? 'parquet' : 'json'})`);
	report('loaded', time);
	answers.sums = (await connection.runAndReadAll(sums)).getRowObjectsJson();
	for (const name of questions) {
		time = started();
		answers[name] = (await connection.runAndReadAll(read(name))).getRowObjectsJson();
		report(name, time);
	}
} else {
	const { Session } = (await import('chdb')).default;
	const session = new Session();
	session.query(read('table-clickhouse'));
	for (const file of files)
		session.query(`INSERT INTO mmtrace_rows SELECT * FROM file('${file}',
			${file.endsWith('.parquet') ? 'Parquet' : 'JSONEachRow'}) SETTINGS date_time_input_format = 'best_effort'`);
	report('loaded', time);
	const ask = query => session.query(query, 'JSONEachRow').split('\n').filter(Boolean).map(line => JSON.parse(line));
	answers.sums = ask(sums);
	for (const name of questions) {
		time = started();
		answers[name] = ask(read(name));
		report(name, time);
	}
	session.cleanup();
}
console.log(JSON.stringify(answers));
