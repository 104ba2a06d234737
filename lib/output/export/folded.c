// SPDX-License-Identifier: LGPL-2.1-or-later
/* Folded stacks, as flamegraph.pl reads them: "process;main;leak 4096". Semicolons separate the frames, so those in
 * names become colons. Stacks without weight have no line: viewers reject a weight of 0. */
#include <inttypes.h>

#include "output/escape.h"
#include "output/export/export-report.h"

static void put_name(const char *name, FILE *stream)
{
	struct escape_piece piece;

	while (escape_next(&name, ESCAPE_FOR_TERMINAL, &piece))
		fwrite(piece.size == 1 && *piece.text == ';' ? ":" : piece.text, 1, piece.size, stream);
}

struct mmt_error *export_folded(const struct export *export, FILE *stream)
{
	size_t position = 0, first;
	struct mmt_part sum;

	while (export_next(export->report, &position, &first, &sum)) {
		uint64_t weight = export_weight(&sum, export->weight);
		struct export_stack stack;

		if (!weight)
			continue;
		put_name(export_process_name(&export->report->processes[sum.process], stack.text), stream);
		export_stack_begin(&stack, &export->report->rows[sum.row]);
		while (export_stack_next(&stack)) {
			putc(';', stream);
			put_name(stack.name, stream);
		}
		fprintf(stream, " %" PRIu64 "\n", weight);
	}
	return NULL;
}
