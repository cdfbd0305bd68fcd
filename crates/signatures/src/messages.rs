//! The HTTP messages of a connection that rules see.

use crate::buffers;
use crate::limits::{BODY_DEPTH, MESSAGE_WORK, RAW_BODY_DEPTH};
use crate::outcome::Context;
use crate::rule::{Buffer, Rule, Stage};
use crate::whole;
use crate::work::Work;
use braid_http::{Head, Http, Part};
use std::borrow::Cow;

/// The messages of both directions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Messages {
    pub http: Http,
    pub request: Kept,
    pub response: Kept,
}

/// What is kept of a message whose head is complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    pub is_request: bool,
    /// The bytes of the message as they came, up to the depth of its body.
    pub raw: Vec<u8>,
    /// The length of its head.
    pub head_len: usize,
    /// The bytes of its body, up to the depth.
    pub body: Vec<u8>,
    /// All rules have seen the message.
    pub is_evaluated: bool,
}

impl Default for Messages {
    fn default() -> Self {
        Self { http: Http::default(), request: Kept::new(true), response: Kept::new(false) }
    }
}

impl Messages {
    /// The next bytes of an end have come.
    pub fn data(&mut self, from_client: bool, mut bytes: &[u8], context: &mut Context<'_, '_>) {
        let Self { http, request, response } = self;
        loop {
            let was_in_body = http.is_in_body(from_client);
            let Some(part) = http.next(from_client, &mut bytes) else { break };
            let kept = if from_client { &mut *request } else { &mut *response };
            match part {
                Part::Head(head) => kept.begin(&head, context),
                Part::Body(bytes, is_data) => kept.keep(bytes, is_data, context),
                Part::End => kept.end(context),
                Part::Malformed => {
                    context.rules.counts.malformed += 1;
                    if was_in_body {
                        kept.evaluate_all(context);
                    }
                }
                Part::Crowded => context.rules.counts.malformed += 1,
            }
        }
        // After CONNECT or an upgrade, neither direction is HTTP any more.
        for (of_client, kept) in [(true, request), (false, response)] {
            if http.is_over(of_client) {
                *kept = Kept::new(of_client);
            }
        }
    }

    /// No more bytes of an end come.
    pub fn finish(&mut self, from_client: bool, context: &mut Context<'_, '_>) {
        if self.http.is_in_body(from_client) {
            self.of(from_client).evaluate_all(context);
        }
        if self.http.finish(from_client) {
            context.rules.counts.malformed += 1;
        }
        *self.of(from_client) = Kept::new(from_client);
    }

    /// The bytes of an end are not inspected from now on.
    pub fn leave(&mut self, from_client: bool) {
        self.http.leave(from_client);
        *self.of(from_client) = Kept::new(from_client);
    }

    /// Whether the bytes of an end are not inspected.
    pub fn is_over(&self, from_client: bool) -> bool {
        self.http.is_over(from_client)
    }

    pub fn memory(&self) -> usize {
        self.http.memory() + self.request.memory() + self.response.memory()
    }

    fn of(&mut self, from_client: bool) -> &mut Kept {
        if from_client { &mut self.request } else { &mut self.response }
    }
}

impl Kept {
    pub fn new(is_request: bool) -> Self {
        Self { is_request, raw: Vec::new(), head_len: 0, body: Vec::new(), is_evaluated: false }
    }

    fn memory(&self) -> usize {
        self.raw.capacity() + self.body.capacity()
    }

    /// The head is complete.
    fn begin(&mut self, head: &Head<'_>, context: &mut Context<'_, '_>) {
        self.raw = head.bytes.to_vec();
        self.head_len = head.bytes.len();
        let message = Message { head, raw: head.bytes, body: &[] };
        message.evaluate(Stage::Head, self.is_request, context);
    }

    /// Keeps bytes of a body up to the depth, and then evaluates the rules.
    fn keep(&mut self, bytes: &[u8], is_data: bool, context: &mut Context<'_, '_>) {
        if self.is_evaluated {
            return;
        }
        let raw = RAW_BODY_DEPTH.saturating_sub(self.raw.len() - self.head_len);
        let room = match is_data {
            true => raw.min(BODY_DEPTH.saturating_sub(self.body.len())),
            false => raw,
        };
        self.raw.extend(bytes.iter().take(room));
        if is_data {
            self.body.extend(bytes.iter().take(room));
        }
        if bytes.len() >= room {
            self.evaluate_all(context);
        }
    }

    /// The message is complete.
    fn end(&mut self, context: &mut Context<'_, '_>) {
        self.evaluate_all(context);
        *self = Self::new(self.is_request);
    }

    /// Evaluates the rules about whole messages.
    fn evaluate_all(&mut self, context: &mut Context<'_, '_>) {
        if self.is_evaluated {
            return;
        }
        let head = self.raw.get(..self.head_len).unwrap_or_default();
        if let Ok(head) = Head::parse(head, self.is_request) {
            let message = Message { head: &head, raw: &self.raw, body: &self.body };
            message.evaluate(Stage::Body, self.is_request, context);
        }
        self.is_evaluated = true;
        self.raw = Vec::new();
        self.body = Vec::new();
    }
}

/// A message that rules see.
struct Message<'a> {
    head: &'a Head<'a>,
    raw: &'a [u8],
    body: &'a [u8],
}

impl<'a> Message<'a> {
    fn buffer(&self, buffer: Buffer, is_request: bool) -> Option<Cow<'a, [u8]>> {
        match buffer {
            Buffer::Raw => Some(self.raw.into()),
            Buffer::RequestBody | Buffer::ResponseBody => {
                let is_its = (buffer == Buffer::RequestBody) == is_request;
                (is_its && !self.body.is_empty()).then(|| self.body.into())
            }
            _ => buffers::of_head(self.head, buffer),
        }
    }

    /// Evaluates the rules of a stage. The rules that hold alert.
    fn evaluate(&self, stage: Stage, is_request: bool, context: &mut Context<'_, '_>) {
        let (rules, buffers) = context.rules.set.messages(stage);
        if rules.is_empty() {
            return;
        }
        let seen = buffers.iter().filter_map(|of| Some((*of, self.buffer(*of, is_request)?)));
        let seen: Vec<(Buffer, Cow<'_, [u8]>)> = seen.collect();
        let flow = context.flow;
        let applies = |rule: &Rule| rule.applies(&flow, is_request);
        let rules = (rules.always().to_vec(), rules);
        whole::evaluate(rules, &seen, (is_request, &applies), Work(MESSAGE_WORK), context);
    }
}
