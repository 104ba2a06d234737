// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/mapping-query.h"

#include <errno.h>
#include <sys/ioctl.h>

/* From linux/fs.h of Linux 6.11, for older headers. */
#define QUERY_IS_EXECUTABLE 4ull
#define QUERY_THIS_OR_NEXT 16ull

struct query {
	uint64_t size, flags, address;
	uint64_t start, end, mapping_flags, page_bytes, file_offset, inode;
	uint32_t device_major, device_minor, name_size, build_id_size;
	uint64_t name_address, build_id_address;
};

#define QUERY_IOCTL _IOWR('f', 17, struct query)

enum mapped_kind mapping_query(int maps, uint64_t address, uint64_t *end_ret)
{
	struct query query = {.size = sizeof(query), .flags = QUERY_THIS_OR_NEXT, .address = address};

	*end_ret = UINT64_MAX;
	if (ioctl(maps, QUERY_IOCTL, &query) < 0) {
		if (errno == ENOENT)
			return MAPPED_NOTHING;
		return errno == ENOTTY || errno == EINVAL ? MAPPED_UNTOLD : MAPPED_DATA;
	}
	*end_ret = query.start > address ? query.start : query.end;
	if (query.start > address)
		return MAPPED_NOTHING;
	return query.mapping_flags & QUERY_IS_EXECUTABLE ? MAPPED_CODE : MAPPED_DATA;
}
