// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmtrace check: prints what the library found out about this machine. */
#include <mmtrace/machine.h>
#include <mmtrace/output.h>
#include <string.h>

#include "cli/message.h"
#include "cli/options.h"

#define STATE_COLUMNS 8
#define SUBJECT_COLUMNS 16

static void print_remedy(const struct mmt_check_item *item, int indent)
{
	printf("%s\n", item->remedy);
	if (item->remedy_effect)
		printf("%*s(%s)\n", indent, "", item->remedy_effect);
}

int cmd_check(const struct command *command, int argc, char **argv)
{
	static const char *const states[] = {
	    [MMT_CHECK_GOOD] = "ok",
	    [MMT_CHECK_LIMITED] = "limited",
	    [MMT_CHECK_MISSING] = "MISSING",
	};
	const struct option_entry table[] = {OPTIONS_END};
	int first = 0, status = options_parse(command, table, OPTIONS_ANYWHERE, argc, argv, &first);
	const struct mmt_check_item *missing = NULL;
	const char *what = "all processes";
	struct mmt_check *check;
	struct mmt_error *error;

	if (status >= 0)
		return status;
	if (argv[first])
		return message_usage(command, "unexpected argument '%s'", argv[first]);
	error = mmt_check_create(&check);
	if (error)
		return message_error(command, error);
	for (size_t i = 0; i < check->item_count; i++) {
		const struct mmt_check_item *item = &check->items[i];

		printf("%-*s %-*s ", STATE_COLUMNS, states[item->state], SUBJECT_COLUMNS, item->subject);
		mmt_write_escaped(item->finding, stdout);
		putchar('\n');
		if (item->state == MMT_CHECK_MISSING && !missing)
			missing = item;
		if (item->state != MMT_CHECK_GOOD &&
		    (!strcmp(item->subject, "permissions") || !strcmp(item->subject, "other users")))
			what = "your own processes";
		/* The remedy of the previous item is not repeated. */
		if (!item->remedy || (i && item->remedy == check->items[i - 1].remedy))
			continue;
		printf("%*s fix: ", STATE_COLUMNS, "");
		print_remedy(item, STATE_COLUMNS + 6);
	}
	/* What this means for the user, with the first command that helps. */
	if (!missing) {
		printf("\nyou can record %s\n", what);
	} else if (missing->remedy) {
		fputs("\nyou cannot record yet: ", stdout);
		print_remedy(missing, 0);
	} else {
		printf("\nyou cannot record yet: %s\n", missing->finding);
	}
	mmt_check_destroy(check);
	return missing ? EXIT_EXCEEDED : EXIT_OK;
}
