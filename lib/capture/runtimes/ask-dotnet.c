// SPDX-License-Identifier: LGPL-2.1-or-later
/* Asks .NET 8 and later for a perf map: the commands EnablePerfMap and DisablePerfMap of its diagnostics socket. */
#include <fcntl.h>

#include "capture/runtimes/ask-runtime.h"
#include "capture/procfs/blocking-calls.h"
#include "capture/procfs/proc.h"

#define WAIT_NS 5000000000ULL
#define MAGIC "DOTNET_IPC_V1"
#define HEADER_BYTES 20
#define COMMAND_SET_PROCESS 0x04
#define COMMAND_ENABLE_PERF_MAP 0x05
#define COMMAND_DISABLE_PERF_MAP 0x06
#define COMMAND_SET_SERVER 0xff
#define RESPONSE_OK 0x00
#define TYPE_PERF_MAP 3 /* a perf map without a jitdump */
#define UNKNOWN_COMMAND 0x80131385u

static enum helper_answer exchange(int fd, bool enable, char refusal[HELPER_REFUSAL_BYTES])
{
	uint8_t response[HEADER_BYTES + sizeof(uint32_t)];
	CLEANUP(buffer) struct buffer request;
	uint32_t set, command, result;
	size_t received = 0;
	struct bytes bytes;
	const char *magic;

	buffer_init(&request, HEADER_BYTES + sizeof(uint32_t));
	buffer_put(&request, MAGIC, sizeof(MAGIC));
	buffer_put_u16(&request, HEADER_BYTES + (enable ? sizeof(uint32_t) : 0));
	buffer_put_u8(&request, COMMAND_SET_PROCESS);
	buffer_put_u8(&request, enable ? COMMAND_ENABLE_PERF_MAP : COMMAND_DISABLE_PERF_MAP);
	buffer_put_u16(&request, 0);
	if (enable)
		buffer_put_u32(&request, TYPE_PERF_MAP);
	if (!request.error)
		received = target_socket_exchange(fd, request.data, request.size, response, sizeof(response), WAIT_NS);
	bytes = bytes_over(response, received);
	magic = bytes_take(&bytes, sizeof(MAGIC));
	bytes_u16(&bytes);
	set = bytes_u8(&bytes);
	command = bytes_u8(&bytes);
	bytes_u16(&bytes);
	result = bytes_u32(&bytes);
	if (!bytes_ok(&bytes) || memcmp(magic, MAGIC, sizeof(MAGIC)) || set != COMMAND_SET_SERVER) {
		if (received)
			snprintf(refusal, HELPER_REFUSAL_BYTES,
				 "its diagnostics socket sent an answer of unknown format");
		else
			snprintf(refusal, HELPER_REFUSAL_BYTES, "no answer within %llu s", WAIT_NS / 1000000000);
		return HELPER_UNANSWERED;
	}
	if (command == RESPONSE_OK && !result)
		return HELPER_AGREED;
	if (result == UNKNOWN_COMMAND)
		snprintf(refusal, HELPER_REFUSAL_BYTES,
			 "its runtime does not support the command, which needs .NET 8 or later");
	else
		snprintf(refusal, HELPER_REFUSAL_BYTES, "its runtime refuses with status 0x%08x", result);
	return HELPER_REFUSED;
}

static enum helper_answer ask(const struct helper_target *target, char refusal[HELPER_REFUSAL_BYTES])
{
	/* The directory of the socket: the process's TMPDIR, or /tmp. */
	CLEANUP(free) char *path = proc_environment(target->pid, "TMPDIR");
	CLEANUP(close) int directory = path && path[0] == '/' ? target_directory_open(target->pid, path) : -1;
	CLEANUP(closedir) DIR *listing = NULL;
	CLEANUP(close) int fd = -1;
	const struct dirent *entry;
	const char *refused;
	char prefix[64];
	uid_t owner;

	if (directory < 0)
		directory = target_directory_open(target->pid, "/tmp");
	refused = target_become_user(target->pid, &owner);
	if (refused) {
		snprintf(refusal, HELPER_REFUSAL_BYTES, "%s", refused);
		return HELPER_REFUSED;
	}
	/* An earlier process with the same PID may have left "dotnet-diagnostic-PID-KEY-socket" behind. */
	snprintf(prefix, sizeof(prefix), "dotnet-diagnostic-%d-", (int)target->namespace_pid);
	listing = directory >= 0 ? fdopendir(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) : NULL;
	for (unsigned i = 0; listing && fd < 0 && i < LIMIT_SOCKET_ENTRIES && (entry = readdir(listing)); i++) {
		if (!strncmp(entry->d_name, prefix, strlen(prefix)) && strstr(entry->d_name, "-socket"))
			fd = target_socket_connect(target->pid, owner, directory, entry->d_name);
	}
	if (fd >= 0)
		return exchange(fd, !target->stop, refusal);
	snprintf(refusal, HELPER_REFUSAL_BYTES,
		 "cannot connect to its diagnostics socket, which DOTNET_EnableDiagnostics=0 disables");
	return HELPER_REFUSED;
}

const struct askable_runtime runtime_dotnet = {
    .name = ".NET",
    .module = "libcoreclr.so",
    .code = "memfd:doublemapper",
    .keeps_writing = true,
    .ask = ask,
};

/* In a program published as a single file; without W^X its JIT code is anonymous. If it is no .NET, it has no socket.
 */
const struct askable_runtime runtime_dotnet_bundled = {
    .name = ".NET",
    .is_guess = true,
    .keeps_writing = true,
    .ask = ask,
};
