//! Endpoints as bytes, so that another process goes on from them.
//!
//! A reader refuses whatever no endpoint would hold, and takes no more memory than a multiple of
//! the bytes that are there.

use arrayvec::ArrayVec;
use braid_tcp::{Reader, Stored, put_bytes, stored_enumerations, stored_structures};

use crate::congestion::{Congestion, Recovery};
use crate::endpoint::{Endpoint, Phase};
use crate::ranges::Ranges;
use crate::receiver::{Latest, Receiver};
use crate::ring::Buffer;
use crate::rtt::Rtt;
use crate::sender::Sender;
use crate::settings::{LEAST_MSS, MOST_OFFSET, MOST_RANGES, MOST_SCALE, Settings, most_retries};
use crate::status::{Agreed, Failure};

stored_enumerations! {
    Failure { Refused Reset TimedOut Aborted }
    Phase { SynSent SynReceived Open TimeWait Over }
    Recovery { None Fast Timeout }
}

stored_structures! {
    Settings { mss, receive, send, wscale, sack, timestamps } |read| read.bounded() == *read;
    Agreed { mss, wscale, sack, timestamps } |_| true;
    Rtt { smoothed, timeout, doublings } Rtt::is_right;
    Congestion { window, threshold, counted, recovery, until } |read| {
        read.window.max(read.counted) <= MOST_OFFSET
    };
    Sender {
        isn, unacked, next, sent_flight, base, buffer, has_fin, window, most_window, window_told, sacked, resent,
        lost, is_urgent, duplicates, congestion
    } is_sender;
    Receiver { isn, buffer, read, next, edge, fin, early, latest } is_receiver;
    Endpoint {
        settings, agreed, phase, is_deferred, was_established, has_closed_first, failure, sender,
        receiver, rtt, timed, sent_at, retry_at, retries, is_probe_due, ack_at, is_ack_due, duplicates_due,
        unanswered, acknowledged, recent, challenges, rejection, is_reset_due, over_at
    } is_endpoint;
}

impl Stored for Buffer {
    fn put(&self, out: &mut Vec<u8>) {
        let (front, back) = self.slices(0, self.len());
        put_bytes(&[front, back].concat(), out);
    }

    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let mut buffer = Self::default();
        buffer.extend(from.bytes()?);
        Some(buffer)
    }
}

impl Stored for Latest {
    fn put(&self, out: &mut Vec<u8>) {
        (self.0.len() as u64).put(out);
        self.0.iter().for_each(|offset| offset.put(out));
    }

    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let mut latest = ArrayVec::new();
        for _ in 0..from.len_of_list()? {
            latest.try_push(Stored::get(from)?).ok()?;
        }
        Some(Self(latest))
    }
}

impl Stored for Ranges {
    fn put(&self, out: &mut Vec<u8>) {
        (self.0.len() as u64).put(out);
        self.0.iter().for_each(|range| (range.start, range.end).put(out));
    }

    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let mut ranges = Self::default();
        for _ in 0..from.len_of_list().filter(|count| *count <= MOST_RANGES)? {
            let (start, end): (u64, u64) = Stored::get(from)?;
            let is_behind = ranges.top().is_none_or(|top| top < start);
            if !is_behind || start >= end || !ranges.insert(start..end, MOST_RANGES) {
                return None;
            }
        }
        Some(ranges)
    }
}

fn is_sender(sender: &Sender) -> bool {
    let Sender { unacked, next, base, .. } = *sender;
    let is_empty = sender.buffer.len() == 0;
    let is_base_right = match base.cmp(&unacked) {
        std::cmp::Ordering::Equal => true,
        std::cmp::Ordering::Greater => (unacked, base) == (0, 1),
        std::cmp::Ordering::Less => sender.has_fin && is_empty && unacked == base + 1,
    };
    let most_window = 0xffff << MOST_SCALE;
    let is_sacked_right = sender.sacked.0.first().is_none_or(|first| first.start > unacked)
        && sender.sacked.top().is_none_or(|top| top <= next);
    is_base_right
        && base.max(sender.sent_flight) <= MOST_OFFSET
        && unacked <= next
        && next <= sender.end() + u64::from(sender.has_fin)
        && sender.window.max(sender.most_window) <= most_window
        && sender.window_told.0.max(sender.window_told.1) <= MOST_OFFSET
        && sender.resent.max(sender.lost).max(sender.congestion.until) <= next
        && is_sacked_right
}

fn is_receiver(receiver: &Receiver) -> bool {
    let Receiver { read, next, edge, fin, .. } = *receiver;
    let closed = u64::from(receiver.is_closed());
    if next > MOST_OFFSET || edge > MOST_OFFSET || read + closed > next {
        return false;
    }
    let top = receiver.early.top().unwrap_or(next - closed);
    let is_early_right = receiver.early.0.first().is_none_or(|first| first.start > next);
    let is_fin_right = fin.is_none_or(|fin| fin >= top && fin + 1 >= next && fin <= MOST_OFFSET);
    is_early_right
        && is_fin_right
        && (closed == 0 || receiver.early.0.is_empty())
        && receiver.buffer.len() as u64 == top - read
        && next <= edge.saturating_add(1)
}

fn is_endpoint(endpoint: &Endpoint) -> bool {
    let Endpoint { settings, agreed, phase, sender, receiver, .. } = endpoint;
    let (sent, heard) = (sender.unacked > 0, receiver.next > 0);
    let are_both_closed = sender.is_fin_acknowledged() && receiver.is_closed();
    let is_phase_right = match phase {
        Phase::SynSent => !sent && !heard && !sender.has_fin && sender.next <= 1,
        Phase::SynReceived => !sent && heard && sender.next <= 1,
        Phase::Open => sent && heard && !are_both_closed,
        Phase::TimeWait => sent && heard && are_both_closed,
        Phase::Over => true,
    };
    let is_scale_right = agreed
        .wscale
        .is_none_or(|(own, peer)| own == settings.scale() && peer <= MOST_SCALE && settings.wscale);
    let is_waiting = endpoint.over_at.is_some();
    is_phase_right
        && is_scale_right
        && is_waiting == (*phase == Phase::TimeWait)
        && (LEAST_MSS..=settings.mss).contains(&agreed.mss)
        && sender.buffer.len() as u64 <= settings.send.into()
        && receiver.buffer.len() as u64 <= settings.receive.into()
        && receiver.edge <= receiver.read + u64::from(settings.receive)
        && endpoint.acknowledged <= receiver.next
        && endpoint.timed.is_none_or(|(end, _)| end <= sender.next)
        && endpoint.retries <= most_retries(endpoint.state())
}
