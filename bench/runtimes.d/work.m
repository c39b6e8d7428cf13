% SPDX-License-Identifier: Apache-2.0
1;
function r = tree (n)
  if (n == 0) r = 1; else r = tree (n - 1) + tree (n - 1) + 1; end
end
words = argv ();
stop = time () + str2double (words{end});
total = 0;
while (time () < stop)
  m = rand (80);
  total += sum (sum (m \ eye (80))) + tree (7) + numel (regexprep (num2str (1:100), '(\d+)', '<$1>'));
end
disp (isfinite (total));
