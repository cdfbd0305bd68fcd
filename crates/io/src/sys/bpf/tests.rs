//! Programs that the kernel takes or refuses. Where it permits none, the tests say so and pass.

use super::*;

/// A map. Says so where the kernel permits none.
fn sockets() -> Option<OwnedFd> {
    let made = call::socket_map(4).ok();
    if made.is_none() {
        eprintln!("NOT RUN: BPF needs root");
    }
    made
}

#[test]
fn kernel_takes_the_program_for_xdp() {
    let Some(sockets) = sockets() else { return };
    call::load(call::XDP_PROGRAM, &redirect_to_sockets(sockets.as_fd())).unwrap();
}

#[test]
fn refusal_of_a_program_has_the_reason() {
    if sockets().is_none() {
        return;
    }
    let mut code = Assembler::new();
    // Register 2 holds nothing yet.
    code.load(Size::Word, R1, R2, 0);
    code.exit();
    let error = Filter::load(&code.finish().unwrap()).unwrap_err().to_string();
    assert!(error.contains("refuses") && error.contains("R2 !read_ok"), "{error}");
}

#[test]
fn filter_sees_a_packet_behind_its_link_header() {
    if sockets().is_none() {
        return;
    }
    // The packet's length, from the context.
    let mut code = Assembler::new();
    code.load(Size::Word, crate::bpf::Register::R0, R1, 0);
    code.exit();
    let filter = Filter::load(&code.finish().unwrap()).unwrap();
    assert_eq!(filter.run(&[0; 60]).unwrap(), 60 - 14);
    assert!(filter.run(&[0; 13]).is_err());
}
