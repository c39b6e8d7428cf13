/* SPDX-License-Identifier: Apache-2.0 */
/* ranks SECONDS: work, and sums over all ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static double work(int rank, int n)
{
	double sum = 0;
	for (int i = 1; i < 200000 * (rank + 1); i++)
		sum += 1.0 / (i + n);
	return sum;
}

int main(int argc, char **argv)
{
	int rank, go = 1;
	double sum = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	double end = MPI_Wtime() + (argc > 1 ? atoi(argv[1]) : 5);
	for (int n = 1; go; n++) {
		double mine = work(rank, n), all;
		MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		sum += all;
		go = MPI_Wtime() < end;
		MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (!rank)
		printf("%g\n", sum);
	MPI_Finalize();
	return 0;
}
