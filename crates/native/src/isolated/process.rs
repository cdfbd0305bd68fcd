//! The process of an isolated function as it fails and comes back.

use super::link::{Link, Lost};
use super::message::{Answer, Job, Request};
use crate::host::Log;
use crate::value::Config;
use braid_ir::native::{Problem, Problems};

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
    /// When that memory was fetched, in time of packets (ns).
    kept_ns: u64,
    /// When this process began, and until when there is none (ns).
    began_ns: u64,
    away_until_ns: u64,
    away_ns: u64,
    pub(super) problems: Problems,
    /// The number of packets so far.
    pub(super) packets: u64,
    /// Messages about the process.
    pub(super) logs: Vec<Log>,
}

impl Process {
    /// Starts a process with an instance.
    pub(super) fn new(job: Job, config: &Config) -> Result<Self, String> {
        let link = begin(&job, config, None)?;
        Ok(Self {
            job,
            link: Some(link),
            memory: None,
            kept_ns: 0,
            began_ns: 0,
            away_until_ns: 0,
            away_ns: 0,
            problems: Problems::default(),
            packets: 0,
            logs: Vec::new(),
        })
    }

    /// The way to the process. Starts it if it has failed and its time has come.
    pub(super) fn link(&mut self, now: u64, config: &Config) -> Option<&mut Link> {
        if self.link.is_none() && now >= self.away_until_ns {
            let made = begin(&self.job, config, self.memory.as_deref());
            self.began_ns = now;
            match made {
                Ok(link) => {
                    let text = match &self.memory {
                        Some(_) => {
                            let age = now.saturating_sub(self.kept_ns) / 1_000_000;
                            format!("a new process goes on from memory that is {age} ms old")
                        }
                        None => "a new process begins anew".to_owned(),
                    };
                    self.log(now, "info", text);
                    self.link = Some(link);
                }
                Err(why) => {
                    self.stay_away(now, AWAY_NS[0]);
                    self.log(now, "error", format!("no new process: {why}"));
                }
            }
        }
        self.link.as_mut()
    }

    /// Gives a process up that has failed.
    pub(super) fn lost(&mut self, now: u64, how: &Lost) {
        self.link = None;
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
        self.logs.push(Log { time_ns, level: level.to_owned(), text });
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
        config: &Config,
    ) -> Option<(Answer, Vec<u8>)> {
        match self.link(now, config)?.ask(request, bytes, now) {
            Ok(answer) => Some(answer),
            Err(lost) => {
                self.lost(now, &lost);
                None
            }
        }
    }

    /// Fetches the function's memory, for the next process.
    pub(super) fn keep(&mut self, now: u64, config: &Config) {
        if let Some((Answer::Saved(true), bytes)) = self.ask(&Request::Save, &[], now, config) {
            self.memory = Some(bytes);
            self.kept_ns = now;
        }
    }
}

/// Starts a process, and makes an instance there that goes on from a memory.
fn begin(job: &Job, config: &Config, memory: Option<&[u8]>) -> Result<Link, String> {
    let mut link = Link::new().map_err(|why| format!("a process cannot be started: {why}"))?;
    let request = Request::Create { job: job.clone(), config: config.clone() };
    let mut done = |request: &Request, bytes: &[u8]| match link.ask(request, bytes, 0) {
        Ok((Answer::Done(done), _)) => done,
        Ok(_) => Err("it answers nonsense".to_owned()),
        Err(lost) => Err(format!("its process {lost}")),
    };
    done(&request, &[])?;
    if let Some(memory) = memory {
        done(&Request::Restore, memory)?;
    }
    Ok(link)
}
