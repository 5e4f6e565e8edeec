//! What does a decision for one of many keys cost? Criterion's estimates; `keyed_record` has the ratios, measured in turns.

use core::time::Duration;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use sluicegate_benches::keyed::heats;

fn keyed(criterion: &mut Criterion) {
    for (_, make) in heats() {
        let mut heat = make();
        let mut group = criterion.benchmark_group(heat.title);
        for contestant in &mut heat.contestants {
            let name = contestant.name().replace('`', "");
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|calls| {
                    let start = Instant::now();
                    contestant.run(calls);
                    start.elapsed()
                });
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = keyed
}
criterion_main!(benches);
