//! How busy the machine is.

use core::fmt;
use std::time::Instant;

use sluicegate_core::{Load, Signals};
use sysinfo::{CpuRefreshKind, MINIMUM_CPU_UPDATE_INTERVAL, MemoryRefreshKind, RefreshKind, System};

/// How busy the machine's processors are and how much of its memory is in use, as the operating system says: what an
/// [`AdaptivePolicy`](crate::AdaptivePolicy) with rules for load goes by. Needs the feature `system`.
///
/// The load of processors is that of all together since it was last asked. Memory counts as in use unless it is available, so caches
/// that can be given up do not count.
///
/// With the feature `wait` it is a `Measure`, to be handed to a `WaitingFlowRegistry` or to a registry of any executor. It asks the system, which takes
/// some tens of microseconds, once for each flow; share one reading among flows where that is too much.
///
/// # Limits
///
/// It is the machine that is measured: a container's own limits are not known here. What is not known on a system is left out of the signals, and
/// changes nothing.
///
/// ```
/// use sluicegate_threads::{AdaptiveOptions, LoadRule, Nanos, SystemLoad, quota};
///
/// let mut policy = AdaptiveOptions::new(quota!("1000/1s")).cpu(LoadRule::new()).memory(LoadRule::new()).build()?;
/// let mut system = SystemLoad::new();
/// // Every five seconds:
/// if let Some(quota) = policy.evaluate(Nanos::ZERO, &system.signals()) {
///     println!("{quota} from now on");
/// }
/// # Ok::<(), sluicegate_threads::AdaptiveOptionsError>(())
/// ```
pub struct SystemLoad {
    system: System,
    /// When the processors' times were read last.
    since: Instant,
    cpu: Option<Load>,
}

impl SystemLoad {
    /// From now on.
    pub fn new() -> Self {
        let what = RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing().with_cpu_usage())
            .with_memory(MemoryRefreshKind::nothing().with_ram());
        Self { system: System::new_with_specifics(what), since: Instant::now(), cpu: None }
    }

    /// What is so now. Asked again too early for the system to tell, the processors' load is the one told before, or left out the first time.
    pub fn signals(&mut self) -> Signals {
        if self.since.elapsed() >= MINIMUM_CPU_UPDATE_INTERVAL {
            self.since = Instant::now();
            self.system.refresh_cpu_usage();
            self.cpu = (!self.system.cpus().is_empty()).then(|| of_percent(self.system.global_cpu_usage()));
        }
        self.system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        let memory = of_memory(self.system.total_memory(), self.system.available_memory());
        let signals = Signals::default();
        let signals = self.cpu.map_or(signals, |load| signals.with_cpu(load));
        memory.map_or(signals, |load| signals.with_memory(load))
    }
}

impl Default for SystemLoad {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "wait")]
impl sluicegate_runtime::Measure for SystemLoad {
    fn measure(&mut self, _now: sluicegate_core::Nanos) -> Signals {
        self.signals()
    }
}

impl fmt::Debug for SystemLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemLoad").field("cpu", &self.cpu).finish_non_exhaustive()
    }
}

fn of_percent(percent: f32) -> Load {
    // What is no number becomes 0, and what is too large all.
    Load::parts_per_million((percent * 10_000.0) as u32)
}

fn of_memory(total: u64, available: u64) -> Option<Load> {
    let used = total.saturating_sub(available);
    let parts = (u128::from(used) * 1_000_000).checked_div(total.into())?;
    // At most all of it.
    Some(Load::parts_per_million(parts as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_becomes_a_load() {
        assert_eq!(of_percent(12.5), Load::parts_per_million(125_000));
        assert_eq!(of_percent(f32::NAN), Load::percent(0));
        assert_eq!(of_percent(f32::INFINITY), Load::percent(100));
        assert_eq!(of_percent(-3.0), Load::percent(0));
        assert_eq!(of_memory(0, 0), None);
        assert_eq!(of_memory(4 << 30, 1 << 30), Some(Load::percent(75)));
        assert_eq!(of_memory(4 << 30, 5 << 30), Some(Load::percent(0)));
        assert_eq!(of_memory(u64::MAX, 0), Some(Load::percent(100)));
    }

    #[test]
    fn c10_this_machine_tells_how_much_memory_is_in_use() {
        let mut system = SystemLoad::new();
        let signals = system.signals();
        assert_eq!(signals.cpu, None, "nothing has passed yet");
        if sysinfo::IS_SUPPORTED_SYSTEM {
            let memory = signals.memory.expect("every system that is supported tells");
            assert!(memory > Load::percent(0) && memory < Load::percent(100), "{memory:?}");
        }
        // As if some time had passed.
        if let Some(earlier) = Instant::now().checked_sub(MINIMUM_CPU_UPDATE_INTERVAL) {
            system.since = earlier;
            assert_eq!(system.signals().cpu.is_some(), !system.system.cpus().is_empty());
        }
    }
}
