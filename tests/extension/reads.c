/*
 * A library for LD_PRELOAD that throttles a server's disk: each read of a page or more takes 2 ms longer.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE 8192

static void
wait_for_disk(ssize_t read)
{
	if (read >= PAGE)
		nanosleep(&(struct timespec) {0, 2000000}, NULL);
}

ssize_t
pread(int file, void *buffer, size_t size, off_t offset)
{
	static ssize_t (*next)(int, void *, size_t, off_t);
	ssize_t		read;

	if (next == NULL)
		next = (ssize_t (*)(int, void *, size_t, off_t)) dlsym(RTLD_NEXT, "pread");
	read = next(file, buffer, size, offset);
	wait_for_disk(read);
	return read;
}

ssize_t
preadv(int file, const struct iovec *parts, int count, off_t offset)
{
	static ssize_t (*next)(int, const struct iovec *, int, off_t);
	ssize_t		read;

	if (next == NULL)
		next = (ssize_t (*)(int, const struct iovec *, int, off_t)) dlsym(RTLD_NEXT, "preadv");
	read = next(file, parts, count, offset);
	wait_for_disk(read);
	return read;
}

/* The same functions, under the names of a server that was built for large files. */
ssize_t		pread64(int, void *, size_t, off_t) __attribute__((alias("pread")));
ssize_t		preadv64(int, const struct iovec *, int, off_t) __attribute__((alias("preadv")));
