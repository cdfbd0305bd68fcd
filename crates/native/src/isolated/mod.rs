//! Isolated functions: an instance in a process of its own (NFP, Sun et al., SIGCOMM 2017, §4 and
//! §5.1). Its mistakes end that process and not Braid, and it sees and changes only what its
//! profile declares.
//!
//! `Isolated` is Braid's end. A packet's bytes, or its headers alone, are copied to memory that
//! both processes share (`Grant`). The process runs the function and answers with a verdict. The
//! calls of packets that are known to come next are handed over ahead (`Caller`). Everything else
//! goes through a socket as messages. A launcher starts the processes.

mod ahead;
mod call;
mod caller;
mod grant;
mod launcher;
mod link;
mod message;
mod news;
mod process;
mod worker;

pub use ahead::Coming;
pub use launcher::{become_user, launch, start_by};
pub use worker::{Confine, Phase};

use crate::description::Description;
use crate::dump::Entry;
use crate::load_error::LoadError;
use crate::output::{self, Allowed, Output};
use crate::part::Part;
use crate::stream::{Decision, News};
use crate::sys::ALONE;
use crate::value::{Config, FLOWS, IDLE, Value};
use crate::verdict::{Failed, Verdict};
use braid_ir::model::{EventDecl, TagDecl};
use braid_ir::native::{Noted, OnFailure, Problem, Profile, Reference};
use braid_packet::Packet;
use call::{Call, Op, Reply};
use caller::Lost;
use grant::Grant;
use link::Link;
use message::{Answer, Job, Request};
use process::Process;
use std::cell::RefCell;
use std::sync::Arc;

/// How long the state of a function is kept before it is fetched again, in time of packets (ns).
const KEEP_NS: u64 = 1_000_000_000;

/// The description of a library's function. Only a process of its own loads the library.
///
/// # Errors
/// The reason why the function cannot be used.
pub(crate) fn describe(library: &str, function: &str) -> Result<Arc<Description>, LoadError> {
    let failed =
        |why: String| LoadError::Isolated { label: format!("{function} of {library}"), why };
    let (library, function) = (library.to_owned(), function.to_owned());
    let mut link = Link::new().map_err(|why| failed(why.to_string()))?;
    let request = Request::Describe { library: library.clone(), function: function.clone() };
    match link.ask(&request, &[], 0) {
        Ok((Answer::Description(found), _)) => {
            let found = (*found)?;
            match found.reasons.len().max(found.ports.len()) > MOST {
                true => Err(failed(format!("it has more than {MOST} reasons or ports"))),
                false => Ok(Arc::new(found)),
            }
        }
        Ok(_) => Err(failed("it answers nonsense".to_owned())),
        Err(lost) => Err(failed(format!("its process {lost}"))),
    }
}

/// The most reasons and ports of a function.
const MOST: usize = 4096;

/// What a function may do, as it was declared when the chain was checked.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) profile: Profile,
    /// The number of its reasons, and of its ports beside left and right.
    pub(crate) reasons: u32,
    pub(crate) ports: u32,
    /// The types of its events.
    pub(crate) events: Vec<EventDecl>,
    /// Its tags.
    pub(crate) tags: Vec<TagDecl>,
    /// The most packets that it sends for each packet.
    pub(crate) sends: u32,
}

/// An instance in a process of its own.
pub(crate) struct Isolated {
    process: RefCell<Process>,
    config: Config,
    grant: Grant,
    /// Memory for what a connection brings, as bytes.
    news: Vec<u8>,
    on_failure: OnFailure,
    declared: Declared,
    /// The earliest time at which something may be due.
    wake: u64,
    /// When the function's memory is fetched again (ns).
    keep: u64,
    /// Whether a packet has come.
    started: bool,
    now: u64,
    has_outputs: bool,
}

impl Isolated {
    /// A new instance for a node of a chain.
    ///
    /// # Errors
    /// The function cannot be found, or it refuses its configuration.
    pub(crate) fn new(
        reference: &Reference,
        on_failure: OnFailure,
        declared: Declared,
        node: &str,
        config: Config,
        part: Part,
    ) -> Result<Self, String> {
        let Reference { library, function, checks, .. } = reference;
        let job = Job {
            library: library.clone(),
            function: function.clone(),
            part,
            node: node.to_owned(),
            checks: *checks,
        };
        Ok(Self {
            process: RefCell::new(Process::new(job, &config)?),
            config,
            grant: Grant::of(&declared.profile, &declared.tags),
            news: Vec::new(),
            on_failure,
            declared,
            wake: 0,
            keep: 0,
            started: false,
            now: 0,
            has_outputs: false,
        })
    }

