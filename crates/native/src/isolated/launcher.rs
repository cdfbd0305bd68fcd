//! The process that starts the processes of isolated functions. It has one thread and does nothing
//! else, so it can make copies of itself at any time, also when Braid itself has no right to start
//! processes any more.

use super::worker::{self, Confine};
use crate::sys::{Forked, Shared, fork, ignore_ends};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, send, sendmsg, socketpair,
};
use rustix::process::{
    Gid, Pid, PidfdFlags, Signal, Uid, WaitId, WaitIdOptions, WaitIdStatus, getpid, getppid,
    kill_process, pidfd_open, pidfd_send_signal, set_parent_process_death_signal, setsid, waitid,
};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use rustix::time::Timespec;
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

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

/// A request to the launcher: its kind, and two numbers.
type Request = [u8; 9];
/// Start a process for the two files that come along. Answer: its number, or an error below 0.
const START: u8 = b'S';
/// End the process of this number now.
const KILL: u8 = b'K';
/// End the process of this number if it is still there when [`GRACE`] is over.
const END: u8 = b'E';
/// Become the user of these numbers: user, group. Answer: 0, or an error below 0.
const USER: u8 = b'U';

/// The time for a function to end by itself.
const GRACE: Duration = Duration::from_secs(1);

fn request(kind: u8, first: u32, second: u32) -> Request {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_le_bytes(), second.to_le_bytes());
    [kind, a, b, c, d, e, f, g, h]
}

/// The number of a process, which the launcher gives it.
pub(super) type Number = u32;

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
    fn start(&self, socket: BorrowedFd<'_>, memory: BorrowedFd<'_>) -> io::Result<Number> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [socket, memory];
        control.push(SendAncillaryMessage::ScmRights(&files));
        let request = request(START, 0, 0);
        sendmsg(&self.socket, &[IoSlice::new(&request)], &mut control, SendFlags::NOSIGNAL)?;
        let number = self.answer()?;
        Number::try_from(number).map_err(io::Error::other)
    }

    fn answer(&self) -> io::Result<i32> {
        let mut answer = [0; 4];
        let (count, _) = rustix::net::recv(&self.socket, &mut answer, RecvFlags::empty())?;
        if count != answer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match i32::from_le_bytes(answer) {
            number if number < 0 => Err(io::Error::from_raw_os_error(-number)),
            number => Ok(number),
        }
    }
}

/// Starts a process for the other ends of a socket and of shared memory. Starts the launcher if
/// there is none, or if it has ended.
pub(super) fn start(socket: BorrowedFd<'_>, memory: BorrowedFd<'_>) -> io::Result<Number> {
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

/// Ends a process that [`start`] has started: now, or soon if it does not end by itself.
pub(super) fn end(number: Number, now: bool) {
    let launcher = LAUNCHER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = &*launcher {
        let kind = if now { KILL } else { END };
        // Without a launcher, the process has ended already.
        let _ = send(&client.socket, &request(kind, number, 0), SendFlags::NOSIGNAL);
    }
}

/// Lets processes of isolated functions that start from now on have another user and group, and no
/// further groups. Does nothing if there is no launcher.
///
/// # Errors
/// The system's.
pub fn become_user(user: u32, group: u32) -> io::Result<()> {
    let launcher = LAUNCHER.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(client) = &*launcher else { return Ok(()) };
    send(&client.socket, &request(USER, user, group), SendFlags::NOSIGNAL)?;
    client.answer().map(drop)
}

/// A process at work.
struct Worker {
    number: Number,
    pid: Pid,
    handle: OwnedFd,
    memory: Shared,
    /// When it is ended, if it must end.
    until: Option<Instant>,
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

/// Runs as a launcher, with the socket to Braid as standard input, until Braid ends. `confine`
/// limits a process of a function: before its library is loaded, and again before its first packet.
/// Returns the exit status of the process.
///
/// # Errors
/// The system's, for the socket.
pub fn launch(confine: Confine) -> io::Result<i32> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    // Braid's standard output may carry packets, so what functions print goes to standard error.
    dup2_stdin(std::fs::File::open("/dev/null")?)?;
    dup2_stdout(io::stderr())?;
    // A service manager signals all processes of a service, but Braid still finishes its packets.
    ignore_ends();
    let _ = setsid();
    let launcher = getpid();
    let mut workers = Workers::default();
    loop {
        let is_asked = workers.wait(&socket)?;
        workers.forget_ended();
        if !is_asked {
            continue;
        }
        match answer(&socket, &mut workers)? {
            Next::Wait => {}
            Next::End => {
                workers.all.iter().for_each(Worker::kill);
                return Ok(0);
            }
            Next::Work(end, memory) => {
                // Nothing of other functions stays in this process, and no way to the launcher.
                drop((workers, socket));
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
                // The launcher may have ended before the line above.
                return Ok(match getppid() == Some(launcher) {
                    true => worker::serve(&memory, end, confine),
                    false => 0,
                });
            }
        }
    }
}

/// The processes of a launcher.
#[derive(Default)]
struct Workers {
    all: Vec<Worker>,
    /// The number of the latest one.
    number: Number,
}

impl Workers {
    /// Waits for a request, the end of a process, or the time to end one. Returns whether there is
    /// a request.
    fn wait(&self, socket: &OwnedFd) -> io::Result<bool> {
        let handles = self.all.iter().map(|worker| worker.handle.as_fd());
        let mut files: Vec<_> = std::iter::once(socket.as_fd())
            .chain(handles)
            .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN))
            .collect();
        let until = self.all.iter().filter_map(|worker| worker.until).min();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut files, left.as_ref()) {
            Err(Errno::INTR) => return Ok(false),
            done => done?,
        };
        Ok(files.first().is_some_and(|socket| !socket.revents().is_empty()))
    }

    /// Ends processes whose time is over, and forgets processes that have ended.
    fn forget_ended(&mut self) {
        let now = Instant::now();
        for worker in
            self.all.iter_mut().filter(|worker| worker.until.is_some_and(|end| end <= now))
        {
            worker.kill();
            worker.until = None;
        }
        self.all.retain(|worker| !worker.is_over());
    }

    /// Starts a process for a socket and for shared memory.
    fn begin(&mut self, files: Vec<OwnedFd>) -> io::Result<Begun> {
        let Ok([end, memory]) = <[OwnedFd; 2]>::try_from(files) else {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        };
        let memory = Shared::of(&memory)?;
        let pid = match fork()? {
            Forked::Child => return Ok(Begun::Here(end, memory)),
            Forked::Parent(pid) => pid,
        };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(why) => {
                // Nobody would notice its end.
                let _ = kill_process(pid, Signal::KILL);
                let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
                return Err(why.into());
            }
        };
        self.number += 1;
        self.all.push(Worker { number: self.number, pid, handle, memory, until: None });
        Ok(Begun::There(self.number))
    }
}

