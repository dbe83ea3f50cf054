"""The benchmark harness: see bench/README.md."""
