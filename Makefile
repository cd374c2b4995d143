# Commands for developers and CI. cargo builds the program.

PREFIX ?= /usr/local
CARGO ?= cargo

# What the checks need besides Rust and a C compiler: real kernels boot in virtual machines, and servers are unpacked.
CHECK_PACKAGES = gcc make libc6-dev qemu-system-x86 busybox-static python3 util-linux procps libpq5
# The fuzzer is written in C++, and dpkg-buildpackage needs build-essential. AArch64 is built and runs under qemu. PostgreSQL
# 16 comes from pip and npm. python3-venv and systemd check deploy/; no service starts. Chromium opens the HTML pages, and
# tmux shows the monitor's screen. man and three shells read the manual and the completions. debhelper and rpm build packages,
# debootstrap makes roots in which they are tried, and skopeo and umoci unpack images. The last line is also for the servers
# that check-world builds.
ALL_PACKAGES = build-essential gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user python3-pip $(if $(shell command -v npm),,npm) \
	python3-venv systemd chromium tmux \
	man-db groff-base bash-completion zsh fish \
	debhelper dpkg-dev rpm skopeo umoci \
	bison flex perl bzip2 debootstrap postgresql-server-dev-all
RUST_COMPONENTS = clippy rustfmt

.PHONY: python3 rust-components all manual guide check check-all check-world fuzz deny miri bench tournament schema pictures \
	install uninstall deps deps-all deb tar dist rpm pgxn oci

all:
	$(CARGO) build --release
	$(MAKE) manual

# The shell reads these names, which can contain spaces.
BUILT = $${CARGO_TARGET_DIR:-target}/release/pg_timing
MANUAL = $${CARGO_TARGET_DIR:-target}/manual

GENERATE = $(CARGO) run --release --quiet -- --generate
# Writes the man pages and the completions of bash, zsh and fish. The old files are removed only if cargo is there and compiles
# the program. A page begins with its name.
manual:
	$(CARGO) build --release
	rm -rf "$(MANUAL)"
	mkdir -p "$(MANUAL)/man1" "$(MANUAL)/bash-completion/completions" "$(MANUAL)/zsh" "$(MANUAL)/fish"
	set -e; for program in pg_timing pg_test_timing; do \
		$(GENERATE) man $$program > "$(MANUAL)/pages"; \
		(cd "$(MANUAL)/man1" && awk '/^\.TH/ { page = tolower($$2) ".1" } { print > page }' ../pages); \
		$(GENERATE) bash $$program > "$(MANUAL)/bash-completion/completions/$$program"; \
		$(GENERATE) zsh $$program > "$(MANUAL)/zsh/_$$program"; \
		$(GENERATE) fish $$program > "$(MANUAL)/fish/$$program.fish"; \
	done; rm "$(MANUAL)/pages"

# What to run often: four minutes on a machine with two cores.
check: | python3
	tests/check quick

# Everything else, except suites that take hours: twenty minutes.
check-all: | python3
	tests/check all

# The checks are a Python program. A minimal Debian has no Python.
python3:
	@command -v python3 > /dev/null || $(MAKE) deps

# Suites that take hours. PostgreSQL's own suites run with each statement timed, on every server and by every method, and
# once more on a server with assertions, and with the sanitizers of gcc. For ten minutes, signals are sent to the processes of
# a server. The monitor takes 10 000 samples in a virtual machine without faults, and 100 000 in 17 days of simulated time. All
# packages are built, and installed in three releases of Debian. The property tests run with 80 times as many cases. One
# of them simulates some hundred thousand reads per case, which takes 12 ms, so it gets a quarter of the cases. Every reader of
# plans gets 64 MB.
SLOW_TEST = the_uncertainty_contains_the_true_rate
check-world: check check-all
	PROPTEST_CASES=20000 $(CARGO) test --release --workspace --exclude bench -- --skip $(SLOW_TEST)
	PROPTEST_CASES=5000 $(CARGO) test --release -p timing-clock --lib -- $(SLOW_TEST)
	READER_MB=64 $(CARGO) test --release -p pg_timing --test e2e -- each_reader_takes_linear_time_and_bounded_memory
	tests/extension/run 15 16 17 18
	tests/explain/run "$${CARGO_TARGET_DIR:-target}/debug/pg_timing" 15 16 17 18
	tests/advise/run "$${CARGO_TARGET_DIR:-target}/debug/pg_timing" 15 16 17 18
	tests/vm/run many-intervals
	MONITOR_SAMPLES=100000 $(CARGO) test --release -p pg_timing --lib -- monitor::tests::each_of_many_faults
	python3 tests/extension/suites.py
	python3 tests/extension/asserts.py
	python3 tests/extension/kills.py
	python3 tests/extension/sanitizers.py
	python3 tests/extension/packaged.py
	for part in deb service tar rpm oci crate same; do tests/packages/run $$part || exit 1; done
	$(MAKE) miri deny

# Feeds generated inputs to everything that reads text from outside: a quarter of an hour for each parser, two at the same time.
# That is an hour. make check-all has some seconds for each.
FUZZ_SECONDS ?= 900
fuzz: | python3
	tests/fuzz/run --seconds $(FUZZ_SECONDS) --jobs 2

# Checks licenses, sources and known vulnerabilities of all dependencies. The list of vulnerabilities comes from the network:
# without it, this check is not done, and says so.
deny:
	@command -v cargo-deny > /dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny --all-features check licenses bans sources
	@$(CARGO) deny fetch db || { echo "make deny: vulnerabilities are NOT CHECKED, because their list cannot be downloaded" >&2; exit 0; }; \
		$(CARGO) deny --all-features check advisories

