//! Who gets how much where tokens are scarce, and is it too much? Beside leaky-bucket and governor.

use core::fmt::Write as _;
use core::time::Duration;

use sluicegate_benches::async_rivals::{Supply, WAITED};
use sluicegate_benches::interleaved::quantile;
use sluicegate_benches::scarce::{ASKERS, BURST, EACH, Handed, PATTERNS, SUPPLIES, TASKS, handed, share};
use sluicegate_benches::{is_measuring, record};

fn main() -> std::io::Result<()> {
    let (rounds, span) = if is_measuring() { (15, Duration::from_millis(500)) } else { (1, Duration::from_millis(10)) };
    let mut page = record::scarce_head();
    for supply in SUPPLIES {
        throughput(&mut page, supply, rounds, span);
    }
    accuracy(&mut page);
    if is_measuring() {
        println!("{page}");
        println!("wrote {}", record::write("scarce.md", &page)?.display());
    }
    Ok(())
}

fn throughput(page: &mut String, supply: Supply, rounds: usize, span: Duration) {
    let Supply { per_millisecond, burst } = supply;
    let _ = writeln!(
        page,
        "\n## {TASKS} tasks, {} tokens a second, {burst} at once\n\nOn tokio's executor of one thread, whose timer ticks in milliseconds. Each task takes one \
         token after another. Contestants take turns of {} ms, {rounds} each; medians. Throughput is what was handed out of what \
         came; the spread is what the task with most had more than the one with least.\n\n\
         | | throughput | ratio | spread, tokens | of the mean |\n|---|--:|--:|--:|--:|",
        per_millisecond * 1_000,
        span.as_millis(),
    );
    let mut shares = WAITED.map(|_| Vec::new());
    for round in 0..rounds {
        for turn in 0..WAITED.len() {
            let who = (round + turn) % WAITED.len();
            shares[who].push(share(supply, &WAITED[who], span));
        }
    }
    let baseline = shares[0].clone();
    for (waited, shares) in WAITED.iter().zip(&shares) {
        let _ = writeln!(
            page,
            "| {} | {:.1} % | {:.2} | {:.0} | {:.1} % |",
            waited.name,
            100.0 * median(shares.iter().map(|share| share.throughput)),
            median(shares.iter().zip(&baseline).map(|(share, base)| share.throughput / base.throughput)),
            median(shares.iter().map(|share| share.spread as f64)),
            100.0 * median(shares.iter().map(|share| share.relative_spread)),
        );
    }
}

fn accuracy(page: &mut String) {
    let _ = write!(
        page,
        "\n## What it costs not to look at the clock\n\nA token every {} ms, {BURST} at once, full at the start; asked without waiting. How many were handed \
         out of how many by an exact bucket that is asked at the same readings; and in brackets the most that any span of time saw beyond {BURST} \
         and what came within it: by its definition, a token bucket hands out no more.\n\n|",
        EACH.as_millis(),
    );
    for (name, _) in ASKERS {
        let _ = write!(page, " | {name}");
    }
    page.push_str(" |\n|---|--:|--:|--:|\n");
    for (name, pattern) in PATTERNS {
        let pattern: Vec<_> = pattern().into_iter().take_while(|(at, _)| *at <= 17 || is_measuring()).collect();
        let _ = write!(page, "| {name}");
        for (_, make) in ASKERS {
            let Handed { tokens, exact, excess } = handed(make, &pattern);
            let _ = write!(page, " | {tokens} of {exact} ({excess:+})");
        }
        page.push_str(" |\n");
    }
    page.push_str(
        "\nWhile it has a balance, leaky-bucket's unfair mode takes from it by one compare-and-swap and reads no clock. What came meanwhile is \
         added when the balance is spent, on top of what was just taken from a bucket that was full.\n",
    );
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(values.collect(), 0.5)
}
