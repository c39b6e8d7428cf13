# SPDX-License-Identifier: Apache-2.0
words <- commandArgs(trailingOnly = TRUE)
end <- Sys.time() + if (length(words)) as.numeric(words[1]) else 5
tree <- function(n) if (n == 0) 1 else tree(n - 1) + tree(n - 1) + 1
set.seed(1)
sum <- 0
while (Sys.time() < end) {
	m <- matrix(runif(10000), 100)
	sum <- sum + sum(solve(m) %*% m) + tree(8) + nchar(paste(sort(as.character(1:500)), collapse = ","))
	tryCatch(stop("the bottom"), error = function(e) 0)
}
print(sum > 0)