# Runs the arithmetic of timing-clock in an interpreter that finds undefined behavior. It cannot read real clocks. An interpreted
# test is some hundred times slower, so the property tests have few cases, and the longest tests are left out.
MIRI_TESTS = claim clocksource granularity trust units features rate
miri:
	rustup toolchain install nightly --profile minimal --component miri,rust-src
	PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation $(CARGO) +nightly miri test -p timing-clock --lib -- \
		$(addsuffix ::,$(MIRI_TESTS))

# Installs missing packages as root. Other users see the command to type.
deps: PACKAGES = $(CHECK_PACKAGES)
deps-all: PACKAGES = $(CHECK_PACKAGES) $(ALL_PACKAGES)
deps deps-all: rust-components
	@missing=; for p in $(PACKAGES); do \
		dpkg-query -W -f '$${Status}\n' $$p 2>/dev/null | grep -q '^install ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" = 0 ]; then \
			apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing; \
		else echo "missing packages; as root: apt-get install$$missing" >&2; exit 1; fi; fi

# Without rustup, Rust comes from packages of the system, which have the same components.
rust-components:
	@if command -v rustup > /dev/null; then rustup component add $(RUST_COMPONENTS); else missing=; \
		for p in cargo-clippy rustfmt; do command -v $$p > /dev/null || missing="$$missing $$p"; done; \
		if [ -n "$$missing" ]; then \
			echo "missing:$$missing; install rustup, or the packages of your system for them" >&2; exit 1; fi; fi

# Compares read cost, rate and now() with the raw limit and with peers. The last line measures the CPU time of the monitor for
# ten minutes, next to node_exporter. The line before it reads logs, and pgBadger reads the same ones if it is installed. A log
# of 1 GB takes half an hour: tests/logs/bench PG_TIMING 1000.
bench:
	$(CARGO) run --release -p bench
	tests/extension/bench
	$(CARGO) build --release -p pg_timing
	tests/explain/bench "$(BUILT)"
	tests/logs/bench "$(BUILT)" 100
	tests/monitor/bench "$(BUILT)"

# Tests explain's method of pairs on recorded and simulated runs. It measures nothing and takes a second.
tournament:
	$(CARGO) run --release -p bench -- tournament

# Generates docs/*.schema.json and docs/metrics.md from the code.
schema:
	UPDATE_SCHEMA=1 $(CARGO) test -p pg_timing --lib -- report::tests::committed_schemas_match_the_code \
		monitor::openmetrics::tests::docs::committed_metrics_match_the_code

# Writes the pictures of the README: a report of a captured host. make check-all fails if the page has changed since.
pictures: | python3
	$(CARGO) build -p pg_timing
	tests/browser/run "$${CARGO_TARGET_DIR:-target}/debug/pg_timing" --pictures

# Builds the guide as a book, in target/book. mdBook is downloaded once.
guide: | python3
	tests/guide/run

BIN = $(DESTDIR)$(PREFIX)/bin
MAN_PAGES = $(DESTDIR)$(PREFIX)/share/man/man1
BASH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
# In /usr, zsh of Debian reads vendor-completions. In /usr/local it reads site-functions.
ZSH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
FISH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

# Prints the name of the link if it is ours. PostgreSQL's own program of this name can be in the same folder, and stays.
OWN_LINK = $$(test "$$(readlink "$(BIN)/pg_test_timing")" != pg_timing || echo pg_test_timing)

# Builds only if a file is missing or the manual is older than the program, because root may have no cargo. Without cargo it
# installs what exists.
install:
	test -x "$(BUILT)" || $(CARGO) build --release
	@if test -n "$$(find Cargo.lock crates -newer "$(BUILT)" \( -name "*.rs" -o -name "Cargo.*" \))"; then \
		echo "note: the program is older than its source code; to build it, type \"make\" as a user with cargo" >&2; fi
	install -d "$(BIN)"
	install -m 755 "$(BUILT)" "$(BIN)/pg_timing"
	@if test -e "$(BIN)/pg_test_timing" && test -z "$(OWN_LINK)"; then \
		echo "note: $(BIN)/pg_test_timing is another program, so it is not replaced by a link to pg_timing" >&2; \
	else set -x; ln -sf pg_timing "$(BIN)/pg_test_timing"; fi
	@if ! test "$(MANUAL)/man1/pg_timing.1" -nt "$(BUILT)"; then \
		if command -v $(CARGO) > /dev/null; then $(MAKE) manual; \
		else echo "note: the man pages are missing or old; to build them, type \"make manual\" as a user with cargo" >&2; fi; fi
	@if test -d "$(MANUAL)"; then set -ex; \
		install -d "$(MAN_PAGES)" "$(BASH_COMPLETIONS)" "$(ZSH_COMPLETIONS)" "$(FISH_COMPLETIONS)"; \
		for program in pg_timing $(OWN_LINK); do \
			install -m 644 "$(MANUAL)/man1/$$program"*.1 "$(MAN_PAGES)"; \
			install -m 644 "$(MANUAL)/bash-completion/completions/$$program" "$(BASH_COMPLETIONS)"; \
			install -m 644 "$(MANUAL)/zsh/_$$program" "$(ZSH_COMPLETIONS)"; \
			install -m 644 "$(MANUAL)/fish/$$program.fish" "$(FISH_COMPLETIONS)"; done; fi

uninstall:
	for program in pg_timing $(OWN_LINK); do \
		rm -f "$(BIN)/$$program" "$(BASH_COMPLETIONS)/$$program" "$(ZSH_COMPLETIONS)/_$$program" \
			"$(FISH_COMPLETIONS)/$$program.fish" "$(MAN_PAGES)/$$program.1" "$(MAN_PAGES)/$$program"-*.1; done

# Packages of the last commit, in target/deb, target/tar and so on. packaging/README.md says what each needs.
deb tar dist rpm pgxn oci: | python3
	packaging/build $@
