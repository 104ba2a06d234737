-- Which stacks are new since the newest build of their program? Stacks with unnamed frames have another identity in
-- each build, so they are left out.
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
)
SELECT executable_name, any_value(newest_build) AS build, stack_id,
    count(DISTINCT host_name) AS hosts,
    sum(coalesce(resident_bytes, committed_bytes)) AS gained_bytes,
    any_value(stack) AS stack_functions
FROM mmtrace_rows
JOIN newest USING (executable_name)
WHERE stack_id <> 'other' AND unnamed_frames = 0 AND attributed_by = 'stack'
GROUP BY executable_name, stack_id
HAVING sum(CASE WHEN executable_build_id = newest_build THEN 0 ELSE 1 END) = 0
ORDER BY gained_bytes DESC
LIMIT 20;
