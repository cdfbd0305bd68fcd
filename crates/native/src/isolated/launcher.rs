//! The process that starts the processes of isolated functions. It has one thread and does nothing
//! else, so it can make copies of itself at any time, also when Braid itself has no right to start
//! processes any more.

use super::worker::{self, Confine};
use crate::sys::{Forked, Shared, fork};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, send, sendmsg, socketpair,
};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitIdOptions, WaitIdStatus, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal, setsid, waitid,
};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// How to start a launcher: a program and its arguments. The program calls [`launch`].
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// The running launcher.
static LAUNCHER: Mutex<Option<Client>> = Mutex::new(None);

/// Says how to start a launcher: a program and its arguments, which lead it to [`launch`]. Without
/// this, functions cannot be isolated. Only the first call has an effect.
pub fn start_by(program: Vec<OsString>) {
    // A later call has no effect, as the documentation says.
    let _ = PROGRAM.set(program);
}

/// A request to the launcher: its kind, and a process.
type Request = [u8; 5];
const START: u8 = b'S';
const KILL: u8 = b'K';

struct Client {
    socket: OwnedFd,
}

impl Client {
    fn new() -> io::Result<Self> {
        let program = PROGRAM.get().map_or(&[][..], Vec::as_slice);
        let Some((program, args)) = program.split_first() else {
            return Err(io::Error::other("this program cannot isolate functions"));
        };
        let flags = SocketFlags::CLOEXEC;
        let (socket, end) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        // It ends when the socket closes, so nobody needs to wait for it.
        Command::new(program).args(args).stdin(Stdio::from(end)).spawn()?;
        Ok(Self { socket })
    }

    /// Starts a process that works for the other ends of a socket and of shared memory.
    fn start(&self, socket: BorrowedFd<'_>, memory: BorrowedFd<'_>) -> io::Result<Pid> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [socket, memory];
        control.push(SendAncillaryMessage::ScmRights(&files));
        let request: Request = [START, 0, 0, 0, 0];
        sendmsg(&self.socket, &[IoSlice::new(&request)], &mut control, SendFlags::NOSIGNAL)?;
        let mut answer = [0; 4];
        let (count, _) = rustix::net::recv(&self.socket, &mut answer, RecvFlags::empty())?;
        let pid = i32::from_le_bytes(answer);
        match Pid::from_raw(pid) {
            Some(pid) if count == answer.len() && pid.as_raw_nonzero().get() > 0 => Ok(pid),
            _ if count == answer.len() => Err(io::Error::from_raw_os_error(-pid)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Starts a process for the other ends of a socket and of shared memory. Starts the launcher if
/// there is none, or if it has ended.
pub(super) fn start(socket: BorrowedFd<'_>, memory: BorrowedFd<'_>) -> io::Result<Pid> {
    let mut launcher = LAUNCHER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = &*launcher {
        match client.start(socket, memory) {
            Err(why) if is_gone(&why) => {}
            done => return done,
        }
    }
    launcher.insert(Client::new()?).start(socket, memory)
}

/// Whether an error says that the other end of a socket has ended.
fn is_gone(why: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(why.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Ends a process that [`start`] has started.
pub(super) fn kill(pid: Pid) {
    let launcher = LAUNCHER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = &*launcher {
        let [a, b, c, d] = pid.as_raw_nonzero().get().to_le_bytes();
        // Without a launcher, the process has ended already.
        let _ = send(&client.socket, &[KILL, a, b, c, d], SendFlags::NOSIGNAL);
    }
}

/// A process at work.
struct Worker {
    pid: Pid,
    handle: OwnedFd,
    memory: Shared,
}

/// What a launcher does next.
enum Next {
    /// It waits for the next request.
    Wait,
    /// It ends, because Braid has ended.
    End,
    /// This process is a new one, which works for these ends.
    Work(OwnedFd, Shared),
}

/// Runs as a launcher, with the socket to Braid as standard input, until Braid ends. `confine` limits
/// a process of a function: before its library is loaded, and again before its first packet. Returns
/// the exit status of the process.
///
/// # Errors
/// The system's, for the socket.
pub fn launch(confine: Confine) -> io::Result<i32> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    // Braid's standard output may carry packets, so what functions print goes to standard error.
    dup2_stdin(std::fs::File::open("/dev/null")?)?;
    dup2_stdout(io::stderr())?;
    // Signals of the terminal are for Braid, which tells functions when to end.
    let _ = setsid();
    let mut workers: Vec<Worker> = Vec::new();
    loop {
        let handles = workers.iter().map(|worker| worker.handle.as_fd());
        let mut files: Vec<_> = std::iter::once(socket.as_fd())
            .chain(handles)
            .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN))
            .collect();
        match poll(&mut files, None) {
            Err(Errno::INTR) => continue,
            done => done?,
        };
        let mut is_ready = files.iter().map(|file| !file.revents().is_empty());
        let is_asked = is_ready.next().unwrap_or(false);
        let ended: Vec<bool> = is_ready.collect();
        let mut ended = ended.into_iter();
        workers.retain(|worker| !(ended.next() == Some(true) && is_over(worker)));
        if !is_asked {
            continue;
        }
        match answer(&socket, &mut workers)? {
            Next::Wait => {}
            Next::End => return Ok(0),
            Next::Work(end, memory) => {
                // Nothing of other functions stays in this process, and no way to the launcher.
                drop((workers, socket));
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
                return Ok(worker::serve(&memory, end, confine));
            }
        }
    }
}

/// Whether a process has ended. Then its memory says how.
fn is_over(worker: &Worker) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let status = match waitid(rustix::process::WaitId::Pid(worker.pid), options) {
        Ok(None) => return false,
        Ok(Some(status)) => of_status(&status),
        Err(_) => 0,
    };
    worker.memory.end(status);
    true
}

/// How a process ended as one number: the signal, or its exit status times 256.
fn of_status(status: &WaitIdStatus) -> u32 {
    let number = |status: Option<i32>| status.and_then(|status| u32::try_from(status).ok());
    number(status.terminating_signal())
        .unwrap_or_else(|| number(status.exit_status()).unwrap_or(0) << 8)
}

/// How a process ended, in words.
pub(super) fn say(status: u32) -> String {
    match (status & 0xff, status >> 8) {
        (0, code) => format!("ended with exit status {code}"),
        (signal, _) => {
            let raw = i32::try_from(signal).unwrap_or(0);
            match NAMES.iter().find(|(known, _)| *known == raw) {
                Some((_, name)) => format!("crashed ({name})"),
                None => format!("crashed (signal {signal})"),
            }
        }
    }
}

/// Signals that end functions.
const NAMES: [(i32, &str); 7] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGSYS, "SIGSYS: a system call that is not allowed"),
    (libc::SIGKILL, "SIGKILL"),
];

