-- Which services will reach the limit of their control group within a day? (a straight line through the last day)
WITH readings AS (
    SELECT host_name, service_name, container_id, end_time,
        dateDiff('second', (SELECT min(end_time) FROM mmtrace_rows), end_time) AS seconds,
        max(group_used_bytes) AS used, max(group_limit_bytes) AS limit_bytes
    FROM mmtrace_rows
    WHERE end_time > (SELECT max(end_time) FROM mmtrace_rows) - INTERVAL 1 DAY
        AND group_limit_bytes IS NOT NULL
    GROUP BY host_name, service_name, container_id, end_time
), trends AS (
    SELECT host_name, service_name, container_id,
        argMax(used, end_time) AS used_bytes,
        argMax(limit_bytes, end_time) AS group_limit,
        covar_pop(seconds, used) / var_pop(seconds) AS bytes_per_second
    FROM readings
    GROUP BY host_name, service_name, container_id
    HAVING var_pop(seconds) > 0
)
SELECT host_name, service_name, container_id, used_bytes, group_limit,
    round((group_limit - used_bytes) / bytes_per_second / 3600, 1) AS hours_left
FROM trends
WHERE bytes_per_second > 0 AND group_limit - used_bytes < bytes_per_second * 86400
ORDER BY hours_left, host_name, service_name
LIMIT 20;
