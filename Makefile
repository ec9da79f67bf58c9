# The few commands that a newcomer needs. `make demo` and `make test` install what a fresh Debian or Ubuntu lacks.
SWIFT ?= swift
# Without this, the order of the traits, and with it that of the compiler's options, differs from build to build, and
# every other build compiles all of this package anew.
SWIFT_BUILD = env SWIFT_DETERMINISTIC_HASHING=1 $(SWIFT) build
comma := ,
# The server and the command stand behind the trait Cloud; one build folder serves the demo and the tests.
# Storage in PostgreSQL is built where its client library is.
LIBPQ := $(wildcard /usr/include/postgresql/libpq-fe.h /usr/include/libpq-fe.h)
# Before them, what else every build is given (BUILD_FLAGS).
export TRAITS := $(BUILD_FLAGS) --traits Cloud$(if $(LIBPQ),$(comma)PostgreSQL)
KEEPSAKE = .build/debug/keepsake

.PHONY: help demo space dead-panic test test-deep damage removals torture power kills money-kills postgres-kills backup-kills stops \
  shuffle soak accounts fuzz mutants platforms tsan asan bench load openapi operations lint format docs build prepare

help:
	@echo "make demo     play a story with devices and a cloud on this machine, and check what Keepsake promises"
	@echo "make space    a small game in this terminal; leave it in any way, and it continues where you were"
	@echo "make dead-panic  an example: a game played in pieces ends like one played without a break"
	@echo "make test     the checks, in few rounds, ending with the count"
	@echo "make test-deep  the same in many rounds (1,000 worlds, 200 kills), and a game of its own"
	@echo "make damage   20,000 altered bytes and every lost page of a store, one at a time"
	@echo "make removals  1,000 games whose folder is taken away while they save"
	@echo "make torture  200 SIGKILLs of two syncing folders"
	@echo "make power    5,000 power cuts of a store, besides one before and after every sync"
	@echo "make kills    1,000 SIGKILLs of a process that saves without a pause"
	@echo "make money-kills  300 rounds of SIGKILL of a server and two games that spend the same money"
	@echo "make postgres-kills  the same with two servers over one PostgreSQL, which is killed, too"
	@echo "make backup-kills  100 SIGKILLs each of a cloud's backup and of its restore, while devices save"
	@echo "make stops    end a game by every signal and in every other way, 100 times each, and check what comes back"
	@echo "make shuffle  1,000 rounds of three stores whose shared folder arrives in any order, late, in pieces, twice"
	@echo "make soak     200,000 simulated worlds (SEEDS=...), built for release"
	@echo "make accounts  50,000 worlds of players, devices and the ways to them (WORLDS=...), built for release"
	@echo "make fuzz     10 million altered archives through each way of reading them"
	@echo "make mutants  plant mistakes in a copy of the code, one at a time; the tests have to notice each (ONLY=...)"
	@echo "make platforms  type-check the parts for other systems against stubs, and lint the workflow that has those"
	@echo "make tsan     the suites of archive, store and sync under ThreadSanitizer (in a separate build)"
	@echo "make asan     the same and the server's under AddressSanitizer"
	@echo "make bench    speed compared with peers, as ratios (WRITE=1 writes them to the documents)"
	@echo "make load     a release server under load from 64 devices, beside the bare upsert and a bare HTTP server"
	@echo "make openapi  requests made from docs/openapi.yaml against a running server (installs schemathesis)"
	@echo "make operations  follow docs/OPERATIONS.md: serve, pair, back up, lose the data, restore"
	@echo "make lint     check style and formatting (make format fixes it)"
	@echo "make docs     the documentation of the product Keepsake, in .build/docs"

prepare:
	@Scripts/prepare.sh

build: prepare
	@Scripts/stage.sh "build" $(SWIFT_BUILD) $(TRAITS) --build-tests

demo: prepare
	@Scripts/stage.sh "build the command" $(SWIFT_BUILD) $(TRAITS) --product keepsake
	@$(KEEPSAKE) demo $(DEMO_FLAGS)

space: prepare
	@$(SWIFT_BUILD) $(TRAITS) --product Space
	@.build/debug/Space $(SPACE_FLAGS)

test: build
	@Scripts/test.sh

