//! A live run between two wires, and the hosts at their other ends.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use braid_io::{PacketPort, Port, wait};
use braid_packet::frame::FRAME;
use braid_packet::{Frame, Packet, Pool};
use serde_json::Value;

use crate::common::{Ended, Folder, command, ended};
use crate::world::Space;

/// The time after which a test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A live run. Its chain has the interfaces `lan` and `wan`.
pub struct Site {
    inside: Space,
    outside: Space,
    pub folder: Folder,
    pool: Pool,
    /// The hosts' ends of the wires.
    pub lan: PacketPort,
    pub wan: PacketPort,
    run: Child,
}

impl Site {
    /// Runs `chain.braid` of a folder with these options, between new wires.
    pub fn new(folder: Folder, options: &[&str]) -> Option<Self> {
        let (inside, outside) = (Space::new()?, Space::new()?);
        inside.join("lan0", &outside, "lan1");
        inside.join("wan0", &outside, "wan1");
        let open = |name: &str| outside.within(|| PacketPort::open(name)).expect("a veth device");
        let (lan, wan) = (open("lan1"), open("wan1"));
        let devices = ["--if", "lan=af_packet:lan0", "wan=af_packet:wan0", "--ctl", "ctl"];
        let args = [&["run", "chain.braid", "--json"], &devices[..], options].concat();
        let run = inside.within(|| {
            let mut run = command();
            run.args(args).current_dir(folder.path(""));
            run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the run starts")
        });
        let pool = Pool::new(1_024, FRAME).expect("memory");
        let mut site = Self { inside, outside, folder, pool, lan, wan, run };
        site.until("the run answers", |site| {
            site.socket().exists() && site.ask("status").code == 0
        });
        Some(site)
    }

    /// The namespace of the run.
    pub fn inside(&self) -> &Space {
        &self.inside
    }

    /// Removes the wire at `lan`, waits until the run has seen it, and makes a new one.
    pub fn make_lan_again(&mut self) {
        self.inside.ip("link del lan0");
        self.until("the device is missing", |site| {
            site.json("status")["devices"][0]["state"] == "missing"
        });
        self.inside.join("lan0", &self.outside, "lan1");
        self.lan = self.outside.within(|| PacketPort::open("lan1")).expect("a veth device");
    }

    /// The number of the run's process.
    pub fn process(&self) -> u32 {
        self.run.id()
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path("ctl")
    }

    /// The answer of `braid ctl` to these words.
    pub fn ask(&self, words: &str) -> Ended {
        let words: Vec<&str> = words.split_whitespace().collect();
        ended(&self.ctl(&words).output().expect("the command starts"))
    }

    /// The JSON answer of `braid ctl` to these words.
    #[track_caller]
    pub fn json(&self, words: &str) -> Value {
        self.ask(&format!("{words} --json")).code(0).json()
    }

    /// `braid ctl` with these arguments.
    pub fn ctl(&self, args: &[&str]) -> Command {
        let mut ctl = command();
        ctl.current_dir(self.folder.path("")).args(["ctl", "ctl"]).args(args);
        ctl
    }

    /// Starts `braid ctl` with these arguments.
    pub fn start(&self, args: &[&str]) -> Child {
        let mut ctl = self.ctl(args);
        ctl.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts")
    }

    /// Waits until something holds.
    #[track_caller]
    pub fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(self) {
            if let Ok(Some(code)) = self.run.try_wait() {
                let mut said = String::new();
                let _ = self.run.stderr.as_mut().unwrap().read_to_string(&mut said);
                panic!("{what}: the run ended with {code}: {said}");
            }
            assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends packets into `lan`.
    pub fn send(&mut self, packets: &[Packet]) {
        let mut frames = packets.iter().map(|packet| Frame::of(packet.data())).collect();
        self.lan.send(&mut self.pool, &mut frames, &mut |_, why| panic!("not sent: {why:?}"));
    }

    /// The frames that leave by `wan`, when there are this many.
    #[track_caller]
    pub fn arrived(&mut self, count: usize) -> Vec<Vec<u8>> {
        let (mut found, end) = (Vec::new(), Instant::now() + PATIENCE);
        while found.len() < count {
            assert!(Instant::now() < end, "{} of {count} frames arrived", found.len());
            let mut frames = Vec::new();
            let lost = &mut |why| panic!("lost: {why:?}");
            self.wan.receive(&mut self.pool, &mut frames, lost).unwrap();
            found.extend(frames.iter().map(|frame| frame.bytes().to_vec()));
            wait([self.wan.descriptor()].into_iter(), Duration::from_millis(10)).unwrap();
        }
        found
    }

    /// The end of a run that ends by itself, or after `stop`.
    pub fn end(mut self) -> Ended {
        let end = Instant::now() + PATIENCE;
        while self.run.try_wait().expect("the run's state").is_none() {
            if Instant::now() > end {
                let _ = self.run.kill();
                panic!("the run does not end");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let status = self.run.wait().expect("the run's end");
        let mut output = Output { status, stdout: Vec::new(), stderr: Vec::new() };
        let (out, err) = (self.run.stdout.take(), self.run.stderr.take());
        out.unwrap().read_to_end(&mut output.stdout).unwrap();
        err.unwrap().read_to_end(&mut output.stderr).unwrap();
        ended(&output)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.run.kill();
        let _ = self.run.wait();
    }
}

/// A run between two wires. Ends the test, and says so, where there can be none.
macro_rules! site {
    ($name:ident, $folder:expr, $options:expr) => {
        #[allow(unused_mut, reason = "a test may only look")]
        let Some(mut $name) = $crate::site::Site::new($folder, $options) else {
            eprintln!("NOT RUN: network namespaces need root, unshare and ip");
            return;
        };
    };
}
pub(crate) use site;
