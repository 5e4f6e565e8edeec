//! The suite on plain threads.

use sluicegate_conformance::{Threads, suite};

suite!(Threads);
