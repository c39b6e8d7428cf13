// SPDX-License-Identifier: Apache-2.0
import java.util.*;

public class Work {
	static int tree(int n) { return n == 0 ? 1 : tree(n - 1) + tree(n - 1) + 1; }

	static int words(int seed) {
		Map<String, Integer> map = new HashMap<>();
		for (int i = 0; i < 2000; i++)
			map.merge(Integer.toString((i * seed) & 0x3ff), 1, Integer::sum);
		List<String> keys = new ArrayList<>(map.keySet());
		Collections.sort(keys);
		return keys.size();
	}

	static int caught(int n) {
		try {
			if (n == 0) throw new IllegalStateException("the bottom");
			return caught(n - 1) + 1;
		} catch (IllegalStateException e) {
			if (n < 5) throw e;
			return n;
		}
	}

	public static void main(String[] args) {
		long end = System.nanoTime() + Long.parseLong(args.length > 0 ? args[0] : "5") * 1000000000L, sum = 0;
		for (int n = 1; System.nanoTime() < end; n++)
			sum += tree(14) + words(n) + caught(9);
		System.out.println(sum > 0);
	}
}
