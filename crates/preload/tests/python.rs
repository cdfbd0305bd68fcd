//! An unchanged server in Python takes its connections from this test, which stands for Braid.

use braid_handover::{Ends, LISTENS, Listens};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown,
    SocketAddrUnix, SocketFlags, SocketType, accept, bind, listen, recv, sendmsg, shutdown,
    socket_with, socketpair,
};
use std::io::{IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// What the server shows of each connection: its addresses and options, and what it has read. It
/// serves Braid's port with epoll, and another one, which is the kernel's.
const SERVER: &str = r#"
import select, socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
own = socket.socket(family, socket.SOCK_STREAM)
own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
own.bind((sys.argv[1], 8080))
own.listen(100)
own.setblocking(False)
assert own.getsockname()[:2] == (sys.argv[1], 8080), own.getsockname()
assert own.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
kernels = socket.create_server(("127.0.0.1", 0))
assert kernels.getsockname()[1] > 0
with socket.create_connection(kernels.getsockname()) as there, kernels.accept()[0] as here:
    assert here.getpeername() == there.getsockname()
    here.sendall(b"x")
    assert there.recv(1) == b"x"
poll = select.epoll()
poll.register(own.fileno(), select.EPOLLIN)
while True:
    poll.poll()
    try:
        one, peer = own.accept()
    except BlockingIOError:
        continue
    assert one.getpeername() == peer
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    one.setblocking(True)
    said = b""
    while part := one.recv(65536):
        said += part
    one.sendall(f"{peer[0]} {peer[1]} {one.getsockname()[0]} {len(said)}\n".encode() + said)
    one.close()
"#;

/// The library, which cargo has built for this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    let folders = test.ancestors().skip(1).take(2).map(Path::to_owned);
    let names = folders.map(|folder| folder.join("libbraid_preload.so"));
    names.into_iter().find(|name| name.exists()).expect("the library")
}

/// A server that has been started, and ends with this value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until something is there.
fn wait<T>(mut ready: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(Instant::now() < end, "it does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Gives the server a connection with these ends, sends bytes, and returns what it answers.
fn exchange(channel: &OwnedFd, [peer, local]: [&str; 2], bytes: &[u8]) -> Vec<u8> {
    let flags = SocketFlags::CLOEXEC;
    let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let (own, other) = pair.expect("a pair");
    let ends = Ends { peer: peer.parse().unwrap(), local: local.parse().unwrap() };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [other.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let message = ends.bytes();
    sendmsg(channel, &[IoSlice::new(&message)], &mut control, SendFlags::empty()).expect("sent");
    drop(other);
    let mut own = UnixStream::from(own);
    let mut reader = own.try_clone().expect("a copy");
    let answer = std::thread::spawn(move || {
        let mut answer = Vec::new();
        reader.read_to_end(&mut answer).expect("an answer");
        answer
    });
    own.write_all(bytes).expect("written");
    shutdown(&own, Shutdown::Write).expect("the end");
    answer.join().expect("an answer")
}

#[test]
fn unchanged_server_takes_its_connections() {
    if Command::new("python3").arg("-V").output().is_err() {
        println!("NOT RUN with a server in Python: python3 is not installed");
        return;
    }
    for (address, [peer, local]) in [
        ("192.0.2.1", ["198.51.100.7:4000", "192.0.2.1:8080"]),
        ("2001:db8::1", ["[2001:db8::7]:4000", "[2001:db8::1]:8080"]),
        // As a socket of IPv6 shows addresses of IPv4.
        ("::", ["198.51.100.7:4000", "192.0.2.1:8080"]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sock");
        let kind = SocketType::SEQPACKET;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let braid = socket_with(AddressFamily::UNIX, kind, flags, None).expect("a socket");
        bind(&braid, &SocketAddrUnix::new(&path).expect("a path")).expect("bound");
        listen(&braid, 1).expect("listens");
        let mut server = Command::new("python3");
        server.args(["-c", SERVER, address]);
        server
            .env("LD_PRELOAD", library())
            .env("BRAID_SOCKET", &path)
            .env("BRAID_PORTS", "8080,81");
        let mut server = Server(server.spawn().expect("a process"));
        let channel = wait(|| {
            assert!(server.0.try_wait().expect("a process").is_none(), "it has ended");
            accept(&braid).ok()
        });
        let mut hello = [0; LISTENS];
        let (count, _) = recv(&channel, &mut hello, RecvFlags::empty()).expect("a message");
        let listens = Listens::of(&hello[..count]).expect("where it listens");
        assert_eq!(listens.0, std::net::SocketAddr::new(address.parse().unwrap(), 8080));
        let shown = |of: &str| match (address, of.parse::<std::net::SocketAddr>().unwrap().ip()) {
            ("::", ip) => format!("::ffff:{ip}"),
            (_, ip) => ip.to_string(),
        };
        for len in [0, 5, 1_000_000] {
            let bytes = vec![b'x'; len];
            let answer = exchange(&channel, [peer, local], &bytes);
            let head = format!("{} 4000 {} {len}\n", shown(peer), shown(local));
            assert!(answer == [head.as_bytes(), &bytes].concat(), "{address} {len}");
        }
        // When Braid has gone, the server lives, and waits.
        drop(channel);
        drop(braid);
        std::thread::sleep(Duration::from_millis(100));
        assert!(server.0.try_wait().expect("a process").is_none());
    }
}
