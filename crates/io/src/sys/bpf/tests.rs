//! Programs that the kernel takes or refuses. Where it permits none, the tests say so and pass.

use super::assemble::{Register, exit, load_word, pass, redirect_to_sockets, set};
use super::call::{load_xdp, socket_map};

#[test]
fn kernel_takes_the_programs() {
    let Ok(sockets) = socket_map(4) else {
        eprintln!("NOT RUN: BPF needs root");
        return;
    };
    load_xdp(&redirect_to_sockets(&sockets)).unwrap();
    load_xdp(&pass()).unwrap();
}

#[test]
fn refusal_of_a_program_has_the_reason() {
    if socket_map(4).is_err() {
        eprintln!("NOT RUN: BPF needs root");
        return;
    }
    // Register 2 holds nothing yet.
    let program = [set(Register::R0, 0), load_word(Register::R0, Register::R2, 0), exit()];
    let error = load_xdp(&program).unwrap_err().to_string();
    assert!(error.contains("refuses") && error.contains("R2 !read_ok"), "{error}");
}
