# SPDX-License-Identifier: Apache-2.0
use strict;
use warnings;
my $end = time + ($ARGV[0] // 5);

sub tree { my $n = shift; return $n == 0 ? 1 : tree($n - 1) + tree($n - 1) + 1; }

my ($sum, $n) = (0, 0);
while (time < $end) {
	$n++;
	my %seen;
	$seen{ $_ * $n % 1009 }++ for 1 .. 500;
	my $text = join ",", sort keys %seen;
	$text =~ s/(\d+),(\d+)/$2;$1/g;
	eval { die "the bottom" };
	$sum += tree(10) + length $text;
}
print $sum > 0, "\n";
