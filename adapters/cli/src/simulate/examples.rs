//! The scenarios that come with the command.

/// A scenario by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Example {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

impl Example {
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        EXAMPLES.into_iter().find(|example| example.name == name).ok_or_else(|| {
            let names: Vec<_> = EXAMPLES.iter().map(|example| example.name).collect();
            format!("available: {}", names.join(", "))
        })
    }
}

const EXAMPLES: [Example; 3] = [
    Example { name: "slow-downstream", text: include_str!("../../scenarios/slow-downstream.toml") },
    Example { name: "provider-429", text: include_str!("../../scenarios/provider-429.toml") },
    Example { name: "day-quota", text: include_str!("../../scenarios/day-quota.toml") },
];
