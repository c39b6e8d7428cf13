/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lattice that several ranks relax together. All sums of all ranks are made by one function of its framework, as in
 * larger codes: so a list of functions says that MPI_Allreduce takes long, but not for whom. Rank 0 writes a log before
 * one of the sums, and all others wait for it there. With -DMENDED, each rank writes its part of the log.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))
#define SITES 20000

static double field[SITES];
static int rank, ranks;

APART double sum_of_all(double mine)
{
	double all;
	MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

APART double sweep(int parity)
{
	double change = 0;
	for (int i = 1 + parity; i < SITES - 1; i += 2) {
		double before = field[i];
		field[i] = (field[i - 1] + field[i + 1]) / 2;
		change += fabs(field[i] - before);
	}
	return change;
}

APART double relax(void)
{
	double change = sum_of_all(sweep(0));
	return change + sum_of_all(sweep(1));
}

APART double energy(void)
{
	double mine = 0;
	for (int i = 0; i < SITES; i++)
		mine += field[i] * field[i];
	return sum_of_all(mine) / SITES;
}

#ifdef MENDED
#define PARTS ranks
#else
#define PARTS 1
#endif

APART void write_log(int step)
{
	static FILE *log;
	if (rank >= PARTS)
		return;
	if (!log)
		log = fopen("/dev/null", "w");
	for (int i = rank; i < SITES; i += PARTS)
		fprintf(log, "%d %d %.12g\n", step, i, field[i]);
}

APART double measure(int step)
{
	write_log(step);
	return sum_of_all(field[rank]) / ranks;
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 100;
	double result = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 0; i < SITES; i++)
		field[i] = (i * 7919 + rank) % 1000;
	for (int step = 0; step < steps; step++) {
		for (int i = 0; i < 20; i++)
			result = relax();
		result += energy();
		if (step % 2 == 0)
			result += measure(step);
	}
	if (!rank)
		printf("%.6f\n", result);
	MPI_Finalize();
	return 0;
}
