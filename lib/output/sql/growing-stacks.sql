-- Which stacks grow, on how many hosts? (the last day)
-- A stack grows on a host if most intervals call it a leak. Memory that lives for longer than an interval looks like
-- one, too, if it is freed later: then the processes do not grow by as much as the stack gained.
WITH per_host AS (
    SELECT service_name, executable_name, stack_id, host_name,
        any_value(stack) AS example,
        sum(coalesce(resident_bytes, committed_bytes)) AS gained,
        max(process_resident_bytes) - min(process_resident_bytes) AS process_growth
    FROM mmtrace_rows
    WHERE end_time > (SELECT max(end_time) FROM mmtrace_rows) - INTERVAL 1 DAY
        AND stack_id <> 'other' AND attributed_by = 'stack'
    GROUP BY service_name, executable_name, stack_id, host_name
    HAVING sum(CASE WHEN verdict = 'leak' THEN 1 ELSE 0 END) * 2 > count(*)
)
SELECT service_name, executable_name, stack_id,
    count(*) AS hosts, sum(gained) AS gained_bytes, any_value(example) AS stack_functions
FROM per_host
WHERE coalesce(process_growth, gained) * 4 >= gained
GROUP BY service_name, executable_name, stack_id
ORDER BY hosts DESC, gained_bytes DESC
LIMIT 20;
