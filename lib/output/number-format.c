// SPDX-License-Identifier: LGPL-2.1-or-later
/* Numbers for people: bytes, changes, counts, durations and wait statuses. */
#include <mmtrace/output.h>

#include <inttypes.h>
#include <sys/wait.h>

#include "base/vector.h"

static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))

static void format_with_sign(const char *sign, uint64_t bytes, char text[MMT_SIZE_TEXT])
{
	long double value = (long double)bytes;
	size_t unit = 0;
	int decimals;

	/* 1023.9996 would be printed as 1024: use 1.00 of the next unit. */
	while (unit + 1 < UNIT_COUNT && value >= (unit ? 1023.5L : 1024.0L)) {
		value /= 1024.0L;
		unit++;
	}
	/* Three or four significant digits. */
	decimals = value < 99.995L ? 2 : value < 999.95L ? 1 : 0;
	if (!unit)
		snprintf(text, MMT_SIZE_TEXT, "%s%" PRIu64 " B", sign, bytes);
	else
		snprintf(text, MMT_SIZE_TEXT, "%s%.*Lf %s", sign, decimals, value, units[unit]);
}

const char *mmt_format_bytes(uint64_t bytes, char text[MMT_SIZE_TEXT])
{
	if (bytes == MMT_BYTES_MAX)
		snprintf(text, MMT_SIZE_TEXT, "16 EiB or more");
	else
		format_with_sign("", bytes, text);
	return text;
}

const char *mmt_format_change(int64_t bytes, char text[MMT_SIZE_TEXT])
{
	format_with_sign(bytes < 0 ? "-" : bytes > 0 ? "+" : "", magnitude_of(bytes), text);
	return text;
}

const char *mmt_format_count(uint64_t count, char text[MMT_SIZE_TEXT])
{
	char digits[MMT_SIZE_TEXT];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *to = text;

	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return text;
}

const char *mmt_format_duration(uint64_t duration_ns, char text[MMT_SIZE_TEXT])
{
	uint64_t seconds = duration_ns / 1000000000;

	if (duration_ns < 1000)
		snprintf(text, MMT_SIZE_TEXT, "%" PRIu64 " ns", duration_ns);
	else if (duration_ns < 1000000)
		snprintf(text, MMT_SIZE_TEXT, "%" PRIu64 " us", duration_ns / 1000);
	else if (duration_ns < 1000000000)
		snprintf(text, MMT_SIZE_TEXT, "%" PRIu64 " ms", duration_ns / 1000000);
	else if (seconds < 120)
		snprintf(text, MMT_SIZE_TEXT, "%" PRIu64 ".%" PRIu64 " s", seconds, duration_ns / 100000000 % 10);
	else if (seconds < 7200)
		snprintf(text, MMT_SIZE_TEXT, "%" PRIu64 " min %" PRIu64 " s", seconds / 60, seconds % 60);
	else
		snprintf(text, MMT_SIZE_TEXT, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600, seconds / 60 % 60);
	return text;
}

const char *mmt_format_status(int status, char text[MMT_STATUS_TEXT])
{
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	const char *name = number ? sigabbrev_np(number) : NULL;

	if (name)
		snprintf(text, MMT_STATUS_TEXT, "was killed by SIG%s (%s)", name, sigdescr_np(number));
	else if (number)
		snprintf(text, MMT_STATUS_TEXT, "was killed by signal %d", number);
	else
		snprintf(text, MMT_STATUS_TEXT, "exited with status %d", WEXITSTATUS(status));
	return text;
}
