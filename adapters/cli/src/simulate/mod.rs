//! `sluicegate simulate`: a flow in front of a service that is made up, in virtual time.
//!
//! From what a person writes to what a person sees: `source`, `scenario` and `values`; `check` and `parts`; `load`, `service`, `provider`, `flow` and `waiting`; `run`;
//! `totals` and `latencies`; `json`, `table`, and `plot` with `panels` and `axis`. Every decision is made by the
//! `QueuedFlow` of `sluicegate-runtime`.

mod args;
mod axis;
mod check;
mod examples;
mod flow;
mod json;
mod latencies;
mod load;
#[cfg(test)]
mod mutated;
mod panels;
mod parts;
mod plot;
mod provider;
mod random;
mod run;
mod scenario;
mod service;
mod source;
mod table;
mod totals;
mod values;
mod waiting;

pub(crate) use args::SimulateArgs;

use crate::error::Error;
use crate::input::Source;
use crate::output::{self, Target};
use source::Text;

/// Runs the scenario, and prints and draws what came of it.
pub(crate) fn simulate(args: SimulateArgs) -> Result<(), Error> {
    let mut sources = Vec::new();
    let text = match (&args.scenario, args.example) {
        (Some(path), _) => {
            let source = Source::new(path)?;
            let text = Text::read(&source, path)?;
            sources.push(source);
            text
        }
        (None, Some(example)) => Text { name: example.name.to_owned(), text: example.text.to_owned() },
        (None, None) => return Err(Error::Usage("give a scenario to simulate, or an --example".to_owned())),
    };
    if args.show {
        return output::print(&text.text);
    }
    let mut plan = text.plan()?;
    let target = args.plot.map(|path| Target::new(path, &sources)).transpose()?;
    let record = run::run(&mut plan).map_err(|reason| Error::Simulation { name: text.name.clone(), reason })?;
    let report = if args.json { json::render(&plan, &record) } else { table::render(&plan, &record) };
    // The plot first: when it cannot be written, nothing is printed.
    if let Some(target) = &target {
        target.write(plot::render(&plan, &record).as_bytes())?;
    }
    output::print(&report)
}
