//! Bodies of the flow's models. Bounds and costs are beside the tests that run them.

use core::mem::forget;
use std::sync::Arc;

use sluicegate_core::BreakerPhase::{Closed, HalfOpen, Open};
use sluicegate_core::CallOutcome::{self, Failure, Success};
use sluicegate_core::{FlowStage, Nanos};

use crate::circuit::{COOLED, NOW};
use crate::{Calls, promise, race2, race3};

/// The breaker is opened while another one calls: that one paid, or it was refused by the breaker and left nothing; and who opened it is
/// refused.
pub fn trip_against_a_call<C: Calls>() {
    let flow = C::new(3, 1, 3);
    let (entered, refused) = race2(&flow, |flow| left_out(flow, NOW), trip_and_call);
    promise!(matches!(entered, Ok(()) | Err(FlowStage::Breaker)), "refused otherwise: {entered:?}");
    promise!(
        refused == Err(FlowStage::Breaker),
        "a call entered after the trip, or was refused otherwise: {refused:?}"
    );
    paid(&*flow, 3, [entered.is_ok()]);
    promise!(flow.in_flight() == u32::from(entered.is_ok()), "{} in flight", flow.in_flight());
}

/// The breaker is opened while two call, one of whom comes back: whoever is refused is refused by the breaker, and what was paid is what
/// was called.
pub fn trip_against_calls<C: Calls>() {
    let flow = C::new(3, 1, 3);
    let (a, b, c) = race3(&flow, |flow| finished(flow, NOW, Success), |flow| left_out(flow, NOW), trip_and_call);
    for refused in [a.err(), b.err()].into_iter().flatten() {
        promise!(refused == FlowStage::Breaker, "refused by the {refused}");
    }
    promise!(c == Err(FlowStage::Breaker), "a call entered after the trip, or was refused otherwise: {c:?}");
    paid(&*flow, 3, [a.is_ok(), b.is_ok()]);
    promise!(flow.in_flight() == u32::from(b.is_ok()), "{} in flight", flow.in_flight());
}

fn trip_and_call<C: Calls>(flow: &C) -> Result<(), FlowStage> {
    flow.trip(NOW);
    left_out(flow, NOW)
}

/// A call fails and so opens the breaker, while two others call: what was paid is what was called, and all places come back.
pub fn failure_against_calls<C: Calls>() {
    let flow = C::new(4, 1, 3);
    let call = flow.enter(NOW).expect("nobody races yet");
    let (a, b, ()) = race3(
        &flow,
        |flow| finished(flow, NOW, Failure),
        |flow| cancelled(flow, NOW),
        |_| C::finish(call, NOW, Failure),
    );
    paid(&*flow, 4, [true, a.is_ok(), b.is_ok()]);
    promise!((flow.phase(), flow.in_flight()) == (Open, 0), "{:?}, {} in flight", flow.phase(), flow.in_flight());
}

/// Three callers when the breaker has cooled down, and one probe: exactly one enters, and pays.
pub fn one_probe_of_three_pays<C: Calls>() {
    probes_of_three_pay::<C>(1);
}

/// Three callers when the breaker has cooled down, and two probes: exactly two enter, and pay.
pub fn two_probes_of_three_pay<C: Calls>() {
    probes_of_three_pay::<C>(2);
}

fn probes_of_three_pay<C: Calls>(probes: u32) {
    let flow = tripped::<C>(3, probes);
    let keep = |flow: &C| left_out(flow, COOLED);
    let (a, b, c) = race3(&flow, keep, keep, keep);
    let entered = [a, b, c].iter().filter(|entered| entered.is_ok()).count();
    promise!(entered == probes as usize, "{entered} entered, of {probes} probes: {:?}", (a, b, c));
    for refused in [a, b, c].into_iter().filter_map(Result::err) {
        promise!(refused == FlowStage::Breaker, "refused by the {refused}");
    }
    paid(&*flow, 3, [a.is_ok(), b.is_ok(), c.is_ok()]);
    promise!(flow.in_flight() == probes, "{} in flight", flow.in_flight());
}

/// Two callers when the breaker has cooled down, and no token: both are refused by the limiter, and afterwards the probe's place and those
/// in flight are there for whoever comes with the next token.
pub fn denied_token_against_denied_token<C: Calls>() {
    let flow = tripped::<C>(1, 1);
    run_dry(&*flow);
    let keep = |flow: &C| left_out(flow, COOLED);
    let refused = race2(&flow, keep, keep);
    promise!(refused == (Err(FlowStage::Limiter), Err(FlowStage::Limiter)), "there was no token: {refused:?}");
    promise!(flow.phase() != Closed && flow.in_flight() == 0, "{:?}, {} in flight", flow.phase(), flow.in_flight());
    flow.add_token();
    promise!(
        finished(&*flow, COOLED, Success).is_ok(),
        "a call that was refused kept a probe's place, or was a failure"
    );
    promise!((flow.phase(), flow.in_flight()) == (Closed, 0), "{:?}, {} in flight", flow.phase(), flow.in_flight());
}

