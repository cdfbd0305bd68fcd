//! `braid lsp`: a server for editors, which speaks the Language Server Protocol.

mod complete;
mod documents;
mod findings;
mod hover;
mod paths;
mod rename;
mod requests;
mod server;
mod text;
mod wire;

use std::io::{self, BufReader};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::answer::{Answer, Failure, Outcome};
use server::Server;
use wire::{Incoming, WireError};

/// The most messages that wait.
const WAITING: usize = 64;

/// Serve editors over standard input and output (Language Server Protocol)
#[derive(clap::Args)]
pub struct Args {
    /// Accepted, because some editors pass it: the server uses nothing else
    #[arg(long)]
    stdio: bool,
}

pub fn run(args: &Args) -> Outcome {
    let Args { stdio: _ } = args;
    let mut server = Server::default();
    let input = reader();
    while server.ended.is_none() {
        // Diagnostics take longer than the other answers, so they wait until nothing else does.
        let next = match input.try_recv() {
            Ok(next) => Some(next),
            Err(_) => {
                for found in server.findings() {
                    send(&found)?;
                }
                input.recv().ok()
            }
        };
        match next {
            Some(Ok(incoming)) => {
                if let Some(answer) = server.handle(incoming) {
                    send(&answer)?;
                }
            }
            Some(Err(why)) => return Err(Failure::input(format!("standard input: {why}"))),
            None => break,
        }
    }
    Ok(Answer::of(server.ended.unwrap_or(false)))
}

/// Reads messages on a thread of its own.
fn reader() -> Receiver<Result<Incoming, WireError>> {
    let (sender, receiver) = sync_channel(WAITING);
    thread::spawn(move || {
        let mut input = BufReader::new(io::stdin());
        loop {
            let next = match wire::read(&mut input) {
                Ok(None) => return,
                Ok(Some(incoming)) => Ok(incoming),
                Err(why) => Err(why),
            };
            let is_last = next.is_err();
            if sender.send(next).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

fn send(message: &serde_json::Value) -> Result<(), Failure> {
    let sent = wire::write(&mut io::stdout().lock(), message);
    sent.map_err(|why| Failure::input(format!("standard output: {why}")))
}
