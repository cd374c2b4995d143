/*
 * Prints what one read of CLOCK_MONOTONIC costs, in ns: the time that a batch of reads takes by that same clock.
 * Shares no code with pg_timing, whose figure is held against it, but the C library: where each instruction is
 * emulated, another library's few instructions more or less are a tenth of the figure. For the same reason each
 * reading is worked out and kept, as whoever reads a clock does.
 *
 * The median of many short batches: those in which the machine was held up do not count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCHES 200
#define READS 1000

static long long
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int
by_size(const void *a, const void *b)
{
	long long x = *(const long long *) a, y = *(const long long *) b;

	return (x > y) - (x < y);
}

int
main(void)
{
	static volatile long long readings[READS + 1];
	long long batches[BATCHES];

	for (int batch = 0; batch < BATCHES; batch++)
	{
		for (int i = 0; i <= READS; i++)
			readings[i] = now();
		batches[batch] = readings[READS] - readings[0];
	}
	qsort(batches, BATCHES, sizeof(batches[0]), by_size);
	printf("%.2f\n", (double) batches[BATCHES / 2] / READS);
	return 0;
}
