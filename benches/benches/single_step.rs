//! What does one decision cost? Criterion's estimates; `record` has the ratios, measured in turns.

use core::time::Duration;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use sluicegate_benches::single_step::heats;

fn single_step(criterion: &mut Criterion) {
    for mut heat in heats() {
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
    targets = single_step
}
criterion_main!(benches);
