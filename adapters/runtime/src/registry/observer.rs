//! Being told what becomes of flows.

use sluicegate_core::{Adapted, AlertChange, Nanos, Quota};

use super::plan::OnRestart;

/// Is told what a registry does with its flows, with no lock held. `()` is the observer that does nothing.
///
/// `adapted`, `alerted` and `restarted` are called in the flow's own task, and a panic there restarts that task; only where a policy that has adapted before makes
/// a flow, `adapted` is called by who adds it.
pub trait RegistryObserver {
    /// `id` is there from now on.
    fn added(&self, id: &str) {
        let _ = id;
    }

    /// `id` is there no more.
    fn removed(&self, id: &str) {
        let _ = id;
    }

    /// The quota of `id` was changed to `quota` at `now`, by an evaluation or a restart, or is another one than the base from the beginning; `adapted` says what
    /// each rule allowed.
    fn adapted(&self, id: &str, now: Nanos, adapted: &Adapted, quota: Quota) {
        let _ = (id, now, adapted, quota);
    }

    /// An alert of `id` was raised or cleared at `now`.
    fn alerted(&self, id: &str, now: Nanos, change: &AlertChange) {
        let _ = (id, now, change);
    }

    /// The task of `id` had panicked, and was started anew at `now`; `how` says what became of the flow, which is [`OnRestart::Restore`] also where it has begun
    /// again too short a while ago to do so now. Where its quota has changed, `adapted` was called before.
    fn restarted(&self, id: &str, now: Nanos, how: OnRestart) {
        let _ = (id, now, how);
    }
}

impl RegistryObserver for () {}

/// Both are told, the first one first. Nest pairs for more. Where the first one panics, the second one is not told.
///
/// ```
/// # use core::cell::RefCell;
/// use sluicegate_runtime::RegistryObserver;
///
/// struct Log<'p>(&'static str, &'p RefCell<Vec<String>>);
///
/// impl RegistryObserver for Log<'_> {
///     fn added(&self, id: &str) {
///         self.1.borrow_mut().push(format!("{} {id}", self.0));
///     }
/// }
///
/// let page = RefCell::new(Vec::new());
/// (Log("first", &page), Log("second", &page)).added("search");
/// assert_eq!(*page.borrow(), ["first search", "second search"]);
/// ```
impl<A: RegistryObserver, B: RegistryObserver> RegistryObserver for (A, B) {
    #[inline]
    fn added(&self, id: &str) {
        self.0.added(id);
        self.1.added(id);
    }

    #[inline]
    fn removed(&self, id: &str) {
        self.0.removed(id);
        self.1.removed(id);
    }

    #[inline]
    fn adapted(&self, id: &str, now: Nanos, adapted: &Adapted, quota: Quota) {
        self.0.adapted(id, now, adapted, quota);
        self.1.adapted(id, now, adapted, quota);
    }

    #[inline]
    fn alerted(&self, id: &str, now: Nanos, change: &AlertChange) {
        self.0.alerted(id, now, change);
        self.1.alerted(id, now, change);
    }

    #[inline]
    fn restarted(&self, id: &str, now: Nanos, how: OnRestart) {
        self.0.restarted(id, now, how);
        self.1.restarted(id, now, how);
    }
}

impl<O: RegistryObserver + ?Sized> RegistryObserver for alloc::sync::Arc<O> {
    fn added(&self, id: &str) {
        (**self).added(id);
    }

    fn removed(&self, id: &str) {
        (**self).removed(id);
    }

    fn adapted(&self, id: &str, now: Nanos, adapted: &Adapted, quota: Quota) {
        (**self).adapted(id, now, adapted, quota);
    }

    fn alerted(&self, id: &str, now: Nanos, change: &AlertChange) {
        (**self).alerted(id, now, change);
    }

    fn restarted(&self, id: &str, now: Nanos, how: OnRestart) {
        (**self).restarted(id, now, how);
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;
    use core::cell::RefCell;

    use sluicegate_core::{AdaptiveOptions, AlertPolicy, Alerts, Counters, Inspection, Load, LoadRule, Signals, quota};

    use super::*;

    /// Says what it is told, under its name, after the others that share its page.
    struct Log<'p> {
        name: &'static str,
        page: &'p RefCell<Vec<String>>,
    }

    impl Log<'_> {
        fn write(&self, event: &str) {
            self.page.borrow_mut().push(format!("{}: {event}", self.name));
        }
    }

    impl RegistryObserver for Log<'_> {
        fn added(&self, id: &str) {
            self.write(&format!("added {id}"));
        }
        fn removed(&self, id: &str) {
            self.write(&format!("removed {id}"));
        }
        fn adapted(&self, id: &str, now: Nanos, adapted: &Adapted, quota: Quota) {
            self.write(&format!("adapted {id} at {now} to {} and {quota}", adapted.share));
        }
        fn alerted(&self, id: &str, now: Nanos, change: &AlertChange) {
            self.write(&format!("alerted {id} at {now}: {}", change.alert));
        }
        fn restarted(&self, id: &str, now: Nanos, how: OnRestart) {
            self.write(&format!("restarted {id} at {now}: {how:?}"));
        }
    }

    #[test]
    fn c16_two_observers_of_flows_are_told_everything_one_after_the_other() {
        let page = RefCell::new(Vec::new());
        let log = |name| Log { name, page: &page };
        let both = (log("first"), (log("second"), ()));

        let mut policy = AdaptiveOptions::new(quota!("100/1s")).cpu(LoadRule::new()).build().unwrap();
        let quota = policy.evaluate(Nanos::ZERO, &Signals::default().with_cpu(Load::percent(100))).unwrap();
        let mut alerts = Alerts::new(AlertPolicy::default());
        let mut changes = alerts.evaluate(Nanos::ZERO, &Counters::default().snapshot(), Inspection::new(9, 100));

        both.added("api");
        both.adapted("api", Nanos::new(1), &policy.allowed(), quota);
        both.alerted("api", Nanos::new(2), &changes.next().unwrap());
        both.restarted("api", Nanos::new(3), OnRestart::Empty);
        both.removed("api");
        let told = [
            "added api",
            "adapted api at 1 ns to 500000 and 50/1s",
            "alerted api at 2 ns: low_fill",
            "restarted api at 3 ns: Empty",
            "removed api",
        ];
        let twice = told.iter().flat_map(|event| ["first", "second"].map(|name| format!("{name}: {event}")));
        assert_eq!(*page.borrow(), twice.collect::<Vec<_>>());
    }
}
