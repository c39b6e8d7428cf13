# SPDX-License-Identifier: Apache-2.0
set end [expr {[clock seconds] + ([llength $argv] ? [lindex $argv 0] : 5)}]
proc tree {n} {
	if {$n == 0} { return 1 }
	return [expr {[tree [expr {$n - 1}]] + [tree [expr {$n - 1}]] + 1}]
}
set sum 0
set n 0
while {[clock seconds] < $end} {
	incr n
	set list {}
	for {set i 0} {$i < 300} {incr i} { lappend list [expr {$i * $n % 1009}] }
	incr sum [string length [regsub -all {(\d+) (\d+)} [join [lsort $list] " "] {\2;\1}]]
	catch {error "the bottom"}
	incr sum [tree 9]
}
puts [expr {$sum > 0}]
