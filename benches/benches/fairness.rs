//! Does a large cost starve among small ones, and how late are wakes? Beside the rivals.

use core::fmt::Write as _;
use core::time::Duration;

use sluicegate_benches::async_rivals::WAITED;
use sluicegate_benches::fairness::{
    CROWDED, EACH, Lateness, PATIENCE, SMALL, lateness, lateness_of_sleep, wait_of_large,
};
use sluicegate_benches::interleaved::quantile;
use sluicegate_benches::{is_measuring, record};

fn main() -> std::io::Result<()> {
    let mut page = format!("# Fairness\n\nOn tokio's executor of one thread.\n\n{}", record::conditions("fairness"));
    large(&mut page);
    late(&mut page);
    if is_measuring() {
        println!("{page}\nwrote {}", record::write("fairness.md", &page)?.display());
    }
    Ok(())
}

fn large(page: &mut String) {
    let (rounds, patience) = if is_measuring() { (7, PATIENCE) } else { (1, Duration::from_millis(100)) };
    let _ = writeln!(
        page,
        "\n## A large cost among small ones\n\n{} tokens a second, {} at once; {SMALL} tasks take one after another, and then one asks for {}. In the \
         order of arrival it is served after {} ms. {rounds} rounds; what waited longer than {} s was given up.\n\n\
         | | ms, median | longest | given up |\n|---|--:|--:|--:|",
        CROWDED.per_millisecond * 1_000,
        CROWDED.burst,
        CROWDED.burst,
        SMALL + CROWDED.burst as usize,
        patience.as_secs_f64(),
    );
    for waited in WAITED.iter().filter(|waited| waited.has_costs) {
        let waits: Vec<_> = (0..rounds).map(|_| wait_of_large(waited, patience)).collect();
        let served: Vec<_> = waits.iter().flatten().map(|wait| wait.as_secs_f64() * 1e3).collect();
        let given_up = rounds - served.len();
        let of = |part| if served.is_empty() { "-".into() } else { format!("{:.0}", quantile(served.clone(), part)) };
        let _ = writeln!(page, "| {} | {} | {} | {given_up} |", waited.name, of(0.5), of(1.0));
    }
    page.push_str("\ntower's `RateLimit` knows no costs.\n");
}

fn late(page: &mut String) {
    let tokens = if is_measuring() { 800 } else { 3 };
    let _ = writeln!(
        page,
        "\n## How late wakes are\n\nOne task takes one token after another, one every {} ms, {tokens} of them: how much later each is there than the rate says, counted from \
         the one that came earliest by that, in microseconds. tokio's timer ticks in milliseconds and rounds up; governor has a timer of its own, on a thread of its own, and so has smol, \
         whose timer ours can use on any executor. \
         tower opens a window of many tokens at once, and is not asked.\n\n| | median | 99 of 100 | worst |\n|---|--:|--:|--:|",
        EACH.as_secs_f64() * 1e3,
    );
    let mut row = |name: &str, Lateness { median, most, worst }| {
        let _ = writeln!(page, "| {name} | {median:.0} | {most:.0} | {worst:.0} |");
    };
    row("tokio's `sleep_until` alone", lateness_of_sleep(tokens));
    for waited in WAITED.iter().filter(|waited| waited.has_costs) {
        row(waited.name, lateness(waited, tokens));
    }
}
