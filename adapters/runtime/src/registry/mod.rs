//! Flows that are made and removed at run time, each with a task that adapts it and that outlives its own panics.

mod entry;
mod flows;
mod observer;
mod plan;
mod stop;
mod supervisor;
mod watch;

pub use flows::{AddFlowError, FlowRegistry, RegisteredFlow, UnknownFlow};
pub use observer::RegistryObserver;
pub use plan::{FlowPlan, Measure, OnRestart};
pub use watch::Watched;
