-- Which hosts differ from others that run the same service? (the last day) A stack that most of these hosts do not have
-- usually gains nothing.
WITH last_day AS (
    SELECT *
    FROM mmtrace_rows
    WHERE end_time > (SELECT max(end_time) FROM mmtrace_rows) - INTERVAL 1 DAY AND attributed_by = 'stack'
), service_hosts AS (
    SELECT service_name, executable_name, count(DISTINCT host_name) AS peers
    FROM last_day
    GROUP BY service_name, executable_name
    HAVING count(DISTINCT host_name) >= 3
), per_host AS (
    SELECT service_name, executable_name, stack_id, host_name,
        any_value(stack) AS example, sum(coalesce(resident_bytes, committed_bytes)) AS gained
    FROM last_day
    WHERE stack_id <> 'other'
    GROUP BY service_name, executable_name, stack_id, host_name
), per_stack AS (
    SELECT service_name, executable_name, stack_id, count(*) AS hosts_with_it, median(gained) AS median_gained
    FROM per_host
    GROUP BY service_name, executable_name, stack_id
)
SELECT host_name, service_name, executable_name, stack_id, gained AS gained_bytes,
    CASE WHEN hosts_with_it * 2 > peers THEN median_gained ELSE 0 END AS usual_bytes, example AS stack_functions
FROM per_host
JOIN per_stack USING (service_name, executable_name, stack_id)
JOIN service_hosts USING (service_name, executable_name)
WHERE gained > 2 * CASE WHEN hosts_with_it * 2 > peers THEN median_gained ELSE 0 END
ORDER BY gained_bytes - usual_bytes DESC
LIMIT 20;
