-- The rows of `mmtrace export -f rows` in ClickHouse. To load a file:
--   clickhouse-client --date_time_input_format=best_effort -q 'INSERT INTO mmtrace_rows FORMAT JSONEachRow' < FILE
CREATE TABLE IF NOT EXISTS mmtrace_rows (
    start_time DateTime64(3, 'UTC') CODEC(Delta, ZSTD),
    end_time DateTime64(3, 'UTC') CODEC(Delta, ZSTD),
    host_name LowCardinality(String),
    service_name LowCardinality(String),
    container_id String CODEC(ZSTD),
    k8s_pod_uid String CODEC(ZSTD),
    executable_name LowCardinality(String),
    executable_build_id LowCardinality(String),
    processes Int64 CODEC(ZSTD),
    process_resident_bytes Nullable(Int64) CODEC(ZSTD),
    group_used_bytes Nullable(Int64) CODEC(ZSTD),
    group_limit_bytes Nullable(Int64) CODEC(ZSTD),
    attributed_by LowCardinality(String),
    stack_id String CODEC(ZSTD),
    unnamed_frames Int64 CODEC(ZSTD),
    class LowCardinality(String),
    verdict LowCardinality(String),
    unfreed_bytes Int64 CODEC(ZSTD),
    unfreed_count Int64 CODEC(ZSTD),
    committed_bytes Int64 CODEC(ZSTD),
    resident_bytes Nullable(Int64) CODEC(ZSTD),
    allocated_bytes Int64 CODEC(ZSTD),
    allocated_count Int64 CODEC(ZSTD),
    freed_bytes Int64 CODEC(ZSTD),
    freed_count Int64 CODEC(ZSTD),
    bytes_per_minute Nullable(Int64) CODEC(ZSTD),
    stack Array(LowCardinality(String)) CODEC(ZSTD)
) ENGINE = MergeTree
ORDER BY (service_name, executable_name, stack_id, host_name, end_time)
PARTITION BY toDate(end_time)
TTL toDateTime(end_time) + INTERVAL 30 DAY;
