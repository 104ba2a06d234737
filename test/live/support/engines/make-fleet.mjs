// SPDX-License-Identifier: LGPL-2.1-or-later
// Usage: node make-fleet.mjs HOSTS INTERVALS STACKS FILE.ndjson|FILE.parquet: the rows of a fleet of five-minute intervals.
// Stacks 0 to 9 leak in services svc-0 to svc-9, each on a tenth more of the hosts. Others are caches, traffic, memory that
// outlives its interval in services that do not grow (svc-10 to svc-14), and stacks that look like leaks now and then.
// svc-5 gets a new build after half the time, and with it its leak. svc-3 is near its limit. host-2 is odd in svc-12.
import { DuckDBInstance } from '@duckdb/node-api';

const [hosts, intervals, stacks, file] = process.argv.slice(2);
const connection = await (await DuckDBInstance.create(':memory:')).connect();
const reader = await connection.runAndReadAll(`
COPY (
	WITH cells AS (
		SELECT h, i, k, k % 15 AS service, k < 10 AND h % 10 <= k AND (k <> 5 OR i >= ${intervals} // 2) AS leaks,
			CASE WHEN k % 4 = 2 AND k % 15 < 10 THEN 1 ELSE k % 4 END AS kind,
			hash(h * 1000003 + i * 1009 + k) % 1000 AS random
		FROM range(${hosts}) a(h), range(${intervals}) b(i), range(${stacks}) c(k)
		WHERE k >= 10 OR (h % 10 <= k AND (k <> 5 OR i >= ${intervals} // 2))
	), figures AS (
		SELECT *, CASE WHEN leaks THEN 1000000 + random * 1000
			WHEN k = 12 AND h = 2 THEN 900000000
			WHEN kind = 0 THEN CASE WHEN i = 0 THEN 50000000 ELSE 0 END
			WHEN kind = 1 THEN random * 20000
			WHEN kind = 2 THEN 3000000
			ELSE random * 10000 END::BIGINT AS held,
			CASE WHEN leaks THEN CASE WHEN random < 850 THEN 'leak' ELSE 'too-short' END
			WHEN kind = 0 THEN 'cache' WHEN kind = 1 THEN 'traffic' WHEN kind = 2 THEN 'leak'
			ELSE CASE WHEN random < 100 THEN 'leak' ELSE 'unknown' END END AS verdict,
			(300000000 + random * 10000 + CASE WHEN service < 10 AND h % 10 <= service
				THEN 432000000 * i // ${intervals} ELSE 0 END)::BIGINT AS resident
		FROM cells
	)
	SELECT TIMESTAMP '2026-12-01 00:00:00' + INTERVAL 5 MINUTE * i AS start_time,
		TIMESTAMP '2026-12-01 00:05:00' + INTERVAL 5 MINUTE * i AS end_time,
		'host-' || h AS host_name, 'svc-' || service AS service_name, NULL::VARCHAR AS container_id,
		NULL::VARCHAR AS k8s_pod_uid, 'bin-' || service AS executable_name,
		CASE WHEN service = 5 AND i >= ${intervals} // 2 THEN 'b2' ELSE 'b1' END AS executable_build_id, 4 AS processes,
		resident AS process_resident_bytes, resident AS group_used_bytes,
		CASE WHEN service = 3 THEN 800000000 ELSE 10000000000 END AS group_limit_bytes, 'stack' AS attributed_by,
		lpad(format('{:x}', k), 16, '0') AS stack_id, 0 AS unnamed_frames, 'anon' AS class, verdict,
		held AS unfreed_bytes, held // 4096 AS unfreed_count, held AS committed_bytes, held AS resident_bytes,
		held * 2 AS allocated_bytes, held // 2048 AS allocated_count, held AS freed_bytes, held // 4096 AS freed_count,
		held // 5 AS bytes_per_minute,
		['mmap (libc.so.6)', 'allocate_' || k || ' (bin-' || service || ')', 'main (bin-' || service || ')'] AS stack
	FROM figures
) TO '${file}' (FORMAT ${file.endsWith('.parquet') ? 'parquet, COMPRESSION zstd' : 'json'})`);
console.error(`${reader.getRowsJson()[0][0]} rows`);
