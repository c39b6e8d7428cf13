// SPDX-License-Identifier: Apache-2.0
// Threads wait for a lock of Rust's own, which is made on the futex system call. Prints how long victim() waited, in microseconds.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[inline(never)]
#[no_mangle]
fn guilty(lock: &Mutex<u64>) {
    let mut inside = lock.lock().unwrap();
    thread::sleep(Duration::from_millis(4));
    *inside += 1;
    drop(inside);
    thread::sleep(Duration::from_micros(500));
}

#[inline(never)]
#[no_mangle]
fn innocent(lock: &Mutex<u64>) {
    thread::sleep(Duration::from_micros(300));
    *lock.lock().unwrap() += 1;
}

#[inline(never)]
#[no_mangle]
fn victim(lock: &Mutex<u64>) -> u64 {
    let start = Instant::now();
    let mut inside = lock.lock().unwrap();
    let waited = start.elapsed().as_micros() as u64;
    *inside += 1;
    drop(inside);
    thread::sleep(Duration::from_micros(300));
    waited
}

fn main() {
    let lock = Arc::new(Mutex::new(0u64));
    let stop = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    for part in 0..3 {
        let (lock, stop) = (lock.clone(), stop.clone());
        threads.push(thread::spawn(move || {
            let mut waited = 0;
            while !stop.load(Ordering::Relaxed) {
                match part {
                    0 => guilty(&lock),
                    1 => innocent(&lock),
                    _ => waited += victim(&lock),
                }
            }
            waited
        }));
    }
    thread::sleep(Duration::from_millis(400));
    stop.store(true, Ordering::Relaxed);
    let waited: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    println!("{}", waited);
}
