# pg_timing: what it builds with is cargo; this file is for people and CI.

PREFIX ?= /usr/local
CARGO ?= cargo

# What the tests need beyond Rust and a C compiler: AArch64 is built and run under qemu, and real
# kernels boot in virtual machines with the static binary inside. The last line is what check-world builds with.
DEB_PACKAGES = gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user \
	qemu-system-x86 busybox-static musl-tools python3 python3-pip util-linux procps libpq5 \
	bison flex perl bzip2
RUST_TARGETS = aarch64-unknown-linux-gnu x86_64-unknown-linux-musl \
	x86_64-unknown-freebsd x86_64-apple-darwin aarch64-apple-darwin
RUST_COMPONENTS = clippy rustfmt

ARM = aarch64-unknown-linux-gnu
ARM_ENV = CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"

.PHONY: all check check-world fuzz bench install uninstall deps lint test test-arm test-vm test-extension test-explain test-advise other-systems schema

all:
	$(CARGO) build --release

# Everything CI runs.
check: deps lint test test-arm other-systems test-vm test-extension test-explain test-advise

# What takes longer: PostgreSQL's own suites with each statement timed, on every server by every method; all of it on a
# server that checks itself; and every property test with 80 times the cases. But one of them simulates some hundred
# thousand reads a case, 12 ms: a quarter takes it one minute, and two on a busy machine.
LONG = the_uncertainty_holds_the_truth
check-world: check
	PROPTEST_CASES=20000 $(CARGO) test --release --workspace --exclude bench -- --skip $(LONG)
	PROPTEST_CASES=5000 $(CARGO) test --release -p timing-clock --lib -- $(LONG)
	python3 tests/extension/suites.py
	python3 tests/extension/asserts.py

# Garbled logs, outputs and lists, for a quarter of an hour.
FUZZ_SECONDS ?= 900
fuzz:
	$(CARGO) test --release -p pg_timing --lib --no-run
	end=$$(( $$(date +%s) + $(FUZZ_SECONDS) )); while [ $$(date +%s) -lt $$end ]; do \
		PROPTEST_CASES=20000 $(CARGO) test -q --release -p pg_timing --lib -- survived || exit 1; done

# What is missing is installed for root; anybody else gets the line to type.
deps:
	@missing=; for p in $(DEB_PACKAGES); do \
		dpkg-query -W -f '$${Status}\n' $$p 2>/dev/null | grep -q '^install ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" = 0 ]; then \
			apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing; \
		else echo "missing packages, as root: apt-get install$$missing" >&2; exit 1; fi; fi
	@rustup target add $(RUST_TARGETS)
	@rustup component add $(RUST_COMPONENTS)

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps -p timing-clock

test:
	$(CARGO) test --workspace --exclude bench

# The crate's tests and the command's, then the command itself on that counter. Emulated, they take some fifteen
# times as long: so the properties, which are the same arithmetic, are tried on fewer cases.
test-arm: export PROPTEST_CASES = 32
test-arm:
	$(ARM_ENV) $(CARGO) test --target $(ARM) -p timing-clock
	$(ARM_ENV) $(CARGO) test --target $(ARM) -p pg_timing --lib -- --skip parse::
	$(ARM_ENV) $(CARGO) test --target $(ARM) -p pg_timing --test aarch64

# Real kernels: hpet, acpi_pm, a good TSC, one that is given up, switching; CPUs offline, a pause, a suspend.
test-vm:
	tests/vm/run

# pg_fast_timing on PostgreSQL 15 to 19: as root, for each server has a root folder of its own.
test-extension:
	tests/extension/run

# The command on the same servers.
test-explain:
	$(CARGO) build -p pg_timing
	tests/explain/run $${CARGO_TARGET_DIR:-target}/debug/pg_timing

test-advise:
	$(CARGO) build -p pg_timing
	tests/advise/run $${CARGO_TARGET_DIR:-target}/debug/pg_timing

# Those that cannot be run here at least compile.
other-systems:
	for t in $(filter-out %-linux-gnu %-linux-musl,$(RUST_TARGETS)); do \
		$(CARGO) check --target $$t -p timing-clock -p pg_timing || exit 1; done

# The figures: read cost, rate and now(), beside the raw limit and the peers.
bench:
	$(CARGO) run --release -p bench
	tests/extension/bench
	$(CARGO) build --release -p pg_timing
	tests/explain/bench $${CARGO_TARGET_DIR:-target}/release/pg_timing

# The JSON Schema is generated from the code.
schema:
	UPDATE_SCHEMA=1 $(CARGO) test -p pg_timing --test e2e schema

# Builds only what is missing: root may have no cargo.
install:
	test -x $${CARGO_TARGET_DIR:-target}/release/pg_timing || $(CARGO) build --release
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $${CARGO_TARGET_DIR:-target}/release/pg_timing $(DESTDIR)$(PREFIX)/bin/pg_timing
	ln -sf pg_timing $(DESTDIR)$(PREFIX)/bin/pg_test_timing

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/pg_timing $(DESTDIR)$(PREFIX)/bin/pg_test_timing
