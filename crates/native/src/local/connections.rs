//! The calls of a stream function: what TCP connections bring it.

use super::{Local, failed};
use crate::stream::{Data, Decision, News, What};
use crate::verdict::{FAILED, Failed};

impl Local {
    /// Runs the function for what a connection brings. The memory of a connection begins when it
    /// opens, and ends with it, or when the function has reset or left it.
    ///
    /// # Errors
    /// The function failed. The connection goes on.
    pub(crate) fn connection(
        &mut self,
        News { client, what }: News<'_>,
        now: u64,
    ) -> Result<Decision, Failed> {
        self.starts(now);
        let known = self.bound.state().flows.known(&client.bidirectional());
        if what == What::Open
            && let Some(earlier) = known
        {
            self.bound.state_mut().end_flow(earlier);
            self.after_call();
        }
        let state = self.bound.state_mut();
        state.packets += 1;
        state.begin();
        let flow = match what {
            What::Close => known.unwrap_or(0),
            What::Open | What::Data(_) => state.flow(client),
        };
        let what = match what {
            What::Data(data) => {
                let missing = state.flows.missing(flow, data);
                What::Data(Data { missing, ..data })
            }
            what => what,
        };
        let code = self.bound.connection(flow, News { client, what });
        let decision = self.decision(code);
        let is_over =
            what == What::Close || matches!(decision, Ok(Decision::Reset(_) | Decision::Bypass));
        let state = self.bound.state_mut();
        if is_over && state.flows.has(flow) {
            state.end_flow(flow);
        }
        self.after_call();
        decision
    }

    /// The decision for a call's return code, checked.
    fn decision(&mut self, code: i32) -> Result<Decision, Failed> {
        let state = self.bound.state_mut();
        let failure = state.failure.take();
        let wrong = match Decision::of_code(code) {
            Some(Decision::Reset(reason)) if reason >= state.reasons => {
                format!("resets for reason {reason}; it has {}", state.reasons)
            }
            Some(decision) => return Ok(decision),
            None if code == FAILED => {
                let why = failure.unwrap_or_else(|| "it does not say why".to_owned());
                state.problems.add(failed(why), state.packets);
                return Err(Failed::Drop);
            }
            None => format!("returns {code}, which is no decision about a connection"),
        };
        state.misuse(wrong);
        Err(Failed::Drop)
    }
}
