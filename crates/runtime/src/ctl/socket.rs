//! The socket: takes clients and their requests.

use super::feed::Reader;
use super::request::{Job, Request, parse};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use serde_json::{Value, json};
use std::fs::{Permissions, remove_file, set_permissions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The largest number of clients at a time.
const CLIENTS: usize = 16;
/// The longest request in bytes.
const LONGEST: u64 = 64 << 10;
/// How long the end of a run waits for answers to be written.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// The longest time for which a client may be silent or accept no answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A socket through which clients look into a run and change it. The file is removed with this
/// value. Clients wait until the run begins.
pub struct Socket {
    listener: UnixListener,
    file: SocketFile,
}

/// The file of a socket, which is removed with this value.
struct SocketFile(PathBuf);

/// A socket whose clients are served by threads.
pub(crate) struct Served {
    file: SocketFile,
    jobs: Receiver<Job>,
    is_closed: Arc<AtomicBool>,
    /// Behind the requests, which end before it: then clients know that the run is over.
    _answers: Answers,
}

/// The number of requests whose answers have not been written yet. Dropping this value waits for
/// them, because the process may end then.
struct Answers(Arc<AtomicUsize>);

/// The reasons why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another process answers at the path.
    #[error("another process listens there; stop it, or choose another path")]
    InUse,
    /// The path is not a socket.
    #[error("the file exists and is not a socket; choose another path")]
    NoSocket,
    /// The operating system refuses.
    #[error("cannot be made: {0}")]
    Io(#[from] io::Error),
}

/// The data that the threads of all clients share.
struct Shared {
    jobs: SyncSender<Job>,
    clients: AtomicUsize,
    unanswered: Arc<AtomicUsize>,
}

impl Socket {
    /// Listens at a path. Only the user who runs this process, and root, may use the socket. A
    /// socket that a dead process has left there is replaced.
    ///
    /// # Errors
    /// When the path is in use or cannot be made.
    pub fn listen(path: &Path) -> Result<Self, SocketError> {
        if let Ok(metadata) = path.symlink_metadata() {
            if !metadata.file_type().is_socket() {
                return Err(SocketError::NoSocket);
            }
            if UnixStream::connect(path).is_ok() {
                return Err(SocketError::InUse);
            }
            remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        // Each client's user is checked, too, so it does not matter that the file is older than
        // its permissions.
        set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(Self { listener, file: SocketFile(path.to_owned()) })
    }

    /// Serves clients from now on.
    pub(crate) fn serve(self) -> Served {
        let Self { listener, file } = self;
        let (send, jobs) = sync_channel(CLIENTS);
        let is_closed = Arc::new(AtomicBool::new(false));
        let unanswered = Arc::default();
        let answers = Answers(Arc::clone(&unanswered));
        let shared = Shared { jobs: send, clients: AtomicUsize::new(0), unanswered };
        let closed = Arc::clone(&is_closed);
        std::thread::spawn(move || accept(&listener, &Arc::new(shared), &closed));
        Served { file, jobs, is_closed, _answers: answers }
    }
}

impl Served {
    /// The next request, if there is one within this time.
    pub(crate) fn next(&self, within: Duration) -> Option<Job> {
        self.jobs.recv_timeout(within).ok()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts clients. If that fails, the thread ends with the process.
        drop(UnixStream::connect(&self.file.0));
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let end = Instant::now() + LAST_ANSWERS;
        while self.0.load(Ordering::Acquire) > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have removed the file.
        let _ = remove_file(&self.0);
    }
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>, is_closed: &AtomicBool) {
    for client in listener.incoming() {
        if is_closed.load(Ordering::Relaxed) {
            return;
        }
        let Ok(client) = client else {
            // For example, too many files are open.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        let shared = Arc::clone(shared);
        if shared.clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS {
            refuse(&shared, client, &format!("there are {CLIENTS} clients already"));
        } else if !is_allowed(&client) {
            refuse(&shared, client, "the run belongs to another user");
        } else {
            std::thread::spawn(move || {
                // The client has gone if it cannot be read or written.
                let _ = talk(&shared, client);
                shared.clients.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}

fn is_allowed(client: &UnixStream) -> bool {
    let user = socket_peercred(client).map(|peer| peer.uid);
    user.is_ok_and(|user| user == geteuid() || user.is_root())
}

fn refuse(shared: &Shared, mut client: UnixStream, why: &str) {
    // The client may have gone.
    let _ = client.set_write_timeout(Some(Duration::from_millis(100)));
    let _ = writeln!(client, "{}", json!({ "error": why }));
    shared.clients.fetch_sub(1, Ordering::Relaxed);
}

/// Answers a client's requests until the client leaves.
fn talk(shared: &Shared, mut client: UnixStream) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(client.try_clone()?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = lines.by_ref().take(LONGEST + 1).read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(());
        }
        if length as u64 > LONGEST {
            let error = json!({ "error": format!("a request has at most {LONGEST} bytes") });
            return writeln!(client, "{error}");
        }
        let mut reader = None;
        shared.unanswered.fetch_add(1, Ordering::Relaxed);
        let answer = answer(shared, &line, &mut reader);
        let written = writeln!(client, "{answer}");
        shared.unanswered.fetch_sub(1, Ordering::Release);
        written?;
        if let Some(mut reader) = reader.filter(|_| answer.get("error").is_none()) {
            return stream(&mut client, &mut reader);
        }
    }
}

/// The answer to a request. If it is followed by a feed, sets `reader`.
fn answer(shared: &Shared, line: &[u8], reader: &mut Option<Reader>) -> Value {
    let mut ask = || {
        let line = std::str::from_utf8(line).map_err(|why| format!("no UTF-8 text: {why}"))?;
        let request: Request = parse(line, reader)?;
        let (answer, receive) = sync_channel(1);
        let over = || "the run is over".to_owned();
        shared.jobs.send(Job { request, answer }).map_err(|_| over())?;
        receive.recv().map_err(|_| over())
    };
    ask().unwrap_or_else(|why| json!({ "error": why }))
}

/// Writes the lines of a feed until the feed ends, the client leaves, or the run ends.
fn stream(client: &mut UnixStream, lines: &mut Reader) -> io::Result<()> {
    client.set_nonblocking(false)?;
    let mut byte = [0; 1];
    loop {
        match lines.next(Duration::from_millis(250)) {
            Ok(line) => writeln!(client, "{line}")?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                client.set_nonblocking(true)?;
                let gone = client.read(&mut byte);
                client.set_nonblocking(false)?;
                match gone {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    _ => return Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_written_before_the_socket_has_ended() {
        let path = std::env::temp_dir().join(format!("braid-answers-{}", std::process::id()));
        for turn in 0..50 {
            let served = Socket::listen(&path).expect("a socket").serve();
            let mut clients: Vec<_> =
                (0..2).map(|_| UnixStream::connect(&path).expect("a client")).collect();
            for client in &mut clients {
                client.write_all(b"{\"do\":\"status\"}\n").expect("a request");
            }
            // The second request gets no answer from the run.
            let job = served.next(Duration::from_secs(20)).expect("a job");
            job.answer.try_send(json!({ "turn": turn })).expect("an answer");
            served.next(Duration::from_secs(20)).expect("another job");
            drop(served);
            let mut found: Vec<String> = Vec::new();
            for client in clients {
                client.set_nonblocking(true).expect("a socket");
                let mut line = String::new();
                BufReader::new(client).read_line(&mut line).expect("an answer is there");
                found.push(line);
            }
            found.sort_unstable();
            let expected =
                ["{\"error\":\"the run is over\"}\n".to_owned(), format!("{{\"turn\":{turn}}}\n")];
            assert_eq!(found, expected);
        }
    }
}
