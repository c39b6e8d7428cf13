#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Forks, pipes, and an alarm that dies out of a loop.
use strict;
use warnings;
my $scale = shift // 100;
my $sum = 0;
for my $i (1 .. $scale) {
	my $pid = fork();
	if (!$pid) { my $x = 0; $x += $_ for 1 .. 2000; exit($i % 50); }
	waitpid($pid, 0);
	$sum += $? >> 8;
}
print "sum $sum\n";
my $alarms = 0;
for (1 .. 3) {
	eval {
		local $SIG{ALRM} = sub { die "alarm\n" };
		alarm 1;
		my $x = 0;
		while (1) { $x++ }
	};
	$alarms++ if $@ eq "alarm\n";
	last if $scale < 50;
}
print "alarms ", ($alarms > 0 ? "yes" : "no"), "\n";
my $text = `echo hello`;
print $text;
my @sorted = sort { $a <=> $b } map { ($_ * 7919) % 10007 } 1 .. 20000;
print "$sorted[0] $sorted[-1]\n";
exit 6;
