// SPDX-License-Identifier: LGPL-2.1-or-later
/* The service, the container and the pod of a process, from the path of its control group. */
#include <ctype.h>

#include "output/export/export-report.h"

#define SERVICE ".service"
#define POD_DASHES 36 /* length of "1b4e28ba-2fa1-11d2-883f-0016d3cca427"; systemd's names have underscores instead */
#define POD_DIGITS 32 /* of a static pod */

static bool is_digit(char byte)
{
	return isdigit((unsigned char)byte) || (byte >= 'a' && byte <= 'f');
}

/* The container's ID: 64 digits. Returns whether there is one. */
static bool find_container(const char *name, size_t length, char container[EXPORT_CONTAINER_BYTES])
{
	for (size_t first = 0, end; first < length; first = end + 1) {
		for (end = first; end < length && is_digit(name[end]); end++)
			;
		if (end - first != EXPORT_CONTAINER_BYTES - 1)
			continue;
		snprintf(container, EXPORT_CONTAINER_BYTES, "%.*s", (int)(end - first), name + first);
		return true;
	}
	return false;
}

/* What follows "pod" at the start of the name or after a dash, up to its end, ".slice" or, in names of containerd, ":".
 */
static void find_pod(const char *name, size_t length, char pod[EXPORT_POD_BYTES])
{
	const char *uid = NULL;
	char text[EXPORT_POD_BYTES];
	size_t count = 0, dashes = 0;

	for (size_t i = 0; i + strlen("pod") < length && !uid; i++)
		if (!strncmp(name + i, "pod", strlen("pod")) && (!i || name[i - 1] == '-') &&
		    is_digit(name[i + strlen("pod")]))
			uid = name + i + strlen("pod");
	for (; uid && uid + count < name + length && count <= POD_DASHES; count++) {
		bool dash = count == 8 || count == 13 || count == 18 || count == 23;

		if (dash && (uid[count] == '-' || uid[count] == '_'))
			dashes++;
		else if (!is_digit(uid[count]))
			break;
		text[count < POD_DASHES ? count : POD_DASHES] = uid[count] == '_' ? '-' : uid[count];
	}
	if (dashes == 4 ? count == POD_DASHES : !dashes && count == POD_DIGITS)
		snprintf(pod, EXPORT_POD_BYTES, "%.*s", (int)count, text);
}

void export_group_labels(const char *path, struct export_group_labels *labels)
{
	size_t length;

	*labels = (struct export_group_labels){0};
	for (const char *name = path; *name; name += length + (name[length] == '/')) {
		size_t stem = strcspn(name, "@/");

		length = strcspn(name, "/");
		find_pod(name, length, labels->pod);
		/* A service around a container is that of its engine, or of the user. */
		if (find_container(name, length, labels->container))
			*labels->service = '\0';
		else if (length > strlen(SERVICE) && length <= NAME_MAX && strncmp(name, "run-", 4) != 0 &&
			 !memcmp(name + length - strlen(SERVICE), SERVICE, strlen(SERVICE)))
			snprintf(labels->service, sizeof(labels->service), "%.*s%s",
				 (int)(stem < length ? stem + 1 : length), name, stem < length ? SERVICE : "");
	}
}