test-deep: build
	@KEEPSAKE_DEEP=1 Scripts/prepare.sh
	@KEEPSAKE_DEEP=1 Scripts/test.sh

damage: build
	@KEEPSAKE_DAMAGE=20000 $(SWIFT) test $(TRAITS) --skip-build --filter KeepsakeTests.DamageTests

removals: build
	@KEEPSAKE_REMOVALS=$(or $(COUNT),1000) $(SWIFT) test $(TRAITS) --skip-build --filter RemovedFolderTests

torture: prepare
	@$(SWIFT_BUILD) $(TRAITS) --product keepsake
	@python3 Scripts/sync-torture.py --keepsake $(KEEPSAKE) --kills 200

power: build
	@KEEPSAKE_POWER_CUTS=$(or $(CUTS),5000) $(SWIFT) test $(TRAITS) --skip-build --filter PowerCutTests

kills: build
	@KEEPSAKE_STORE_KILLS=$(or $(KILLS),1000) $(SWIFT) test $(TRAITS) --skip-build --filter KeepsakeStoreTests.CrashTests

money-kills: build
	@KEEPSAKE_MONEY_KILLS=$(or $(KILLS),300) $(SWIFT) test $(TRAITS) --skip-build --filter MoneyKillTests

postgres-kills: build
	@KEEPSAKE_POSTGRES_KILLS=$(or $(KILLS),300) Scripts/with-postgres.sh \
		$(SWIFT) test $(TRAITS) --skip-build --filter PostgreSQLKillTests

backup-kills: build
	@KEEPSAKE_BACKUP_KILLS=$(or $(KILLS),100) $(SWIFT) test $(TRAITS) --skip-build --filter BackupKillTests

stops: prepare
	@$(SWIFT_BUILD) $(TRAITS) --product Space
	@python3 Scripts/autosave-stops.py --space .build/debug/Space --count $(or $(COUNT),100) $(if $(WRITE),--write)

fuzz: prepare
	@Scripts/fuzz.sh

mutants: prepare
	@python3 Scripts/mutants.py $(ONLY)

platforms: build
	@python3 Scripts/check-platforms.py --plant
	@Scripts/check-workflows.sh

tsan: prepare
	@Scripts/sanitize.sh thread

asan: prepare
	@Scripts/sanitize.sh address

shuffle: build
	@KEEPSAKE_FOLDER_ROUNDS=$(or $(ROUNDS),1000) $(SWIFT) test $(TRAITS) --skip-build --filter FolderShuffleTests

soak: prepare
	@$(SWIFT_BUILD) -c release $(TRAITS) --product keepsake
	@.build/release/keepsake simulate --seeds $(or $(SEEDS),200000) --from $(or $(FROM),1)

accounts: prepare
	@Scripts/account-worlds.sh $(or $(WORLDS),50000) $(FROM)

bench: prepare
	@Scripts/bench.sh $(BENCH_FLAGS) $(if $(WRITE),--write)

load: prepare
	@Scripts/stage.sh "build for release" $(SWIFT_BUILD) -c release $(TRAITS) --product keepsake
	@Scripts/load.sh .build/release/keepsake $(SECONDS)
	@$(if $(LIBPQ),Scripts/with-postgres.sh python3 Scripts/load-postgres.py .build/release/keepsake)

openapi: prepare
	@Scripts/stage.sh "build the command" $(SWIFT_BUILD) $(TRAITS) --product keepsake
	@Scripts/check-openapi.sh $(KEEPSAKE)

operations: prepare
	@$(SWIFT_BUILD) $(TRAITS) --product keepsake
	@Scripts/follow-operations.sh $(KEEPSAKE)

dead-panic: prepare
	@Scripts/stage.sh "build DeadPanic" $(SWIFT_BUILD) $(TRAITS) --product DeadPanic
	@Scripts/dead-panic.sh

lint:
	@$(SWIFT) format lint --strict --recursive --parallel Package.swift Sources Tests Examples Fuzz \
	  Benchmarks/Package.swift Benchmarks/Sources

format:
	@$(SWIFT) format --in-place --recursive --parallel Package.swift Sources Tests Examples Fuzz \
	  Benchmarks/Package.swift Benchmarks/Sources

docs: prepare
	@Scripts/docs.sh
