//! Network namespaces for a test, joined by veth devices. They end with their values.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace. A process holds it open.
pub struct Space {
    holder: Child,
    file: File,
}

impl Space {
    /// A new namespace, or `None` where the machine does not permit one.
    pub fn new() -> Option<Self> {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "ip link set lo up && echo ready && exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let read = BufReader::new(holder.stdout.take()?).read_line(&mut line);
        let file = File::open(format!("/proc/{}/ns/net", holder.id()));
        match (read, file) {
            (Ok(6), Ok(file)) => {
                let space = Self { holder, file };
                for key in ["all", "default"] {
                    space.write(&format!("net/ipv6/conf/{key}/disable_ipv6"), "1");
                }
                Some(space)
            }
            _ => {
                let _ = holder.kill();
                let _ = holder.wait();
                None
            }
        }
    }

    /// Calls `work` in the namespace.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(self.file.as_fd(), kind).unwrap();
            work()
        };
        thread::scope(|scope| scope.spawn(inside).join().unwrap())
    }

    /// Calls `ip` with these words.
    pub fn ip(&self, words: &str) {
        self.within(|| {
            let done = Command::new("ip").args(words.split_whitespace()).output().unwrap();
            assert!(done.status.success(), "ip {words}: {}", String::from_utf8_lossy(&done.stderr));
        });
    }

    /// Writes a setting of the kernel.
    fn write(&self, key: &str, value: &str) {
        self.within(|| std::fs::write(format!("/proc/sys/{key}"), value)).unwrap();
    }

    /// Joins two namespaces by a wire.
    pub fn join(&self, device: &str, other: &Space, other_device: &str) {
        self.join_queues(device, other, other_device, 1);
    }

    /// Joins two namespaces by a wire whose ends have this number of queues.
    pub fn join_queues(&self, device: &str, other: &Space, other_device: &str, queues: u32) {
        let there = other.holder.id();
        let queues = format!("numtxqueues {queues} numrxqueues {queues}");
        self.ip(&format!(
            "link add {device} {queues} type veth peer name {other_device} {queues} netns {there}"
        ));
        self.ip(&format!("link set {device} up"));
        other.ip(&format!("link set {other_device} up"));
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// The namespaces of a test. Says so, and ends the test, where none can be made.
macro_rules! spaces {
    ($($name:ident),+) => {
        $(let Some($name) = $crate::world::Space::new() else {
            eprintln!("NOT RUN: network namespaces need root, unshare and ip");
            return;
        };)+
    };
}
pub(crate) use spaces;
