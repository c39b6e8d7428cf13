# SPDX-License-Identifier: Apache-2.0
finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + (ARGV[0] || 5).to_i

def tree(n)
  n.zero? ? 1 : tree(n - 1) + tree(n - 1) + 1
end

def words(seed)
  text = (1..300).map { |i| (i * seed % 1009).to_s }.sort.join(",")
  text.gsub(/(\d+),(\d+)/) { "#{$2};#{$1}" }.size
end

def caught(n)
  raise "the bottom" if n.zero?
  caught(n - 1)
rescue RuntimeError
  raise if n < 5
  n
end

sum = n = 0
while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
  n += 1
  fiber = Fiber.new { 10.times { |i| Fiber.yield i }; 0 }
  10.times { sum += fiber.resume }
  sum += tree(12) + words(n) + caught(9)
end
puts sum > 0
