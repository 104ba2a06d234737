// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * silent-files DIRECTORY: mounts a FUSE file system there whose only file, "file", can be opened and mapped. It reads
 * every other request, such as that for the file's contents, for another name, or when the file is closed, and never
 * answers it, so that no signal ends the call. Prints "ready" and runs until it is killed, which ends all calls, or for
 * ten minutes: whoever looks at a stuck process is stuck, too. Needs no library, and no program of FUSE.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NODE 2
#define FILE_BYTES (1u << 20)
#define VALID_SECONDS 1000000
#define LIFE_SECONDS 600

static void fill(struct fuse_attr *attributes, uint64_t node)
{
	memset(attributes, 0, sizeof(*attributes));
	attributes->ino = node;
	attributes->mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0777;
	attributes->nlink = 1;
	attributes->size = node == FILE_NODE ? FILE_BYTES : 0;
	attributes->blksize = 4096;
}

static void answer(int fd, uint64_t request, const void *content, size_t size)
{
	uint8_t bytes[1024];
	const struct fuse_out_header header = {.len = (uint32_t)(sizeof(header) + size), .unique = request};

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), content, size);
	if (write(fd, bytes, sizeof(header) + size) < 0)
		perror("silent-files: /dev/fuse");
}

static void serve(int fd, const struct fuse_in_header *request, const char *argument)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
	struct fuse_attr_out attributes = {.attr_valid = VALID_SECONDS};
	struct fuse_entry_out entry = {.nodeid = FILE_NODE, .entry_valid = VALID_SECONDS, .attr_valid = VALID_SECONDS};
	const struct fuse_open_out opened = {.open_flags = FOPEN_KEEP_CACHE};

	switch (request->opcode) {
	case FUSE_INIT:
		answer(fd, request->unique, &init, sizeof(init));
		break;
	case FUSE_GETATTR:
		fill(&attributes.attr, request->nodeid);
		answer(fd, request->unique, &attributes, sizeof(attributes));
		break;
	case FUSE_LOOKUP:
		fill(&entry.attr, FILE_NODE);
		if (!strcmp(argument, "file"))
			answer(fd, request->unique, &entry, sizeof(entry));
		break;
	case FUSE_OPEN:
		answer(fd, request->unique, &opened, sizeof(opened));
		break;
	default:
		break;
	}
}

int main(int argc, char **argv)
{
	_Alignas(8) static char request[1 << 20];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];

	if (argc != 2 || fd < 0) {
		fprintf(stderr, "silent-files: /dev/fuse: %s\n", strerror(errno));
		return 2;
	}
	snprintf(options, sizeof(options), "fd=%d,rootmode=40777,user_id=0,group_id=0,allow_other", fd);
	if (mount("silent-files", argv[1], "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		fprintf(stderr, "silent-files: %s: %s\n", argv[1], strerror(errno));
		return 2;
	}
	(void)alarm(LIFE_SECONDS);
	puts("ready");
	fflush(stdout);
	for (;;) {
		ssize_t size = read(fd, request, sizeof(request));

		if (size < (ssize_t)sizeof(struct fuse_in_header)) {
			if (size < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN))
				continue;
			return 0; /* unmounted */
		}
		serve(fd, (const struct fuse_in_header *)(const void *)request,
		      request + sizeof(struct fuse_in_header));
	}
}