/// Answers a request.
fn answer(socket: &OwnedFd, workers: &mut Vec<Worker>) -> io::Result<Next> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut request: Request = [0; 5];
    let mut into = [IoSliceMut::new(&mut request)];
    match recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
        Ok(got) if got.bytes == request.len() => {}
        Err(Errno::INTR) => return Ok(Next::Wait),
        Err(why) => return Err(why.into()),
        Ok(_) => return Ok(Next::End),
    }
    let [kind, a, b, c, d] = request;
    if kind == KILL {
        let pid = Pid::from_raw(i32::from_le_bytes([a, b, c, d]));
        if let Some(worker) = workers.iter().find(|worker| Some(worker.pid) == pid) {
            // A process that is over already needs no signal.
            let _ = pidfd_send_signal(&worker.handle, Signal::KILL);
        }
        return Ok(Next::Wait);
    }
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let files: Vec<OwnedFd> = files.flatten().collect();
    let number = match begin(files, workers) {
        Ok(Begun::Here(end, memory)) => return Ok(Next::Work(end, memory)),
        Ok(Begun::There(pid)) => pid.as_raw_nonzero().get(),
        Err(why) => -why.raw_os_error().unwrap_or(libc::EIO),
    };
    send(socket, &number.to_le_bytes(), SendFlags::NOSIGNAL)?;
    Ok(Next::Wait)
}

/// A process that has begun.
enum Begun {
    /// It is this one, which works for these ends.
    Here(OwnedFd, Shared),
    /// It is another one.
    There(Pid),
}

/// Starts a process for a socket and for shared memory.
fn begin(files: Vec<OwnedFd>, workers: &mut Vec<Worker>) -> io::Result<Begun> {
    let Ok([end, memory]) = <[OwnedFd; 2]>::try_from(files) else {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    };
    let memory = Shared::of(&memory)?;
    match fork()? {
        Forked::Child => Ok(Begun::Here(end, memory)),
        Forked::Parent(pid) => {
            let handle = pidfd_open(pid, PidfdFlags::empty())?;
            workers.push(Worker { pid, handle, memory });
            Ok(Begun::There(pid))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::say;

    #[test]
    fn ends_are_told_in_words() {
        assert_eq!(say(11), "crashed (SIGSEGV)");
        assert_eq!(say(64), "crashed (signal 64)");
        assert_eq!(say(3 << 8), "ended with exit status 3");
    }
}
