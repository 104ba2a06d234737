/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For LD_PRELOAD: the program sees a kernel without what was added after Linux 5.10 and mmtrace uses if it is there. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_LOST (1ULL << 4) /* PERF_FORMAT_LOST, Linux 6.0 */
#define FIRST_LATER_CALL 441  /* after process_madvise(), Linux 5.10 */
#define LAST_LATER_CALL 600
#define IS_OF_PROC(request) (_IOC_TYPE(request) == 'f' && _IOC_NR(request) >= 16) /* PAGEMAP_SCAN */

typedef long (*syscall_function)(long number, ...);
typedef int (*ioctl_function)(int fd, unsigned long request, ...);

static int is_later(long number, const struct perf_event_attr *attribute)
{
	if (number == SYS_perf_event_open)
		return attribute->read_format & READ_LOST || attribute->inherit_thread ? EINVAL : 0;
	return number >= FIRST_LATER_CALL && number <= LAST_LATER_CALL ? ENOSYS : 0;
}

__attribute__((visibility("default"))) long syscall(long number, ...)
{
	syscall_function real;
	long arguments[6];
	va_list list;
	int refusal;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	refusal = is_later(number, (const struct perf_event_attr *)arguments[0]);
	if (refusal) {
		errno = refusal;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	ioctl_function real;
	va_list list;
	void *argument;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if (IS_OF_PROC(request)) {
		errno = ENOTTY;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "ioctl");
	return real(fd, request, argument);
}
