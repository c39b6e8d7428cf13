// SPDX-License-Identifier: Apache-2.0
// Panics that are caught, behind values that must be dropped on the way.
use std::collections::BTreeMap;
use std::panic::catch_unwind;

struct Counted<'a>(&'a str, Box<u32>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if *self.1 > 3 {
            println!("{} goes with {}", self.0, self.1);
        }
    }
}

#[inline(never)]
fn divides(all: &[u32], by: u32) -> Vec<u32> {
    let first = Counted("first", Box::new(by));
    let mut out = Vec::new();
    for &one in all {
        let second = Counted("second", Box::new(one));
        out.push(*second.1 / (*first.1 - one)); // may overflow, or divide by 0
    }
    out
}

#[inline(never)]
fn sorts(words: &str) -> BTreeMap<String, usize> {
    let mut map = BTreeMap::new();
    for word in words.split(' ') {
        *map.entry(word.to_string()).or_insert(0) += word.parse::<usize>().unwrap_or(1);
    }
    map
}

fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    for by in 0..9 {
        match catch_unwind(|| divides(&[1, 2, 3, 4], by)) {
            Ok(all) => println!("{by}: {all:?}"),
            Err(_) => println!("{by} fails"),
        }
    }
    println!("{:?}", sorts("7 one two 12 three one 1"));
}
