//! Tests the control socket of a live run.

mod support;

use braid_io::{Port, Unreceived, Unsent};
use braid_packet::{Frame, Pool};
use braid_runtime::ctl::{Socket, SocketError};
use braid_runtime::live::{Attached, Clock, Limits, Live, Ports};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::{Around, drive, fake, lan_wan};

/// A device that receives nothing.
struct Silent(UnixDatagram);

impl Port for Silent {
    fn receive(
        &mut self,
        _: &mut Pool,
        _: &mut Vec<Frame>,
        _: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize> {
        Ok(0)
    }

    fn send(&mut self, _: &mut Pool, frames: &mut Vec<Frame>, _: &mut dyn FnMut(usize, Unsent)) {
        frames.clear();
    }

    fn overrun(&mut self) -> u64 {
        0
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("braid-ctl-{}-{name}", std::process::id()))
}

/// Runs a chain with a control socket while `client` talks to it. The client must stop the run.
fn run(name: &str, client: impl FnOnce(&Path) + Send) {
    let path = path(name);
    let socket = Socket::listen(&path).unwrap();
    let port = Box::new(Silent(UnixDatagram::unbound().unwrap()));
    std::thread::scope(|scope| {
        scope.spawn(|| client(&path));
        let pool = Pool::new(64, 2048).unwrap();
        let limits = Limits { time: Some(Duration::from_secs(20)), packets: None };
        let attached = vec![Attached { interface: 0, name: "silent".to_owned(), port }];
        let live = Live::new(lan_wan(), fake(), Clock::start())
            .limits(limits)
            .ports(Ports { pool, attached })
            .socket(socket);
        let start = std::time::Instant::now();
        drive(live, &mut Around::default()).result.unwrap();
        assert!(start.elapsed() < Duration::from_secs(15), "the client stops the run");
    });
    assert!(!path.exists(), "the socket goes with the run");
}

struct Client {
    write: UnixStream,
    read: BufReader<UnixStream>,
}

impl Client {
    fn new(path: &Path) -> Self {
        let write = UnixStream::connect(path).unwrap();
        write.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self { read: BufReader::new(write.try_clone().unwrap()), write }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.read.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: `{line}`"))
    }

    fn ask(&mut self, request: &str) -> Value {
        writeln!(self.write, "{request}").unwrap();
        self.line()
    }
}

fn error(answer: &Value) -> &str {
    answer["error"].as_str().unwrap_or_default()
}

#[test]
fn requests_are_answered_and_stop_ends_the_run() {
    run("answers", |path| {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut client = Client::new(path);
        let status = client.ask(r#"{"do":"status"}"#);
        assert_eq!((&status["chain"], &status["packets"]), (&"test".into(), &0.into()));
        assert_eq!(status["devices"][0]["interface"], "lan");
        assert_eq!(client.ask(r#"{"do":"counters"}"#)["packets_in"], 0);
        let text = client.ask(r#"{"do":"counters","text":true}"#);
        assert_eq!(text["text"], "test: 0 packets");
        let state = client.ask(r#"{"do":"state"}"#);
        assert_eq!((&state["entries"], &state["next"]), (&Value::Array(vec![]), &Value::Null));
        let unknown = client.ask(r#"{"do":"state","function":"x"}"#);
        assert_eq!(error(&unknown), "there is no function `x`; chain `test` has none");
        assert_eq!(client.ask(r#"{"do":"change","change":"nothing"}"#)["ok"], true);
        assert!(error(&client.ask(r#"{"do":"change","change":"a"}"#)).contains("is no change"));
        let reload = client.ask(r#"{"do":"reload"}"#);
        assert_eq!(error(&reload), "it does not compile");
        assert_eq!(client.ask(r#"{"do":"stop"}"#)["ok"], true);
    });
}

#[test]
fn hostile_requests_get_errors_and_the_run_goes_on() {
    run("hostile", |path| {
        let mut client = Client::new(path);
        for request in ["", "{", "[]", "{}", "{\"do\":\"\\u0000\"}", "\u{7f}\u{80}"] {
            assert!(!error(&client.ask(request)).is_empty(), "{request:?}");
        }
        client.write.write_all(b"\xff\xfe\n").unwrap();
        assert!(error(&client.line()).contains("UTF-8"));
        client.write.write_all(&vec![b'x'; 64 << 10]).unwrap();
        client.write.write_all(b"x\n").unwrap();
        assert!(error(&client.line()).contains("at most"));
        let mut many = Vec::new();
        let refused = loop {
            let mut client = Client::new(path);
            // A refused client gets an error before it asks, so the request may fail.
            let _ = writeln!(client.write, "{{\"do\":\"status\"}}");
            let answer = client.line();
            match error(&answer) {
                "" => many.push(client),
                why => break why.to_owned(),
            }
        };
        assert!(refused.contains("16 clients"), "{refused}");
        // The first client may count for a moment after it has gone.
        assert!((15..=16).contains(&many.len()), "{} clients", many.len());
        assert_eq!(many[3].ask(r#"{"do":"stop"}"#)["ok"], true);
    });
}

#[test]
fn path_in_use_is_refused_and_a_dead_socket_is_replaced() {
    let file = path("file");
    File::create(&file).unwrap();
    assert!(matches!(Socket::listen(&file), Err(SocketError::NoSocket)));
    fs::remove_file(&file).unwrap();
    let used = path("used");
    let other = UnixListener::bind(&used).unwrap();
    assert!(matches!(Socket::listen(&used), Err(SocketError::InUse)));
    drop(other);
    drop(Socket::listen(&used).unwrap());
    assert!(!used.exists());
    let nowhere = path("missing").join("socket");
    assert!(matches!(Socket::listen(&nowhere), Err(SocketError::Io(_))));
}
