//! Helpers for the command's tests: running the command, a folder with files, captures.
#![allow(dead_code, reason = "each test program uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use braid_io::{CaptureReader, CaptureWriter, PacketSink, PacketSource, Precision};
use braid_packet::{Field, Link, Packet, Shape, build_fresh};
use serde_json::Value;

/// A function that lets packets of at most `most` bytes pass and counts them by source.
pub const LIMIT: &str = "\
nf limit(most: size = 100 B, ok: rules) {
  state seen: u32 per ip.src = 0, idle 60 s;
  match {
    forward and pkt.len <= most and has ip => { seen += 1; output; }
    backward and packet in ok => output;
    else => drop \"too long\";
  }
}
";

/// The chain `edge` of one `limit` between `lan` (10.0.0.0/8) and `wan`.
pub const EDGE: &str = "\
chain edge {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  f = limit(ok: rules(\"ok.rules\"));
  path lan <-> f <-> wan;
}
";

/// The output and exit code of a command.
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|why| panic!("{why}\n{}\n{}", self.out, self.err))
    }

    /// Checks that the command ended with this code.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "out: {}\nerr: {}", self.out, self.err);
        self
    }

    /// Checks that standard output contains this text.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.out.contains(text), "no {text:?} in\n{}", self.out);
        self
    }

    /// Checks that standard error contains this text.
    #[track_caller]
    pub fn warns(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no {text:?} in\n{}", self.err);
        self
    }
}

/// The command itself.
pub fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_braid"))
}

pub fn ended(output: &Output) -> Ended {
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the command.
pub fn braid(args: &[&str]) -> Ended {
    ended(&command().args(args).output().expect("the command starts"))
}

/// A temporary folder for one test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A folder with `chain.braid` (`LIMIT` and `EDGE`) and its `ok.rules`.
    pub fn edge() -> Self {
        let folder = Self::new();
        folder.write("chain.braid", &format!("{LIMIT}\n{EDGE}"));
        folder.write("ok.rules", "pass proto udp\n");
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> &Self {
        std::fs::write(self.path(name), text).expect("a file");
        self
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file")
    }

    pub fn capture(&self, name: &str, packets: &[Packet]) -> &Self {
        let mut writer = CaptureWriter::create(&self.path(name), Precision::Nano).expect("created");
        for packet in packets {
            writer.write_packet(packet).expect("written");
        }
        writer.finish().expect("finished");
        self
    }

    pub fn packets(&self, name: &str) -> Vec<Packet> {
        packets(&self.path(name))
    }

    /// Runs the command in the folder.
    pub fn braid(&self, args: &[&str]) -> Ended {
        let output = command().current_dir(self.0.path()).args(args).output();
        ended(&output.expect("the command starts"))
    }
}

pub fn packets(path: &Path) -> Vec<Packet> {
    let mut reader = CaptureReader::open(path).expect("a capture");
    std::iter::from_fn(|| reader.next_packet().expect("readable")).collect()
}

/// A second in nanoseconds.
pub const S: u64 = 1_000_000_000;

/// A UDP packet from 10.0.0.`host`:1000 to 192.0.2.1:53 with `payload` bytes of payload.
pub fn request(time_ns: u64, host: u8, payload: usize) -> Packet {
    let src = 0x0a00_0000 + u128::from(host);
    udp(time_ns, (src, 1000), (0xc000_0201, 53), payload)
}

/// The reply to [`request`].
pub fn reply(time_ns: u64, host: u8, payload: usize) -> Packet {
    let dst = 0x0a00_0000 + u128::from(host);
    udp(time_ns, (0xc000_0201, 53), (dst, 1000), payload)
}

pub fn udp(time_ns: u64, src: (u128, u128), dst: (u128, u128), payload: usize) -> Packet {
    let fields = [
        (Field::IpSrc, src.0),
        (Field::UdpSport, src.1),
        (Field::IpDst, dst.0),
        (Field::UdpDport, dst.1),
    ];
    build_fresh(Link::Ethernet, time_ns, Shape::Udp4, &fields, &vec![0; payload]).expect("built")
}
