// SPDX-License-Identifier: Apache-2.0
// Template code for bench/structure: almost all of it is inlined.
#include <Eigen/Dense>
#include <Eigen/Sparse>

using Eigen::MatrixXd;
using Eigen::VectorXd;

double solve_dense(int n)
{
	MatrixXd a = MatrixXd::Random(n, n);
	VectorXd b = VectorXd::Random(n);
	VectorXd x = a.partialPivLu().solve(b);
	VectorXd y = a.householderQr().solve(b);

	return (x - y).norm() + (a * a.transpose()).trace();
}

double eigenvalues(int n)
{
	MatrixXd a = MatrixXd::Random(n, n);
	Eigen::SelfAdjointEigenSolver<MatrixXd> solver(a + a.transpose());

	return solver.eigenvalues().sum();
}

double solve_sparse(int n)
{
	Eigen::SparseMatrix<double> a(n, n);

	for (int i = 0; i < n; i++) {
		a.insert(i, i) = 4;
		if (i)
			a.insert(i, i - 1) = -1;
	}
	Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> solver(a);
	return solver.solve(VectorXd::Ones(n)).sum();
}
