// SPDX-License-Identifier: Apache-2.0
// words SECONDS: maps, strings, iterators, a thread.
use std::collections::HashMap;
use std::time::{Duration, Instant};

#[inline(never)]
fn count(seed: u64) -> usize {
    let mut words: HashMap<String, u64> = HashMap::new();
    let mut state = seed;
    for _ in 0..2000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *words.entry(format!("{:x}", state >> 54)).or_insert(0) += 1;
    }
    let mut sorted: Vec<_> = words.into_iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    sorted.iter().map(|(word, n)| word.len() * *n as usize).sum()
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(5);
    let end = Instant::now() + Duration::from_secs(seconds);
    let worker = std::thread::spawn(move || {
        let (mut sum, mut n) = (0, 0);
        while Instant::now() < end {
            n += 1;
            sum += count(n);
        }
        sum
    });
    println!("{}", worker.join().unwrap());
}
