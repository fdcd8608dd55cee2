"""Settings: what there is to set, in which bounds, as TOML, and the presets of the benchmarks."""
