//! Connections that another process serves: here, the test itself has the server's ends.

use super::*;
use crate::sockets::{close_all, open};
use braid_handover::{ENDS, Ends as Told, Listens};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, Shutdown,
    SocketAddrUnix, SocketFlags, SocketType, connect, recv, recvmsg, send, shutdown, socket_with,
};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use tempfile::TempDir;

/// Braid's socket, and the server that listens at it.
struct Process {
    folder: TempDir,
    channel: OwnedFd,
}

fn path(folder: &TempDir) -> PathBuf {
    folder.path().join("sock")
}

fn parameters(folder: &TempDir) -> Config {
    config(&[("path", Value::text(path(folder).to_str().unwrap()))])
}

/// A server that listens there.
fn listens(path: &std::path::Path, at: &str) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let channel = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    connect(&channel, &SocketAddrUnix::new(path).unwrap()).unwrap();
    let hello = Listens(at.parse().unwrap()).bytes();
    assert_eq!(send(&channel, &hello, SendFlags::empty()), Ok(hello.len()));
    channel
}

impl Process {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        open(&path(&folder)).expect("a socket");
        let channel = listens(&path(&folder), "0.0.0.0:80");
        Self { folder, channel }
    }

    /// The next connection.
    fn accept(&self) -> Option<(Told, OwnedFd)> {
        accept(&self.channel)
    }
}

fn accept(channel: &OwnedFd) -> Option<(Told, OwnedFd)> {
    let mut bytes = [0; ENDS];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let came = recvmsg(channel, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags).ok()?;
    let told = Told::of(&bytes[..came.bytes]).expect("the ends");
    let all = control.drain().filter_map(|one| match one {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Some((told, all.last().expect("a descriptor")))
}

/// What can be read now. `None` at the end.
fn read(from: &OwnedFd) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let mut bytes = [0; 4_096];
        match recv(from, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return (!all.is_empty()).then_some(all),
            Ok((count, _)) => all.extend(&bytes[..count]),
            Err(Errno::AGAIN) => return Some(all),
            Err(why) => panic!("{why}"),
        }
    }
}

/// Writes what there is room for. Returns the number of bytes.
fn write(to: &OwnedFd, bytes: &[u8]) -> usize {
    match send(to, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(count) => count,
        Err(Errno::AGAIN) => 0,
        Err(why) => panic!("{why}"),
    }
}

/// A site with a client that has sent these bytes, and the server's end of its connection.
fn established(process: &Process, to_send: &[u8]) -> (Site, OwnedFd) {
    let mut site = site("sockets", parameters(&process.folder), 0, 1);
    site.client(4_000, to_send);
    let (told, own) = next(&mut site, process);
    assert_eq!(told.peer, "10.0.0.7:4000".parse().unwrap());
    assert_eq!(told.local, "192.0.2.1:80".parse().unwrap());
    (site, own)
}

/// Goes on until the process has a connection.
fn next(site: &mut Site, process: &Process) -> (Told, OwnedFd) {
    (0..60_000)
        .find_map(|_| {
            site.step();
            process.accept()
        })
        .expect("a connection")
}

#[test]
fn without_a_server_clients_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = parameters(&folder);
    let mut site = site("sockets", config, 0, 1);
    site.client(4_000, b"");
    site.run_to_the_end();
    open(&path(&folder)).expect("a socket");
    // Nobody listens at this port.
    let _other = listens(&path(&folder), "0.0.0.0:81");
    site.client(4_001, b"");
    site.run_to_the_end();
    for client in &site.clients {
        assert_eq!(client.failure(), Some(Failure::Refused));
    }
    assert_eq!(site.counter("refused"), 2);
}

/// More bytes than all buffers have, in both directions, over a bad link and through other
/// instances.
#[test]
fn bytes_and_ends_arrive_in_both_directions() {
    for seed in 0..braid_cases::at_least(4).into() {
        let process = Process::new();
        let (to, back) = (body(1_500_000, 1), body(2_000_000, 2));
        let mut site = site("sockets", parameters(&process.folder), 20, seed);
        site.client(4_000, &to);
        site.clients[0].closes = true;
        let (_, own) = next(&mut site, &process);
        let (mut received, mut sent, mut at_end) = (Vec::new(), 0, false);
        for round in 0..600_000 {
            site.step();
            // It is slow at times.
            if !at_end && round % 7 > 2 {
                match read(&own) {
                    Some(bytes) => received.extend(bytes),
                    None => at_end = true,
                }
            }
            if sent < back.len() {
                sent += write(&own, &back[sent..back.len().min(sent + 20_000)]);
                if sent == back.len() {
                    shutdown(&own, Shutdown::Write).unwrap();
                }
            }
            if round % 500 == 0 {
                site.restart();
            }
            if at_end && site.clients[0].status().has_peer_closed {
                break;
            }
        }
        assert!(received == to, "{} bytes", received.len());
        assert!(site.clients[0].received == back, "{} bytes", site.clients[0].received.len());
        drop(own);
        site.run_to_the_end();
        assert_eq!(site.clients[0].failure(), None);
        assert!(site.until(60_000, |site| site.connections() == 0));
        assert_eq!(site.server.problems(), []);
    }
}