/// Two callers of a closed breaker and one token, where one failure trips: one enters, and the other's refusal is no failure.
pub fn last_token_of_two<C: Calls>() {
    let flow = C::new(1, 1, 2);
    let keep = |flow: &C| left_out(flow, NOW);
    let (a, b) = race2(&flow, keep, keep);
    promise!(a.is_ok() != b.is_ok(), "one token, and {:?}", (a, b));
    promise!(a.err().or(b.err()) == Some(FlowStage::Limiter), "there was no other token: {:?}", (a, b));
    promise!((flow.phase(), flow.in_flight()) == (Closed, 1), "{:?}, {} in flight", flow.phase(), flow.in_flight());
    paid(&*flow, 1, [true]);
}

/// A probe closes the breaker and its caller calls again, against another caller, and one token is left: one of them gets it. A call that
/// the breaker refuses takes none, not even for an instant.
pub fn refused_call_against_the_last_token<C: Calls>() {
    let flow = tripped::<C>(2, 1);
    let probe = flow.enter(COOLED).expect("it has cooled down");
    let close_and_call = |flow: &C| {
        C::finish(probe, COOLED, Success);
        left_out(flow, COOLED)
    };
    let (a, b) = race2(&flow, |flow| left_out(flow, COOLED), |_| close_and_call(&flow));
    promise!(a.is_ok() != b.is_ok(), "one token was there at every instant: {:?}", (a, b));
    paid(&*flow, 2, [true, true]);
    promise!(flow.in_flight() == 1, "{} in flight", flow.in_flight());
}

/// The only call in flight is cancelled while another one comes: that one has its place or takes nothing, and the next one finds what there
/// is.
pub fn cancel_against_a_call<C: Calls>() {
    let flow = C::new(3, 1, 1);
    let call = flow.enter(NOW).expect("nobody races yet");
    let (got, ()) = race2(&flow, |flow| left_out(flow, NOW), |_| drop(call));
    promise!(matches!(got, Ok(()) | Err(FlowStage::Concurrency)), "refused otherwise: {got:?}");
    promise!(flow.in_flight() == u32::from(got.is_ok()), "{} in flight", flow.in_flight());
    promise!(left_out(&*flow, NOW).is_ok() != got.is_ok(), "there is one place");
    promise!(flow.phase() == Closed, "to cancel is no failure");
    paid(&*flow, 3, [true, true]);
}

/// The only probe is cancelled while another one comes: that one has its place or pays nothing, and the next one finds what there is.
pub fn cancelled_probe_against_a_call<C: Calls>() {
    let flow = tripped::<C>(3, 1);
    let probe = flow.enter(COOLED).expect("it has cooled down");
    let (got, ()) = race2(&flow, |flow| left_out(flow, COOLED), |_| drop(probe));
    promise!(matches!(got, Ok(()) | Err(FlowStage::Breaker)), "refused otherwise: {got:?}");
    promise!(flow.in_flight() == u32::from(got.is_ok()), "{} in flight", flow.in_flight());
    promise!(left_out(&*flow, COOLED).is_ok() != got.is_ok(), "there is one probe's place");
    promise!(flow.phase() == HalfOpen, "to cancel is neither success nor failure");
    paid(&*flow, 3, [true, true]);
}

/// A call against the probe that has the only place in flight and fails: it is refused, pays nothing, and keeps no
/// place.
pub fn full_against_a_probe<C: Calls>() {
    let flow = C::new(3, 1, 1);
    flow.trip(NOW);
    let probe = flow.enter(COOLED).expect("it has cooled down");
    let (got, ()) = race2(&flow, |flow| left_out(flow, COOLED), |_| C::finish(probe, COOLED, Failure));
    promise!(got.is_err(), "the only probe has failed, or not come back");
    promise!(got != Err(FlowStage::Limiter), "there was a token: {got:?}");
    promise!((flow.phase(), flow.in_flight()) == (Open, 0), "{:?}, {} in flight", flow.phase(), flow.in_flight());
    paid(&*flow, 3, [true]);
}

/// As many tokens are gone as calls entered.
fn paid<C: Calls>(flow: &C, tokens: u64, entered: impl IntoIterator<Item = bool>) {
    let calls = entered.into_iter().map(u64::from).sum::<u64>();
    promise!(flow.tokens() + calls == tokens, "{calls} calls, and {} of {tokens} tokens are left", flow.tokens());
}

/// One that has tripped, and cools down for a second; with places for all.
fn tripped<C: Calls>(tokens: u64, probes: u32) -> Arc<C> {
    let flow = C::new(tokens, probes, 3);
    flow.trip(NOW);
    flow
}

/// Calls once as a probe would, and lets it be cancelled: its token is gone.
fn run_dry<C: Calls>(flow: &C) {
    promise!(cancelled(flow, COOLED).is_ok() && flow.tokens() == 0, "there was one token");
}

fn finished<C: Calls>(flow: &C, now: Nanos, outcome: CallOutcome) -> Result<(), FlowStage> {
    flow.enter(now).map(|entered| C::finish(entered, now, outcome))
}

fn cancelled<C: Calls>(flow: &C, now: Nanos) -> Result<(), FlowStage> {
    flow.enter(now).map(drop)
}

/// A call that does not come back.
fn left_out<C: Calls>(flow: &C, now: Nanos) -> Result<(), FlowStage> {
    flow.enter(now).map(forget)
}
