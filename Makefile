# `make demo` and `make test` do all set-up; the others say what they need.

CARGO ?= cargo
# Seconds for each fuzz target, and for `make soak`.
TIME ?= 60

.PHONY: help setup build demo test fmt bless check-captures compare-kernel live live-streams \
        bench-live fuzz soak miri

help:
	@echo 'make demo            a chain of four functions over a bundled capture'
	@echo 'make test            formatting, clippy, rustdoc, structure tests, all tests'
	@echo 'make build           the braid command: target/release/braid'
	@echo 'make fmt             formats the sources'
	@echo 'make bless           rewrites expected outcomes to what happens; review the diff'
	@echo 'make fuzz TIME=60    every fuzz target for TIME seconds'
	@echo 'make soak TIME=600   all engines on generated pairs of fresh seeds, in a release build'
	@echo 'make miri            packet memory under Miri, which finds undefined behaviour'
	@echo 'make check-captures BRAID_DATA=DIR   every capture below DIR through every function'
	@echo 'make compare-kernel  NAPT, firewall and router against the Linux kernel (root)'
	@echo 'make live            chains between real hosts in network namespaces (root)'
	@echo 'make live-streams    stream functions there: 10,000 connections, 1 GB, floods (root)'
	@echo 'make bench-live      Braid against nftables, HAProxy and others in namespaces (root)'

setup:
	@scripts/setup.sh $(SETUP)

build demo: SETUP = build
build: setup
	$(CARGO) build --release --package braid-cli

demo: setup
	scripts/demo.sh

test: setup
	scripts/test.sh

fmt:
	$(CARGO) fmt --all

bless:
	BLESS=1 INSTA_UPDATE=always $(CARGO) test --workspace

check-captures: setup
	scripts/check-captures.sh

compare-kernel: setup
	scripts/compare-kernel.sh

live: setup
	scripts/live.sh

live-streams: setup
	scripts/live-streams.sh

bench-live: setup
	scripts/bench-live.sh

fuzz: setup
	scripts/fuzz.sh $(TIME)

soak: setup
	scripts/soak.sh $(TIME)

miri: setup
	scripts/miri.sh