    /// Hands over the calls of the packets that come to the function next, in this order. Returns
    /// how many of them: fewer if there is no room, or something else is to be done in between.
    pub(crate) fn announce<'a>(&mut self, coming: impl Iterator<Item = Coming<'a>>) -> usize {
        let mut coming = coming.peekable();
        let Some(first) = coming.peek() else { return 0 };
        if self.ahead() == 0 {
            self.now = self.now.max(first.now);
            self.keep_memory();
        }
        let Self { process, config, grant, keep, .. } = self;
        let Some(link) = process.get_mut().link(self.now, config) else { return 0 };
        let is_before = |one: &Coming<'_>| one.now < *keep;
        let given = coming.take_while(|one| is_before(one) && link.hand_over(grant, one)).count();
        // The process may have gone to sleep since the first one.
        link.caller.wake();
        given
    }

    /// The number of packets whose calls were handed over and that have not come yet.
    pub(crate) fn ahead(&self) -> usize {
        self.process.borrow().ahead()
    }

    /// All announced packets have come. If not, the process has run too much, and is given up.
    pub(crate) fn settle(&mut self) {
        if self.ahead() > 0 {
            self.process.get_mut().lost(self.now, &Lost::Strays);
        }
    }

    /// Runs the function for a packet.
    ///
    /// # Errors
    /// The function failed, or its process did. A packet of a process that failed is as it was.
    pub(crate) fn packet(&mut self, packet: &mut Packet, now: u64) -> Result<Verdict, Failed> {
        let code = self.call(now, |grant, link| link.run(grant, packet, now))?;
        self.checked(Verdict::of_code(code)).ok_or_else(|| self.means_nothing("verdict"))
    }

    /// Runs a stream function for what a connection brings.
    ///
    /// # Errors
    /// The function failed, or its process did. The connection goes on.
    pub(crate) fn connection(&mut self, news: News<'_>, now: u64) -> Result<Decision, Failed> {
        let mut given = std::mem::take(&mut self.news);
        news::put(news, &mut given);
        let length = u32::try_from(given.len()).unwrap_or(u32::MAX);
        let call = Call { length, ..Call::new(Op::Connection, now) };
        let code = self.call(now, |_, link| match link.caller.memory.put(ALONE, &given) {
            true => link.caller.call(&call),
            false => Err(Lost::TooLong),
        });
        self.news = given;
        let decision = Decision::of_code(code?).filter(|decision| match decision {
            Decision::Reset(reason) => *reason < self.declared.reasons,
            Decision::Forward | Decision::Bypass => true,
        });
        decision.ok_or_else(|| self.means_nothing("decision"))
    }

    /// The process has given a verdict or decision that means nothing.
    fn means_nothing(&mut self, what: &str) -> Failed {
        let why = format!("gives a {what} that it does not have");
        self.process.get_mut().problem(Problem::Misuse(why));
        self.on_failure()
    }

    /// What becomes of a packet, or of the bytes of a connection, if the process fails.
    fn on_failure(&self) -> Failed {
        match self.on_failure {
            OnFailure::Drop => Failed::Drop,
            OnFailure::Bypass => Failed::Bypass,
        }
    }

    /// Calls the process. Returns the code of its answer.
    fn call(
        &mut self,
        now: u64,
        run: impl FnOnce(&mut Grant, &mut Link) -> Result<Reply, Lost>,
    ) -> Result<i32, Failed> {
        self.started = true;
        self.now = self.now.max(now);
        self.keep_memory();
        let on_failure = self.on_failure();
        let Self { process, config, grant, .. } = self;
        let process = process.get_mut();
        process.packets += 1;
        let Some(link) = process.link(self.now, config) else {
            process.problem(Problem::Away);
            return Err(on_failure);
        };
        let problem = match run(grant, link) {
            Ok(reply) if reply.fits => {
                self.wake = reply.wake;
                self.has_outputs |= reply.has_outputs;
                return reply.code.ok_or(Failed::Drop);
            }
            Ok(_) => Problem::Misuse("makes a packet too long".to_owned()),
            Err(Lost::TooLong) => {
                Problem::Misuse("gets a packet that is too long for isolation".to_owned())
            }
            Err(lost) => {
                process.lost(self.now, &lost);
                return Err(on_failure);
            }
        };
        process.problem(problem);
        Err(on_failure)
    }

    /// The verdict, if it is one that the function has.
    fn checked(&self, verdict: Option<Verdict>) -> Option<Verdict> {
        verdict.filter(|verdict| match verdict {
            Verdict::Drop(reason) => *reason < self.declared.reasons,
            Verdict::Port(port) => *port < self.declared.ports,
            Verdict::Forward | Verdict::Back | Verdict::Consume => true,
        })
    }

    /// Fetches the function's memory if it is time, for the process after this one.
    fn keep_memory(&mut self) {
        if self.now >= self.keep {
            self.keep = self.now.saturating_add(KEEP_NS);
            self.process.get_mut().keep(self.now);
        }
    }

    /// Processes everything that is due by a time.
    pub(crate) fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
        if now < self.wake {
            return;
        }
        let Self { process, config, .. } = self;
        let process = process.get_mut();
        // A process that is not there has nothing due until packets come again.
        self.wake = u64::MAX;
        let Some(link) = process.link(self.now, config) else { return };
        match link.caller.call(&Call::new(Op::Advance, now)) {
            Ok(reply) => {
                self.wake = reply.wake;
                self.has_outputs |= reply.has_outputs;
            }
            Err(lost) => process.lost(self.now, &lost),
        }
    }

    /// Asks the process; `None` if there is none, or if it fails.
    fn ask(&self, request: &Request, bytes: &[u8]) -> Option<(Answer, Vec<u8>)> {
        self.process.borrow_mut().ask(request, bytes, self.now)
    }

    /// Changes the value of a parameter.
    ///
    /// # Errors
    /// The function refuses the new value and keeps the previous one.
    pub(crate) fn change(&mut self, name: &str, value: Value) -> Result<(), String> {
        if name == FLOWS || name == IDLE {
            return Err(format!("`{name}` of a native function cannot be changed while it runs"));
        }
        let request = Request::Change { name: name.to_owned(), value: value.clone() };
        // Without a process, the next one gets the value.
        if let Some((Answer::Done(done), _)) = self.ask(&request, &[]) {
            done?;
        }
        if let Some((_, old)) = self.config.iter_mut().find(|(known, _)| known == name) {
            *old = value;
        }
        // Whatever the function does with the change may be due, and may have messages.
        (self.wake, self.has_outputs) = (0, true);
        Ok(())
    }

    /// The value of a parameter.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.config.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub(crate) fn has_outputs(&self) -> bool {
        self.has_outputs || !self.process.borrow().outputs.is_empty()
    }

    /// The outputs since the last call. The process may say anything, so they are checked.
    pub(crate) fn take_outputs(&mut self) -> Vec<Output> {
        let mut outputs = std::mem::take(&mut self.process.get_mut().outputs);
        if std::mem::take(&mut self.has_outputs)
            && let Some((Answer::Outputs(more), _)) = self.ask(&Request::Outputs, &[])
        {
            let Declared { events, ports, sends, .. } = &self.declared;
            let (allowed, mut left) = (Allowed { events, ports: *ports }, *sends);
            for output in more.into_iter().take(output::MOST) {
                // Several timers may have run since the last time.
                let is_one = matches!(&output, Output::Packet(sent) if !sent.from_timer);
                let checked = match is_one && left == 0 {
                    true => Err(format!("sends more than {sends} packets in one call")),
                    false => output.check(allowed),
                };
                left -= u32::from(is_one && checked.is_ok());
                match checked {
                    Ok(()) => outputs.push(output),
                    Err(wrong) => self.process.get_mut().problem(Problem::Misuse(wrong)),
                }
            }
        }
        outputs
    }

    /// The state that the function shows; nothing while its process is not there.
    pub(crate) fn report(&self) -> Vec<Entry> {
        match self.ask(&Request::Report, &[]) {
            Some((Answer::Report(entries), _)) => entries,
            _ => Vec::new(),
        }
    }

    /// The problems so far. Of a process that failed, the ones that it had when its memory was
    /// fetched.
    pub(crate) fn problems(&self) -> Vec<Noted> {
        let present = match self.ask(&Request::Problems, &[]) {
            Some((Answer::Problems(noted), _)) => noted,
            _ => Vec::new(),
        };
        self.process.borrow().problems_with(present)
    }

    /// The function's memory. While its process is not there, that is the memory that the next
    /// process would get.
    pub(crate) fn save(&mut self) -> Option<Vec<u8>> {
        match self.ask(&Request::Save, &[]) {
            Some((Answer::Saved(is_saved), bytes)) => is_saved.then_some(bytes),
            _ => self.process.get_mut().memory.clone(),
        }
    }

    /// Goes on from the memory of an earlier instance.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self.ask(&Request::Restore, bytes) {
            Some((Answer::Done(done), _)) => done?,
            _ => return Err("its process has failed".to_owned()),
        }
        self.process.get_mut().memory = Some(bytes.to_vec());
        (self.wake, self.started) = (0, true);
        Ok(())
    }

    /// The number of timer firings that this process has skipped because the time jumped.
    pub(crate) fn timers_skipped(&self) -> u64 {
        match self.ask(&Request::TimersSkipped, &[]) {
            Some((Answer::Count(count), _)) => count,
            _ => 0,
        }
    }

    pub(crate) fn observed(&self) -> Profile {
        match self.ask(&Request::Observed, &[]) {
            Some((Answer::Observed(profile), _)) => profile,
            _ => Profile::default(),
        }
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        now >= self.wake || !self.started
    }
}
