//! The files of streams: their names, and a limited number of them open at the same time.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::hash::Hash;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use braid_packet::FlowKey;

/// The most files that are open at the same time.
const MOST_OPEN: usize = 128;
/// The system's errors for too many open files: of the process, of the machine.
const TOO_MANY: [i32; 2] = [libc::EMFILE, libc::ENFILE];

/// Files in a folder, by the keys of their streams.
pub struct Files<K> {
    dir: PathBuf,
    names: HashMap<K, String>,
    open: HashMap<K, File>,
    /// The order in which the open ones were opened. It may hold keys of closed ones.
    order: VecDeque<K>,
    most: usize,
    /// The number of files that were made.
    pub made: u64,
}

impl<K: Copy + Eq + Hash> Files<K> {
    /// No files in a folder.
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            names: HashMap::new(),
            open: HashMap::new(),
            order: VecDeque::new(),
            most: MOST_OPEN,
            made: 0,
        }
    }

    /// Writes bytes at a place of a stream's file. Makes the file if there is none.
    pub fn write(&mut self, key: K, flow: &FlowKey, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file(key, flow)?.write_all_at(bytes, at)
    }

    /// Reads bytes of a stream's file. Returns whether the file has them.
    pub fn read(&mut self, key: K, flow: &FlowKey, at: u64, bytes: &mut [u8]) -> io::Result<bool> {
        if !self.names.contains_key(&key) {
            return Ok(false);
        }
        match self.file(key, flow)?.read_exact_at(bytes, at) {
            Err(why) if why.kind() == ErrorKind::UnexpectedEof => Ok(false),
            result => result.map(|()| true),
        }
    }

    /// Forgets a stream, and returns the name of its file, if it has one.
    pub fn close(&mut self, key: K) -> Option<String> {
        self.open.remove(&key);
        self.names.remove(&key)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn file(&mut self, key: K, flow: &FlowKey) -> io::Result<&File> {
        if !self.open.contains_key(&key) {
            while self.open.len() >= self.most {
                let Some(oldest) = self.order.pop_front() else { break };
                self.open.remove(&oldest);
            }
            let file = match self.opened(key, flow) {
                Err(why) if why.raw_os_error().is_some_and(|code| TOO_MANY.contains(&code)) => {
                    self.most = (self.open.len() / 2).max(1);
                    self.open.clear();
                    self.order.clear();
                    self.opened(key, flow)?
                }
                other => other?,
            };
            self.order.push_back(key);
            if self.order.len() > 4 * MOST_OPEN {
                let open = &self.open;
                self.order.retain(|one| *one == key || open.contains_key(one));
            }
            self.open.insert(key, file);
        }
        self.open.get(&key).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn opened(&mut self, key: K, flow: &FlowKey) -> io::Result<File> {
        let mut how = OpenOptions::new();
        how.read(true).write(true);
        if let Some(name) = self.names.get(&key) {
            return how.open(self.dir.join(name));
        }
        how.create_new(true);
        let first = name(flow);
        let numbered = |number: u64| match number {
            0 => first.clone(),
            _ => format!("{first}c{number}"),
        };
        let mut number = 0;
        loop {
            let name = numbered(number);
            match how.open(self.dir.join(&name)) {
                Ok(file) => {
                    self.names.insert(key, name);
                    self.made += 1;
                    return Ok(file);
                }
                Err(why) if why.kind() == ErrorKind::AlreadyExists => {
                    number = free(|number| self.dir.join(numbered(number)).exists());
                }
                Err(why) => return Err(why),
            }
        }
    }
}

/// The first number that is not taken, if all before it are and none behind it is. 0 is taken.
fn free(is_taken: impl Fn(u64) -> bool) -> u64 {
    let (mut taken, mut free) = (0, 1);
    while is_taken(free) {
        (taken, free) = (free, free.saturating_mul(2));
    }
    while free - taken > 1 {
        let middle = taken + (free - taken) / 2;
        if is_taken(middle) { taken = middle } else { free = middle }
    }
    free
}

/// The name of the first file of a flow, as tcpflow calls it.
pub fn name(flow: &FlowKey) -> String {
    let end = |address: u128, port: u16| match u32::try_from(address) {
        Ok(address) if flow.version == 4 => {
            let [a, b, c, d] = Ipv4Addr::from(address).octets();
            format!("{a:03}.{b:03}.{c:03}.{d:03}.{port:05}")
        }
        _ => format!("{}.{port:05}", Ipv6Addr::from(address)),
    };
    format!("{}-{}", end(flow.src, flow.sport), end(flow.dst, flow.dport))
}

#[cfg(test)]
mod tests {
    use super::{Files, free, name};
    use braid_packet::FlowKey;

    const FLOW: FlowKey = FlowKey {
        version: 4,
        src: 0xc0a8_010a,
        dst: 0x0a00_0001,
        proto: 6,
        sport: 1234,
        dport: 80,
    };

    #[test]
    fn names_are_those_of_tcpflow() {
        assert_eq!(name(&FLOW), "192.168.001.010.01234-010.000.000.001.00080");
        let flow = FlowKey { version: 6, src: 0x2001_0db8 << 96 | 1, dst: 0xfe80 << 112, ..FLOW };
        assert_eq!(name(&flow), "2001:db8::1.01234-fe80::.00080");
    }

    #[test]
    fn first_free_number_is_found() {
        for first in 1..70 {
            assert_eq!(free(|number| number < first), first);
        }
    }

    #[test]
    fn streams_share_few_open_files_and_flows_get_numbers() {
        let dir = std::env::temp_dir().join(format!("braid-streams-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut files = Files::new(&dir);
        files.most = 2;
        for round in 0..3_u8 {
            for key in 0..7 {
                files.write(key, &FLOW, u64::from(round), &[b'a' + round]).unwrap();
                assert!(files.open.len() <= 2);
            }
        }
        let mut read = [0; 3];
        assert!(files.read(0, &FLOW, 0, &mut read).unwrap());
        assert!(!files.read(0, &FLOW, 1, &mut [0; 3]).unwrap());
        assert!(!files.read(9, &FLOW, 0, &mut [0; 3]).unwrap());
        assert_eq!((&read, files.made), (b"abc", 7));
        for key in 0..7 {
            let file = files.close(key).unwrap();
            let number = if key == 0 { String::new() } else { format!("c{key}") };
            assert_eq!(file, format!("{}{number}", name(&FLOW)));
            assert_eq!(std::fs::read(dir.join(file)).unwrap(), b"abc");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
