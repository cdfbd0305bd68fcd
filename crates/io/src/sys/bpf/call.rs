//! The system call `bpf`: maps, programs, links.

use crate::bpf::Instruction;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

// Commands, kinds and flags of <linux/bpf.h> and <linux/if_link.h>.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const TEST_RUN: libc::c_int = 10;
const LINK_CREATE: libc::c_int = 28;
const SOCKET_MAP: u32 = 17;
pub(super) const SOCKET_FILTER: u32 = 1;
pub(super) const XDP_PROGRAM: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// Attach to the driver.
pub(super) const NATIVE: u32 = 1 << 2;
/// Attach behind the driver.
pub(super) const GENERIC: u32 = 1 << 1;

/// The size of the buffer for the verifier's reasons.
const LOG: usize = 1 << 16;

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    device: u32,
    attach_kind: u32,
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    result: u32,
    input_size: u32,
    output_size: u32,
    input: u64,
    output: u64,
    repeat: u32,
    duration: u32,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    device: u32,
    attach_kind: u32,
    flags: u32,
}

/// Calls the kernel with one of the structures above.
///
/// # Safety
/// The structure belongs to the command, and its pointers point to memory of the sizes that the
/// command expects.
unsafe fn bpf<T>(command: libc::c_int, argument: &mut T) -> io::Result<i32> {
    let (argument, size) = (ptr::from_mut(argument), size_of::<T>());
    // SAFETY: the kernel reads and writes at most `size` bytes at `argument`, which live until the
    // call returns; for the pointers within, the caller answers.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, argument, size) };
    i32::try_from(result).ok().filter(|result| *result >= 0).ok_or_else(io::Error::last_os_error)
}

/// The same, for commands that return a descriptor.
///
/// # Safety
/// As for [`bpf`].
unsafe fn new<T>(command: libc::c_int, argument: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller answers for the argument.
    let descriptor = unsafe { bpf(command, argument) }?;
    // SAFETY: the kernel has made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn number(descriptor: i32) -> u32 {
    u32::try_from(descriptor).unwrap_or(u32::MAX)
}

fn address<T>(at: &T) -> u64 {
    ptr::from_ref(at).addr() as u64
}

/// A map from numbers of queues to sockets.
pub(super) fn socket_map(entries: u32) -> io::Result<OwnedFd> {
    let mut create = MapCreate { kind: SOCKET_MAP, key_size: 4, value_size: 4, entries };
    // SAFETY: this command takes this structure, which has no pointers.
    unsafe { new(MAP_CREATE, &mut create) }
}

/// Puts a socket into a map of [`socket_map`].
pub(super) fn set_socket(map: &OwnedFd, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = number(socket.as_raw_fd());
    let mut update = MapUpdate {
        map: number(map.as_raw_fd()),
        padding: 0,
        key: address(&queue),
        value: address(&value),
        flags: 0,
    };
    // SAFETY: this command takes this structure. The key and the value have four bytes each, as in
    // the map, and live until the call returns.
    unsafe { bpf(MAP_UPDATE, &mut update) }.map(|_| ())
}

/// Loads a program of this kind. If the verifier refuses it, the error holds the reasons.
pub(super) fn load(kind: u32, program: &[Instruction]) -> io::Result<OwnedFd> {
    match load_with(kind, program, &mut []) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EACCES)) => {
            let mut log = vec![0; LOG];
            let again = load_with(kind, program, &mut log);
            let text = String::from_utf8_lossy(&log);
            let text = text.trim_end_matches('\0').trim_end();
            match again {
                Err(_) if !text.is_empty() => {
                    Err(io::Error::other(format!("the kernel refuses a BPF program:\n{text}")))
                }
                again => again,
            }
        }
        loaded => loaded,
    }
}

fn load_with(kind: u32, program: &[Instruction], log: &mut [u8]) -> io::Result<OwnedFd> {
    let name = *b"braid\0\0\0\0\0\0\0\0\0\0\0";
    let mut load = ProgramLoad {
        kind,
        count: u32::try_from(program.len()).unwrap_or(u32::MAX),
        instructions: program.as_ptr().addr() as u64,
        license: c"Apache-2.0".as_ptr().addr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_size: u32::try_from(log.len()).unwrap_or(0),
        log: if log.is_empty() { 0 } else { log.as_mut_ptr().expose_provenance() as u64 },
        kernel_version: 0,
        flags: 0,
        name,
        device: 0,
        attach_kind: if kind == XDP_PROGRAM { ATTACH_XDP } else { 0 },
    };
    // SAFETY: this command takes this structure. The program has `count` instructions, the license
    // ends with a zero, the log has `log_size` bytes. They live until the call returns.
    unsafe { new(PROGRAM_LOAD, &mut load) }
}

/// The result of a program for a frame.
pub(super) fn run(program: &OwnedFd, frame: &[u8]) -> io::Result<u32> {
    let mut run = TestRun {
        program: number(program.as_raw_fd()),
        input_size: u32::try_from(frame.len()).unwrap_or(u32::MAX),
        input: frame.as_ptr().addr() as u64,
        ..TestRun::default()
    };
    // SAFETY: this command takes this structure, also this first part of it. The frame has
    // `input_size` bytes, which live until the call returns. Without an output, the kernel writes
    // to the structure only.
    unsafe { bpf(TEST_RUN, &mut run) }?;
    Ok(run.result)
}

/// Attaches a program to the device with this number. It ends with the result.
pub(super) fn attach_xdp(program: &OwnedFd, device: u32, mode: u32) -> io::Result<OwnedFd> {
    let mut create = LinkCreate {
        program: number(program.as_raw_fd()),
        device,
        attach_kind: ATTACH_XDP,
        flags: mode,
    };
    // SAFETY: this command takes this structure, which has no pointers.
    unsafe { new(LINK_CREATE, &mut create) }
}
