//! The user that a run becomes (`--user`).

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use rustix::process::{Gid, Uid};
use rustix::thread::{
    set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// A user of the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    pub name: String,
    pub uid: u32,
    /// The user's group. The run is in no other one.
    pub gid: u32,
}

impl User {
    /// Finds a user by name in `/etc/passwd`.
    pub fn named(name: &str) -> Result<Self, String> {
        let all = fs::read_to_string("/etc/passwd").map_err(|why| format!("/etc/passwd: {why}"))?;
        let user = all.lines().find_map(|line| Self::of(line).filter(|user| user.name == name));
        user.ok_or_else(|| format!("there is no user `{name}` in /etc/passwd"))
    }

    /// `name:password:uid:gid:…`
    fn of(line: &str) -> Option<Self> {
        let mut words = line.split(':');
        let name = words.next()?.to_owned();
        let (uid, gid) = (words.nth(1)?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { name, uid, gid })
    }

    /// Makes a file the user's.
    pub fn own(&self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }

    /// Becomes the user for good. Capabilities stay permitted, until they are given up.
    pub fn become_it(&self) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_keep_capabilities(true)?;
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        Ok(set_keep_capabilities(false)?)
    }

    /// Whether the permissions of a folder let the user write there.
    pub fn may_write(&self, folder: &Path) -> bool {
        fs::metadata(folder).is_ok_and(|folder| {
            let shift = match (folder.uid() == self.uid, folder.gid() == self.gid) {
                (true, _) => 6,
                (false, true) => 3,
                (false, false) => 0,
            };
            folder.mode() >> shift & 0o3 == 0o3
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let root = User { name: "root".into(), uid: 0, gid: 0 };
        assert_eq!(User::named("root"), Ok(root));
        assert!(User::named("no-such-user").unwrap_err().contains("`no-such-user`"));
        let daemon = User { name: "d".into(), uid: 7, gid: 9 };
        assert_eq!(User::of("d:x:7:9:text:/home:/bin/sh"), Some(daemon));
        for wrong in ["", "d", "d:x:7", "d:x:a:9"] {
            assert_eq!(User::of(wrong), None, "{wrong}");
        }
    }
}
