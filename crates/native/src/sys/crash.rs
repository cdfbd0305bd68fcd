//! Names the function that was running when a signal ends the process.

use std::cell::Cell;
use std::ptr;
use std::sync::Once;

/// The text for a signal's message: the function, and its task.
pub(super) struct Note(Box<[u8]>);

impl Note {
    pub(super) fn new(label: &str) -> Self {
        Self(label.as_bytes().into())
    }
}

/// Signals that mistakes of code cause.
const SIGNALS: [(libc::c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
];

thread_local! {
    /// The note for the function that this thread runs, and the number of the packet.
    static RUNNING: Cell<(*const u8, usize, u64)> = const { Cell::new((ptr::null(), 0, 0)) };
}

/// While this value lives, a function's code runs in this thread.
pub(super) struct Running((*const u8, usize, u64));

/// Records that a function's code is about to run for the packet with this number. The note must
/// live as long as the result.
pub(super) fn enter(note: &Note, packet: u64) -> Running {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(install);
    Running(RUNNING.replace((note.0.as_ptr(), note.0.len(), packet)))
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(self.0);
    }
}

fn install() {
    for (signal, _) in SIGNALS {
        // SAFETY: all-zero bytes are a valid `sigaction`.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK | libc::SA_RESETHAND;
        // SAFETY: the structure is complete, and the handler makes only calls that are safe in a
        // signal handler.
        unsafe {
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
    }
}

/// Prints the function that was running. The signal then has its default effect (`SA_RESETHAND`),
/// when the interrupted code continues or because the handler raises it again. Makes only calls
/// that are safe in a signal handler.
extern "C" fn on_signal(signal: libc::c_int) {
    let (note, length, packet) = RUNNING.get();
    let name = SIGNALS.iter().find(|(known, _)| *known == signal).map_or("a signal", |(_, n)| n);
    if !note.is_null() {
        write(b"braid: ");
        write(name.as_bytes());
        write(b" in native function ");
        // SAFETY: the note lives as long as `Running`, and the pointer is null when no `Running`
        // lives.
        write(unsafe { std::slice::from_raw_parts(note, length) });
        let mut digits = [0; 20];
        if packet > 0 {
            write(b", on its packet ");
            write(decimal(packet, &mut digits));
        }
        write(b"\n");
    }
    // SAFETY: raising a signal is allowed in a handler. It is blocked until the handler returns.
    unsafe { libc::raise(signal) };
}

fn write(bytes: &[u8]) {
    // SAFETY: the bytes are valid. A failure to write is ignored.
    unsafe { libc::write(2, bytes.as_ptr().cast(), bytes.len()) };
}

#[expect(clippy::indexing_slicing, reason = "`at` is below the number of digits")]
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 || at == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn numbers_are_written_in_full() {
        let mut digits = [0; 20];
        assert_eq!(decimal(0, &mut digits), b"0");
        assert_eq!(decimal(1_203, &mut digits), b"1203");
        assert_eq!(decimal(u64::MAX, &mut digits), u64::MAX.to_string().as_bytes());
    }
}
