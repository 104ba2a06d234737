-- Which stacks grow, on how many hosts? (the last day)
-- A stack grows on a host if most intervals call it a leak. Memory that lives for longer than an interval looks like
-- one, too, if it is freed later: then the processes do not grow by as much as the stack gained.
WITH recent AS (
    SELECT * FROM mmtrace_rows WHERE end_time > (SELECT max(end_time) FROM mmtrace_rows) - INTERVAL 1 DAY
), programs AS (
    SELECT service_name, executable_name, host_name, end_time, max(process_resident_bytes) AS program_size
    FROM recent
    GROUP BY service_name, executable_name, host_name, container_id, executable_build_id, end_time
), sizes AS (
    SELECT service_name, executable_name, host_name, end_time, sum(program_size) AS size
    FROM programs
    GROUP BY service_name, executable_name, host_name, end_time
), growth AS (
    SELECT service_name, executable_name, host_name, argMax(size, end_time) - argMin(size, end_time) AS process_growth
    FROM sizes
    GROUP BY service_name, executable_name, host_name
), per_host AS (
    SELECT service_name, executable_name, stack_id, host_name,
        any_value(stack) AS example,
        sum(coalesce(resident_bytes, committed_bytes)) AS gained
    FROM recent
    WHERE stack_id <> 'other' AND attributed_by = 'stack'
    GROUP BY service_name, executable_name, stack_id, host_name
    HAVING sum(CASE WHEN verdict = 'leak' THEN 1 ELSE 0 END) * 2 > count(*)
)
SELECT service_name, executable_name, stack_id,
    count(*) AS hosts, sum(gained) AS gained_bytes, any_value(example) AS stack_functions
FROM per_host
JOIN growth USING (service_name, executable_name, host_name)
WHERE coalesce(process_growth, gained) * 4 >= gained
GROUP BY service_name, executable_name, stack_id
ORDER BY hosts DESC, gained_bytes DESC
LIMIT 20;
