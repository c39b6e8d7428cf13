// SPDX-License-Identifier: Apache-2.0
// panics SECONDS: panics that are caught, through frames with destructors.
use std::panic;
use std::time::{Duration, Instant};

struct Guard<'a>(&'a std::cell::Cell<u64>);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[inline(never)]
fn deep(n: u32, count: &std::cell::Cell<u64>) -> u32 {
    let _held = Guard(count);
    if n == 0 {
        panic!("the bottom");
    }
    deep(n - 1, count) + 1
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(5);
    let end = Instant::now() + Duration::from_secs(seconds);
    panic::set_hook(Box::new(|_| {}));
    let count = std::cell::Cell::new(0);
    let mut caught = 0u64;
    while Instant::now() < end {
        for i in 0..200 {
            caught += panic::catch_unwind(panic::AssertUnwindSafe(|| deep(i % 10, &count))).is_err() as u64;
        }
    }
    println!("{} {}", caught, count.get());
}
