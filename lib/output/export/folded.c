// SPDX-License-Identifier: LGPL-2.1-or-later
/* Folded stacks, as flamegraph.pl reads them: "process;main;leak 4096". Semicolons separate the frames, so those in
 * names become colons. Stacks without weight have no line: viewers reject a weight of 0. */
#include <inttypes.h>

#include "output/escape.h"
#include "output/export/export-report.h"

struct mmt_error *export_folded(const struct export *export, FILE *stream)
{
	size_t position = 0, first;
	struct mmt_part sum;

	while (export_next(export->report, &position, &first, &sum)) {
		uint64_t weight = export_weight(&sum, export->weight);
		struct export_stack stack;

		if (!weight)
			continue;
		escape_write(export_process_name(&export->report->processes[sum.process], stack.text), ESCAPE_FOR_STACK,
			     stream);
		export_stack_begin(&stack, &export->report->rows[sum.row]);
		while (export_stack_next(&stack)) {
			putc(';', stream);
			escape_write(stack.name, ESCAPE_FOR_STACK, stream);
		}
		fprintf(stream, " %" PRIu64 "\n", weight);
	}
	return NULL;
}