impl Worker {
    fn kill(&self) {
        // A process that is over already needs no signal.
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }

    /// Whether the process has ended. Then its memory says how.
    fn is_over(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let status = match waitid(WaitId::Pid(self.pid), options) {
            Ok(None) => return false,
            Ok(Some(status)) => of_status(&status),
            Err(_) => 0,
        };
        self.memory.end(status);
        true
    }
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
fn answer(socket: &OwnedFd, workers: &mut Workers) -> io::Result<Next> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut request: Request = [0; 9];
    let mut into = [IoSliceMut::new(&mut request)];
    match recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
        Ok(got) if got.bytes == request.len() => {}
        Err(Errno::INTR) => return Ok(Next::Wait),
        Err(why) => return Err(why.into()),
        Ok(_) => return Ok(Next::End),
    }
    let [kind, a, b, c, d, e, f, g, h] = request;
    let [first, second] = [[a, b, c, d], [e, f, g, h]].map(u32::from_le_bytes);
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let files: Vec<OwnedFd> = files.flatten().collect();
    let worker = workers.all.iter_mut().find(|worker| worker.number == first);
    let done = match (kind, worker) {
        (KILL, Some(worker)) => {
            worker.kill();
            return Ok(Next::Wait);
        }
        (END, Some(worker)) => {
            worker.until = Some(Instant::now() + GRACE);
            return Ok(Next::Wait);
        }
        (USER, _) => {
            // Later, it may not end processes of the user that it has now.
            workers.all.iter().filter(|worker| worker.until.is_some()).for_each(Worker::kill);
            be_user(first, second).map(|()| 0)
        }
        (START, _) => match workers.begin(files) {
            Ok(Begun::Here(end, memory)) => return Ok(Next::Work(end, memory)),
            Ok(Begun::There(number)) => Ok(number),
            Err(why) => Err(why),
        },
        _ => return Ok(Next::Wait),
    };
    let number = match done {
        Ok(number) => i32::try_from(number).unwrap_or(-libc::EOVERFLOW),
        Err(why) => -why.raw_os_error().unwrap_or(libc::EIO),
    };
    send(socket, &number.to_le_bytes(), SendFlags::NOSIGNAL)?;
    Ok(Next::Wait)
}

/// Gives this process, which has one thread, another user and group.
fn be_user(user: u32, group: u32) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    Ok(set_thread_res_uid(user, user, user)?)
}

/// A process that has begun.
enum Begun {
    /// It is this one, which works for these ends.
    Here(OwnedFd, Shared),
    /// It is another one.
    There(Number),
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
