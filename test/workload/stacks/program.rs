// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks mapped by Rust: by mmap itself and by vectors so large that the allocator maps them, through generics,
// closures, trait objects, a panic that is caught, and threads. program ROUNDS
// It waits for a line before it starts and before it exits.
use std::os::raw::{c_int, c_long, c_void};

extern "C" {
	fn mmap(address: *mut c_void, bytes: usize, protection: c_int, flags: c_int, file: c_int, offset: c_long)
		-> *mut c_void;
}

// Opaque to the compiler, so that calls before it keep their frames.
#[inline(never)]
fn black_box<Value>(value: Value) -> Value {
	let kept = std::mem::ManuallyDrop::new(value);
	unsafe { std::ptr::read_volatile(&*kept) }
}

const BLOCK: usize = 4096;
const LARGE_BLOCK: usize = 256 << 10;

#[inline(never)]
fn touch() {
	unsafe { std::ptr::read_volatile(&0_u8) };
}

#[inline(never)]
fn leak_mmap() {
	// PROT_READ; MAP_PRIVATE | MAP_ANONYMOUS
	let block = unsafe { mmap(std::ptr::null_mut(), BLOCK, 1, 0x22, -1, 0) };
	assert!(black_box(block) as isize != -1);
}

#[inline(never)]
fn leak_vector() {
	black_box(Vec::<u8>::with_capacity(LARGE_BLOCK)).leak();
	touch();
}

trait Shape {
	fn draw(&self, scale: f64);
}

struct Circle;

impl Shape for Circle {
	#[inline(never)]
	fn draw(&self, scale: f64) {
		leak_mmap();
		black_box(scale);
	}
}

struct LeaksWhenDropped;

impl Drop for LeaksWhenDropped {
	#[inline(never)]
	fn drop(&mut self) {
		leak_mmap();
		touch();
	}
}

#[inline(never)]
fn apply<Action: Fn(u32)>(action: Action) {
	action(black_box(1));
	touch();
}

#[inline(never)]
fn panic_inside() {
	let _guard = LeaksWhenDropped;
	if black_box(true) {
		std::panic::panic_any(1);
	}
}

#[inline(never)]
fn one_round(shape: &dyn Shape) {
	leak_vector();
	shape.draw(1.5);
	apply(|_| {
		leak_mmap();
		touch();
	});
	assert!(std::panic::catch_unwind(panic_inside).is_err());
	touch();
}

fn wait_for_line() {
	std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn main() {
	let rounds: u32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
	std::panic::set_hook(Box::new(|_| ()));
	println!("ready");
	wait_for_line();
	for _ in 0..rounds {
		one_round(black_box(&Circle));
	}
	let thread = std::thread::spawn(move || {
		for _ in 0..rounds {
			one_round(black_box(&Circle));
		}
	});
	thread.join().unwrap();
	println!("done");
	wait_for_line();
}