#[test]
fn client_waits_for_a_server_that_reads_nothing() {
    let process = Process::new();
    let (mut site, own) = established(&process, &body(3_000_000, 1));
    site.until(20_000, |_| false);
    let left = site.clients[0].to_send.len();
    assert!(left > 1_500_000, "{left}");
    let mut received = Vec::new();
    while received.len() < 3_000_000 {
        site.step();
        received.extend(read(&own).expect("more bytes"));
    }
    assert!(received == body(3_000_000, 1));
}

#[test]
fn server_that_closes_ends_the_stream() {
    let process = Process::new();
    let (mut site, own) = established(&process, b"hello");
    assert!(site.until(100, |_| read(&own).is_some_and(|bytes| bytes == b"hello")));
    assert_eq!(write(&own, b"goodbye"), 7);
    drop(own);
    site.run_to_the_end();
    assert_eq!(site.clients[0].received, b"goodbye");
    assert_eq!(site.clients[0].failure(), None);
}

/// A server may stop to listen, and end its connections in its own time.
#[test]
fn server_that_stops_to_listen_keeps_its_connections() {
    let Process { folder, channel } = Process::new();
    let process = Process { folder, channel };
    let (mut site, own) = established(&process, b"hello");
    drop(process.channel);
    site.client(4_001, b"");
    assert!(site.until(1_000, |site| site.clients[1].failure() == Some(Failure::Refused)));
    assert_eq!(write(&own, b"goodbye"), 7);
    drop(own);
    assert!(site.until(1_000, |site| site.clients[0].status().is_over));
    assert_eq!(site.clients[0].received, b"goodbye");
    assert_eq!(site.clients[0].failure(), None);
}

#[test]
fn reset_of_a_client_ends_the_servers_stream() {
    let process = Process::new();
    let (mut site, own) = established(&process, b"hello");
    site.clients[0].endpoint.abort();
    site.until(100, |_| false);
    assert_eq!(read(&own).as_deref(), Some(&b"hello"[..]));
    assert_eq!(read(&own), None);
    assert_eq!((site.counter("failed"), site.connections()), (1, 0));
}

/// A state of another process names sockets that this one does not have.
#[test]
fn connection_of_another_process_is_reset() {
    let process = Process::new();
    let (mut site, own) = established(&process, b"hello");
    let memory = site.server.save().unwrap();
    // Without the instance, the socket is gone, as with the process.
    site.server = instance("sockets", &site.config);
    let mut next = instance("sockets", &site.config);
    next.restore(&memory).unwrap();
    site.server = next;
    assert!(site.until(1_000, |site| site.clients[0].failure() == Some(Failure::Reset)));
    drop(own);
}

#[test]
fn several_servers_take_turns() {
    let process = Process::new();
    let other = listens(&path(&process.folder), "192.0.2.1:80");
    let mut site = site("sockets", parameters(&process.folder), 0, 1);
    for port in 4_000..4_006 {
        site.client(port, b"");
    }
    site.until(100, |_| false);
    let count = |channel| std::iter::from_fn(|| accept(channel)).count();
    assert_eq!([count(&process.channel), count(&other)], [3, 3]);
}

/// A server that accepts nothing gets as many connections as its socket has room for, and the rest
/// is given up after some seconds.
#[test]
fn connections_that_no_server_takes_are_reset() {
    let process = Process::new();
    let mut site = site("sockets", parameters(&process.folder), 0, 1);
    for port in 4_000..4_700 {
        site.client(port, b"");
    }
    site.until(4_000, |_| false);
    let failed = |site: &Site| site.clients.iter().filter(|one| one.failure().is_some()).count();
    assert_eq!(failed(&site), 0);
    let handed = site.counter("handed");
    assert!((50..650).contains(&handed), "{handed}");
    site.until(3_000, |_| false);
    assert_eq!(failed(&site) as u128 + handed, 700);
    assert_eq!(site.counter("not taken") + handed, 700);
}

#[test]
fn socket_has_one_process_and_only_its_user() {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
    let folder = tempfile::tempdir().expect("a folder");
    let path = path(&folder);
    std::fs::write(&path, b"a file").unwrap();
    assert!(open(&path).is_err_and(|why| why.ends_with("something else than a socket is there")));
    std::fs::remove_file(&path).unwrap();
    // What a dead process has left is replaced.
    drop(std::os::unix::net::UnixListener::bind(&path));
    open(&path).unwrap();
    open(&path).unwrap();
    let metadata = path.metadata().unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let missing = folder.path().join("none/sock");
    assert!(open(&missing).is_err());
}

#[test]
fn sockets_go_with_the_run() {
    let child = "tests::sockets::child_that_closes_all";
    let test = std::env::current_exe().unwrap();
    let args = ["--ignored", "--exact", child, "--nocapture"];
    let ended = std::process::Command::new(test).args(args).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stdout).contains("1 passed"), "{ended:?}");
}

/// Runs in a process of its own, because the sockets are those of the process.
#[test]
#[ignore = "closes all sockets of its process"]
fn child_that_closes_all() {
    let folder = tempfile::tempdir().expect("a folder");
    open(&path(&folder)).unwrap();
    assert!(path(&folder).exists());
    close_all();
    assert!(!path(&folder).exists());
    open(&path(&folder)).unwrap();
}
