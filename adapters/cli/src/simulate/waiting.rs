//! Callers on their way into the flow: each is a future, which is asked again only when it was woken.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use sluicegate_runtime::{FlowPath, FlowRefusal};

use super::flow::{SimulatedFlow, SimulatedPermit};

/// How it went: into the flow, and by which path, or not.
pub(super) type Entry<'f> = Result<(SimulatedPermit<'f>, FlowPath), FlowRefusal>;

pub(super) struct Waiting<'f> {
    flow: &'f SimulatedFlow,
    callers: BTreeMap<u64, Caller<'f>>,
    /// Whom to ask again, in the order in which they were woken.
    woken: Arc<Mutex<VecDeque<u64>>>,
    next: u64,
}

struct Caller<'f> {
    cost: u64,
    entering: Pin<Box<dyn Future<Output = Entry<'f>> + 'f>>,
    waker: Waker,
}

impl<'f> Waiting<'f> {
    pub(super) fn new(flow: &'f SimulatedFlow) -> Self {
        Self { flow, callers: BTreeMap::new(), woken: Arc::default(), next: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.callers.len()
    }

    /// A caller comes. `None` if it has to wait.
    pub(super) fn enter(&mut self, cost: u64) -> Option<Entry<'f>> {
        let flow = self.flow;
        let mut entering: Pin<Box<dyn Future<Output = Entry<'f>> + 'f>> = Box::pin(flow.enter(cost));
        // Most do not wait, and need no waker of their own.
        if let Poll::Ready(entry) = entering.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Some(entry);
        }
        let number = self.next;
        self.next += 1;
        let waker = Arc::new(Bell { number, woken: Arc::clone(&self.woken) }).into();
        self.callers.insert(number, Caller { cost, entering, waker });
        // Asked once more, so that it has its waker.
        self.woken.lock().push_back(number);
        None
    }

    /// The next one of those who have waited and need not go on, with its cost.
    pub(super) fn next_done(&mut self) -> Option<(u64, Entry<'f>)> {
        loop {
            // Open again before it is asked, because who is asked may wake others.
            let number = self.woken.lock().pop_front()?;
            let Some(caller) = self.callers.get_mut(&number) else { continue };
            if let Poll::Ready(entry) = caller.entering.as_mut().poll(&mut Context::from_waker(&caller.waker)) {
                let cost = caller.cost;
                self.callers.remove(&number);
                return Some((cost, entry));
            }
        }
    }
}

/// What wakes a caller rings.
struct Bell {
    number: u64,
    woken: Arc<Mutex<VecDeque<u64>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.woken.lock().push_back(self.number);
    }
}
