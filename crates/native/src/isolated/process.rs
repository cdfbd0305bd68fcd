//! The process of an isolated function as it fails and comes back.

use super::caller::Lost;
use super::link::Link;
use super::message::{Answer, Job, Request};
use crate::output::{Log, Output};
use crate::value::Config;
use braid_ir::native::{Noted, Problem, Problems};

/// A process that fails again within this time of packets (ns) stays away for longer each time.
const SOON_NS: u64 = 1_000_000_000;
/// The shortest and the longest time (ns) for which a process stays away when it fails again.
const AWAY_NS: [u64; 2] = [10_000_000, 10_000_000_000];

/// An isolated function's process, or the wait for the next one.
pub(super) struct Process {
    job: Job,
    link: Option<Link>,
    /// The function's memory, for the next process.
    pub(super) memory: Option<Vec<u8>>,
    /// Whether the function can save its memory, as far as is known.
    can_save: bool,
    /// When that memory was fetched, in time of packets (ns).
    kept_ns: u64,
    /// When this process began, and until when there is none (ns).
    began_ns: u64,
    away_until_ns: u64,
    away_ns: u64,
    /// Problems with processes, and of the function in processes that have failed.
    problems: Problems,
    /// The function's problems in the present process, when its memory was fetched.
    present: Vec<Noted>,
    /// The number of packets so far.
    pub(super) packets: u64,
    /// Messages about the process.
    pub(super) outputs: Vec<Output>,
}

impl Process {
    /// Starts a process with an instance.
    pub(super) fn new(job: Job, config: &Config) -> Result<Self, String> {
        let link = begin(&job, config).map_err(|unbegun| unbegun.why)?;
        Ok(Self {
            job,
            link: Some(link),
            memory: None,
            can_save: true,
            kept_ns: 0,
            began_ns: 0,
            away_until_ns: 0,
            away_ns: 0,
            problems: Problems::default(),
            present: Vec::new(),
            packets: 0,
            outputs: Vec::new(),
        })
    }

    /// The way to the process. Starts it if it has failed and its time has come.
    pub(super) fn link(&mut self, now: u64, config: &Config) -> Option<&mut Link> {
        if self.link.is_none() && now >= self.away_until_ns {
            self.began_ns = now;
            match begin(&self.job, config).and_then(|link| self.go_on(now, link)) {
                Ok(link) => self.link = Some(link),
                Err(Unbegun { why, is_late }) => {
                    let [short, long] = AWAY_NS;
                    self.stay_away(now, if is_late { long } else { short });
                    self.log(now, "error", format!("no new process: {why}"));
                }
            }
        }
        self.link.as_mut()
    }

    /// The number of packets whose calls were handed over ahead and that have not come yet.
    pub(super) fn ahead(&self) -> usize {
        self.link.as_ref().map_or(0, |link| link.expected.len())
    }

    /// Gives a new process the memory of the last one.
    fn go_on(&mut self, now: u64, mut link: Link) -> Result<Link, Unbegun> {
        let Some(memory) = &self.memory else {
            self.log(now, "info", "a new process begins anew".to_owned());
            return Ok(link);
        };
        match done(&mut link, &Request::Restore, memory) {
            Ok(()) => {
                let age = now.saturating_sub(self.kept_ns) / 1_000_000;
                let text = format!("a new process goes on from memory that is {age} ms old");
                self.log(now, "info", text);
                Ok(link)
            }
            Err(unbegun) => {
                // The process after this one does without it.
                self.memory = None;
                Err(unbegun)
            }
        }
    }

    /// Gives a process up that has failed.
    pub(super) fn lost(&mut self, now: u64, how: &Lost) {
        self.link = None;
        self.problems.append(std::mem::take(&mut self.present));
        let is_soon = self.began_ns > 0 && now.saturating_sub(self.began_ns) < SOON_NS;
        match how {
            // Each further one would hold packets up again.
            Lost::Late => self.stay_away(now, AWAY_NS[1]),
            _ if is_soon => self.stay_away(now, AWAY_NS[0]),
            _ => (self.away_ns, self.away_until_ns) = (0, now),
        }
        self.problem(Problem::Lost(how.to_string()));
        let away = self.away_ns / 1_000_000;
        self.log(now, "error", format!("the process {how}; the next one comes in {away} ms"));
    }

    /// Lets packets do without a process for twice as long as before, and at least for this time.
    fn stay_away(&mut self, now: u64, least_ns: u64) {
        self.away_ns = self.away_ns.saturating_mul(2).clamp(least_ns, AWAY_NS[1]);
        self.away_until_ns = now.saturating_add(self.away_ns);
    }

    fn log(&mut self, time_ns: u64, level: &str, text: String) {
        self.outputs.push(Output::Log(Log { time_ns, level: level.to_owned(), text }));
    }

    /// Records a problem at the present packet.
    pub(super) fn problem(&mut self, problem: Problem) {
        self.problems.add(problem, self.packets);
    }

    /// Asks the process. `None` if there is none, or if it fails.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        bytes: &[u8],
        now: u64,
    ) -> Option<(Answer, Vec<u8>)> {
        match self.link.as_mut()?.ask(request, bytes, now) {
            Ok(answer) => Some(answer),
            Err(lost) => {
                self.lost(now, &lost);
                None
            }
        }
    }

    /// Fetches the function's memory, for the next process, and its problems.
    pub(super) fn keep(&mut self, now: u64) {
        if let Some((Answer::Problems(noted), _)) = self.ask(&Request::Problems, &[], now) {
            self.present = noted;
        }
        if !self.can_save {
            return;
        }
        if let Some((Answer::Saved(is_saved), bytes)) = self.ask(&Request::Save, &[], now) {
            self.can_save = is_saved;
            self.memory = is_saved.then_some(bytes);
            self.kept_ns = now;
        }
    }

    /// All problems, with these ones of the present process.
    pub(super) fn problems_with(&self, present: Vec<Noted>) -> Vec<Noted> {
        let mut all = self.problems.clone();
        all.append(present);
        all.all().to_vec()
    }
}

/// Why no process began.
struct Unbegun {
    why: String,
    /// Whether that took its time.
    is_late: bool,
}

impl Unbegun {
    fn new(why: String) -> Self {
        Self { why, is_late: false }
    }
}

/// Starts a process, and makes an instance there.
fn begin(job: &Job, config: &Config) -> Result<Link, Unbegun> {
    let link = Link::new();
    let mut link =
        link.map_err(|why| Unbegun::new(format!("a process cannot be started: {why}")))?;
    done(&mut link, &Request::Create { job: job.clone(), config: config.clone() }, &[])?;
    Ok(link)
}

/// Asks for something that is done or refused.
fn done(link: &mut Link, request: &Request, bytes: &[u8]) -> Result<(), Unbegun> {
    match link.ask(request, bytes, 0) {
        Ok((Answer::Done(done), _)) => done.map_err(Unbegun::new),
        Ok(_) => Err(Unbegun::new("it answers nonsense".to_owned())),
        Err(lost) => {
            Err(Unbegun { why: format!("its process {lost}"), is_late: lost == Lost::Late })
        }
    }
}
