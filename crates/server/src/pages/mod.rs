//! A server of HTTP/1.1 that gives the files of a folder.

mod folder;
mod reply;

use crate::events::Events;
use crate::server::{Server, Socket};
use braid_http::{Http, Part};
use braid_native::{Flow, Host};
use braid_tcp::{Reader, Stored as _, put_bytes};
use folder::Files;
use reply::Reply;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

/// The most bytes of all files, unless it is configured.
const SIZE: u128 = 64 << 20;
/// How long a client may be silent, unless it is configured (ns).
const PATIENCE: u128 = 60_000_000_000;

/// The connection of a client that asks for files.
#[derive(Debug)]
pub struct Pages {
    http: Http,
    /// The response that is being written.
    reply: Option<Reply>,
    /// When the client is given up, unless it reads or sends something (ns).
    until: Option<u64>,
    /// How much the socket could take and give last. It changes when the client does something.
    last: (usize, usize),
    /// Whether the file that was being written is no more the same.
    is_lost: bool,
}

/// What all connections share.
#[derive(Debug)]
pub struct Shared {
    files: Files,
    patience: u64,
    /// The requests.
    counts: [u64; 1],
}

impl Pages {
    /// Writes what there is room for. Returns whether the response is complete.
    fn write(&mut self, socket: &mut Socket<'_>) -> bool {
        let Some(reply) = &mut self.reply else { return true };
        let count = socket.write(&reply.head);
        reply.head.drain(..count);
        if !reply.head.is_empty() {
            return false;
        }
        let Some((file, written)) = &mut reply.file else { return true };
        *written += socket.write(file.bytes.get(*written..).unwrap_or_default());
        *written >= file.bytes.len()
    }

    /// Reads up to the end of the next request's head. Returns the response.
    fn read(&mut self, socket: &mut Socket<'_>, files: &Files) -> Option<Reply> {
        let now = socket.now();
        loop {
            let bytes = socket.readable();
            let (len, mut rest) = (bytes.len(), bytes);
            let (mut is_whole, mut reply) = (true, None);
            match self.http.next(true, &mut rest) {
                Some(Part::Head(head)) => reply = Some(Reply::to(&head, files, now)),
                Some(Part::Malformed | Part::Crowded) => reply = Some(Reply::to_malformed(now)),
                Some(Part::Body(..) | Part::End) => {}
                None => is_whole = false,
            }
            let taken = len - rest.len();
            if !is_whole && self.http.is_over(true) && len > 0 {
                reply = Some(Reply::to_malformed(now));
            } else if !is_whole && taken == 0 {
                return None;
            }
            socket.consume(taken);
            if reply.is_some() {
                self.http.answer();
                return reply;
            }
        }
    }
}

impl Server for Pages {
    const ABOUT: &CStr = c"gives the files of a folder by HTTP";
    const COUNTERS: &[&str] = &["requests"];
    type Shared = Shared;

    fn shared(host: &Host<'_>) -> Result<Shared, String> {
        let folder = host.config_text("folder", 0).filter(|folder| !folder.is_empty());
        let folder = folder.ok_or("it needs a parameter `folder`: the folder with the files")?;
        let number = |name, otherwise| {
            let number = host.config(name).unwrap_or(otherwise);
            u64::try_from(number).map_err(|_| format!("`{name}` is too large"))
        };
        let files = Files::of(Path::new(OsStr::from_bytes(&folder)), number("size", SIZE)?)?;
        Ok(Shared { files, patience: number("patience", PATIENCE)?, counts: [0] })
    }

    fn counts(shared: &mut Shared) -> &mut [u64] {
        &mut shared.counts
    }

    fn accept(_flow: Flow, _shared: &mut Shared) -> Self {
        Self { http: Http::default(), reply: None, until: None, last: (0, 0), is_lost: false }
    }

    fn ready(&mut self, socket: &mut Socket<'_>, shared: &mut Shared) {
        let Events { has_failed, .. } = socket.events();
        if has_failed {
            return;
        }
        let can = |socket: &Socket<'_>| (socket.room(), socket.readable().len());
        let is_busy = can(socket) != self.last;
        if self.is_lost {
            socket.reset();
            return;
        }
        while self.write(socket) {
            if self.reply.take().is_some_and(|reply| reply.closes) {
                socket.close();
                return;
            }
            self.reply = self.read(socket, &shared.files);
            match &self.reply {
                Some(_) => shared.counts[0] += 1,
                None if socket.events().is_at_end => {
                    socket.close();
                    return;
                }
                None => break,
            }
        }
        self.last = can(socket);
        let silent = self.until.filter(|_| !is_busy);
        if silent.is_some_and(|until| until <= socket.now()) {
            match self.reply {
                Some(_) => socket.reset(),
                None => socket.close(),
            }
        } else if silent.is_none() {
            self.until = Some(socket.now().saturating_add(shared.patience));
        }
    }

    fn deadline(&self) -> Option<u64> {
        self.until
    }

    fn memory(&self) -> usize {
        self.http.memory() + self.reply.as_ref().map_or(0, |reply| reply.head.capacity())
    }

    fn put(&mut self, out: &mut Vec<u8>) {
        let mut http = Vec::new();
        self.http.put(&mut http);
        put_bytes(&http, out);
        self.until.put(out);
        self.is_lost.put(out);
        self.reply.is_some().put(out);
        if let Some(Reply { head, file, closes }) = &self.reply {
            put_bytes(head, out);
            closes.put(out);
            file.is_some().put(out);
            if let Some((file, written)) = file {
                put_bytes(file.path.as_bytes(), out);
                file.tag.put(out);
                (*written as u64).put(out);
            }
        }
    }

    fn read(from: &mut Reader<'_>, _flow: Flow, shared: &mut Shared) -> Option<Self> {
        let mut http = from.bytes()?;
        let http = Http::read(&mut http).filter(|_| http.is_empty())?;
        let mut pages = Self { http, reply: None, until: None, last: (0, 0), is_lost: false };
        (pages.until, pages.is_lost) = (Option::get(from)?, bool::get(from)?);
        if !bool::get(from)? {
            return Some(pages);
        }
        let (head, closes) = (from.bytes()?.to_vec(), bool::get(from)?);
        let mut file = None;
        if bool::get(from)? {
            let path = std::str::from_utf8(from.bytes()?).ok()?;
            let same = shared.files.same(path, u64::get(from)?);
            let written = usize::try_from(u64::get(from)?).ok()?;
            pages.is_lost |= same.is_none();
            file = same.map(|file| (Arc::clone(&file), written.min(file.bytes.len())));
        }
        pages.reply = Some(Reply { head, file, closes });
        Some(pages)
    }
}
