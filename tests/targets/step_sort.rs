// SPDX-License-Identifier: Apache-2.0
// A Rust program for the stepping test: closures, sorting, maps, a caught panic.
use std::collections::BTreeMap;

#[inline(never)]
fn descend(depth: u32, words: &mut Vec<String>) -> u32 {
    words.push(format!("{:04}", (depth * 7919) % 101));
    if depth == 0 {
        words.sort_by(|a, b| b.cmp(a));
        return words.len() as u32;
    }
    descend(depth - 1, words) + 1
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(20);
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    std::panic::set_hook(Box::new(|_| {}));
    for round in 0..rounds {
        let mut words = Vec::new();
        descend(round % 30, &mut words);
        for word in words {
            *seen.entry(word).or_insert(0) += 1;
        }
        let _ = std::panic::catch_unwind(|| if round % 4 == 0 { panic!("expected") });
    }
    println!("{} words", seen.len());
}
