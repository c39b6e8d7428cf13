-- SPDX-License-Identifier: Apache-2.0
local ends = os.time() + (tonumber(arg[1]) or 5)

local function tree(n)
	if n == 0 then return 1 end
	return tree(n - 1) + tree(n - 1) + 1
end

local function words(seed)
	local parts = {}
	for i = 1, 300 do
		parts[#parts + 1] = tostring(i * seed % 1009)
	end
	table.sort(parts)
	return #table.concat(parts, ","):gsub("%d+", function(d) return #d end)
end

local sum, n = 0, 0
while os.time() < ends do
	n = n + 1
	sum = sum + tree(14) + words(n)
	local co = coroutine.wrap(function() for i = 1, 20 do coroutine.yield(i) end end)
	for _ = 1, 20 do sum = sum + co() end
end
print(sum > 0)
