<?php
// SPDX-License-Identifier: Apache-2.0
// Most of the time is in PCRE, whose code is made at run time.
$end = time() + (int)($argv[1] ?? 5);
$text = '';
for ($i = 0; $i < 3000; $i++)
	$text .= ($i * 7919 % 10007) . ' user' . $i . '@host' . ($i % 17) . ".example.org,\n";
$sum = 0;
while (time() < $end) {
	$sum += preg_match_all('/\b([a-z]+\d+)@((?:[a-z0-9]+\.)+org)\b/', $text, $found);
	$sum += strlen(preg_replace_callback('/(\d+) u/', fn($m) => $m[1] % 7, $text));
	usort($found[1], fn($a, $b) => strcmp($a, $b));
}
echo $sum > 0 ? "yes\n" : "no\n";
