-- What did the last deployment of each program change? Bytes that a stack gains per hour and host, in the newest build
-- and in those before it.
WITH builds AS (
    SELECT executable_name, executable_build_id, min(start_time) AS first_seen
    FROM mmtrace_rows
    WHERE coalesce(executable_build_id, '') <> ''
    GROUP BY executable_name, executable_build_id
), newest AS (
    SELECT executable_name, argMax(executable_build_id, first_seen) AS newest_build
    FROM builds
    GROUP BY executable_name
    HAVING count(*) > 1
), intervals AS (
    SELECT DISTINCT executable_name, executable_build_id, host_name, start_time, end_time
    FROM mmtrace_rows
), observed AS (
    SELECT executable_name,
        sum(CASE WHEN executable_build_id = newest_build THEN 0 ELSE 1 END
            * dateDiff('second', start_time, end_time)) / 3600 AS hours_before,
        sum(CASE WHEN executable_build_id = newest_build THEN 1 ELSE 0 END
            * dateDiff('second', start_time, end_time)) / 3600 AS hours_after
    FROM intervals
    JOIN newest USING (executable_name)
    GROUP BY executable_name
), gains AS (
    SELECT executable_name, stack_id, any_value(stack) AS stack_functions, any_value(newest_build) AS build,
        sum(CASE WHEN executable_build_id = newest_build THEN 0 ELSE coalesce(resident_bytes, committed_bytes) END)
            AS gained_before,
        sum(CASE WHEN executable_build_id = newest_build THEN coalesce(resident_bytes, committed_bytes) ELSE 0 END)
            AS gained_after
    FROM mmtrace_rows
    JOIN newest USING (executable_name)
    WHERE unnamed_frames = 0 AND stack_id <> 'other' AND attributed_by = 'stack'
    GROUP BY executable_name, stack_id
)
SELECT executable_name, build, stack_id,
    round(gained_before / hours_before) AS bytes_per_hour_before,
    round(gained_after / hours_after) AS bytes_per_hour_after,
    stack_functions
FROM gains
JOIN observed USING (executable_name)
WHERE hours_before > 0 AND hours_after > 0
ORDER BY abs(gained_after / hours_after - gained_before / hours_before) DESC
LIMIT 20;
