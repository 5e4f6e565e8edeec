#![cfg_attr(target_os = "none", no_std, no_main)]
sluicegate_bare_metal::program!(sluicegate_bare_metal::run);
