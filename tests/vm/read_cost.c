/*
 * Prints the cost of one read of CLOCK_MONOTONIC, in ns: the duration of a batch of reads by that same clock, divided by
 * the number of reads. It is the median of many short batches, so interrupted batches have no effect.
 *
 * The tests compare pg_timing's figure with this one. The two programs share no code except the C library, because in an
 * emulated machine a few more instructions change the figure by a tenth. For the same reason each reading is converted
 * to ns and stored, as other programs do.
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
