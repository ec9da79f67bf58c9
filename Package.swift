// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

// What a game fetches: GRDB, swift-crypto (with what it needs) and swift-syntax. What only the cloud and the
// command need stands behind the trait `Cloud`, which is off unless asked for: `swift build --traits Cloud`.
let cloud: TargetDependencyCondition = .when(traits: ["Cloud"])!
let postgres: TargetDependencyCondition = .when(traits: ["PostgreSQL"])!

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

/// Where zstd comes from, by the system on which the package is built. Linux has it as a library, and nothing is
/// fetched. A Mac may lack it, and iOS, Windows and Android do: for them it is built from the sources of its own
/// package; for Android on Linux, with the trait `Android`. `Zstd.swift` imports it.
struct ZstdSource {
  var package = Package.Dependency.package(url: "https://github.com/facebook/zstd", "1.5.5"..<"1.6.0")
  var dependencies: [Target.Dependency]
  var targets: [Target] = []
  var settings: [SwiftSetting] = []

  init(host: String) {
    guard host == "linux" else {
      dependencies = [.product(name: "libzstd", package: "zstd")]
      return
    }
    dependencies = [
      .target(name: "CZstd", condition: .when(platforms: [.linux])),
      .product(name: "libzstd", package: "zstd", condition: .when(platforms: [.android], traits: ["Android"])),
    ]
    targets = [.systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])])]
    settings = [.define("SYSTEM_ZSTD", .when(platforms: [.linux]))]
  }
}

#if os(Linux)
let host = "linux"
#else
let host = "other"
#endif
// Only a test of this manifest names another host.
let zstd = ZstdSource(host: Context.environment["KEEPSAKE_MANIFEST_HOST"] ?? host)

let package = Package(
  name: "keepsake",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    // With the modules that Keepsake re-exports: their code is inlined into games, and the package manager builds a
    // game's module anew only when one of the modules that it depends on directly has changed. And with
    // KeepsakeRecords, which a game imports where it queries tables.
    .library(
      name: "Keepsake",
      targets: [
        "Keepsake", "KeepsakeArchive", "KeepsakeInterchange", "KeepsakeRecords", "KeepsakeReplication", "KeepsakeStore",
      ]),
    // For the tests of games: devices, a cloud and a clock in one process. Fetches nothing more.
    .library(name: "KeepsakeTesting", targets: ["KeepsakeTesting"]),
    // For tools: shows archives and compares them, without the types that wrote them. No game has to be built with it.
    .library(name: "KeepsakeInspection", targets: ["KeepsakeInspection"]),
    .executable(name: "keepsake", targets: ["KeepsakeCommand"]),
  ],
  traits: [
    .trait(name: "Cloud", description: "The server and the command line tool, with the packages that only they need."),
    .trait(name: "PostgreSQL", description: "The server's storage in PostgreSQL, which needs its client library."),
    .trait(name: "Android", description: "zstd from source, for builds for Android on Linux."),
    .default(enabledTraits: []),
  ],
  dependencies: [
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/apple/swift-crypto", "4.5.2"..<"5.0.0"),
    .package(url: "https://github.com/swiftlang/swift-syntax", "603.0.1"..<"604.0.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.30.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
    .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
    zstd.package,
  ],
  targets: [
    .macro(
      name: "KeepsakeMacros",
      dependencies: [
        .product(name: "SwiftSyntax", package: "swift-syntax"),
        .product(name: "SwiftSyntaxBuilder", package: "swift-syntax"),
        .product(name: "SwiftSyntaxMacros", package: "swift-syntax"),
        .product(name: "SwiftDiagnostics", package: "swift-syntax"),
        .product(name: "SwiftCompilerPlugin", package: "swift-syntax"),
      ],
      swiftSettings: strict),
    // What differs between the systems: the only place that asks which one it is.
    .target(name: "KeepsakePlatform", swiftSettings: strict),
    .target(name: "KeepsakeArchive", dependencies: ["KeepsakeMacros"], swiftSettings: strict),
    // Archives shown, compared and taken apart, without the types that wrote them: for tools, and not for games.
    .target(name: "KeepsakeInspection", dependencies: ["KeepsakeArchive"], swiftSettings: strict),
    // What other programs wrote: JSON, property lists and keyed archives.
    .target(name: "KeepsakeInterchange", dependencies: ["KeepsakeArchive"], swiftSettings: strict),
    .target(
      name: "KeepsakeReplication",
      dependencies: [.product(name: "Crypto", package: "swift-crypto")],
      swiftSettings: strict),
    // Foundation's own HTTP client on Linux is built on it, too.
    .systemLibrary(
      name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"]), .yum(["libcurl-devel"])]),
    // For the command alone, which opens what others compressed.
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    .target(
      name: "KeepsakeStore",
      dependencies: [
        "KeepsakePlatform", "KeepsakeReplication",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "GRDBSQLite", package: "GRDB.swift"),
        .product(name: "Crypto", package: "swift-crypto"),
      ] + zstd.dependencies,
      swiftSettings: strict + zstd.settings),
    .target(
      name: "KeepsakeSync",
      dependencies: [
        "KeepsakePlatform", "KeepsakeReplication", "KeepsakeStore",
        .target(name: "CCurl", condition: .when(platforms: [.linux])),
      ],
      swiftSettings: strict),
    .target(
      name: "Keepsake",
      dependencies: [
        "KeepsakeArchive", "KeepsakeInterchange", "KeepsakePlatform", "KeepsakeReplication", "KeepsakeStore",
        "KeepsakeSync",
        .product(name: "GRDB", package: "GRDB.swift"), .product(name: "GRDBSQLite", package: "GRDB.swift"),
        .product(name: "Crypto", package: "swift-crypto"),
      ],
      swiftSettings: strict),
    // GRDB for games that query tables, so that they don't have to name its package.
    .target(
      name: "KeepsakeRecords", dependencies: [.product(name: "GRDB", package: "GRDB.swift")], swiftSettings: strict),
    // Simulated worlds from a seed, and clocks that a test turns. May use whatever a game uses.
    .target(
      name: "KeepsakeSimulation",
      dependencies: ["KeepsakeArchive", "KeepsakeReplication", "KeepsakeStore", "Keepsake"],
      swiftSettings: strict),
    // What tests of games stand on: devices, a cloud and a clock in the test's process.
    .target(
      name: "KeepsakeTesting",
      dependencies: ["Keepsake", "KeepsakeReplication", "KeepsakeSimulation", "KeepsakeStore", "KeepsakeSync"],
      swiftSettings: strict),
    // The client library of PostgreSQL, and what the server needs of it. Neither is looked for without the trait.
    .systemLibrary(
      name: "CPostgreSQL", pkgConfig: "libpq",
      providers: [.apt(["libpq-dev"]), .yum(["libpq-devel"]), .brew(["libpq"])]),
    .target(
      name: "KeepsakePostgreSQL",
      dependencies: ["KeepsakePlatform", .target(name: "CPostgreSQL", condition: postgres)], swiftSettings: strict),
    .target(
      name: "KeepsakeServer",
      dependencies: [
        "KeepsakePlatform", "KeepsakeReplication",
        .target(name: "KeepsakePostgreSQL", condition: postgres),
        .product(name: "GRDB", package: "GRDB.swift", condition: cloud),
        .product(name: "Crypto", package: "swift-crypto", condition: cloud),
        .product(name: "Hummingbird", package: "hummingbird", condition: cloud),
        .product(name: "HummingbirdCore", package: "hummingbird", condition: cloud),
        .product(name: "HummingbirdHTTP2", package: "hummingbird", condition: cloud),
        .product(name: "AsyncHTTPClient", package: "async-http-client", condition: cloud),
        .product(name: "NIOCore", package: "swift-nio", condition: cloud),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: cloud),
        .product(name: "NIOTLS", package: "swift-nio", condition: cloud),
        .product(name: "NIOHTTPTypes", package: "swift-nio-extras", condition: cloud),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: cloud),
        .product(name: "HTTPTypes", package: "swift-http-types", condition: cloud),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: cloud),
        .product(name: "UnixSignals", package: "swift-service-lifecycle", condition: cloud),
        .product(name: "Logging", package: "swift-log", condition: cloud),
        .product(name: "CoreMetrics", package: "swift-metrics", condition: cloud),
        .product(name: "Tracing", package: "swift-distributed-tracing", condition: cloud),
        .product(name: "JWTKit", package: "jwt-kit", condition: cloud),
      ],
      swiftSettings: strict),
    // Keeps a folder of plain files and a store the same: `keepsake sync`.
    .target(
      name: "KeepsakeMirror", dependencies: ["KeepsakePlatform", "KeepsakeReplication", "KeepsakeStore"],
      swiftSettings: strict),
    .executableTarget(
      name: "KeepsakeCommand",
      dependencies: [
        "FlowerGarden", "Keepsake", "KeepsakeArchive", "KeepsakeInspection", "KeepsakeInterchange", "KeepsakeMirror",
        "KeepsakePlatform", "KeepsakeReplication", "KeepsakeStore", "KeepsakeSync", "KeepsakeServer",
        "KeepsakeSimulation",
        .target(name: "CZlib", condition: cloud),
        .product(name: "ArgumentParser", package: "swift-argument-parser", condition: cloud),
        .product(name: "Configuration", package: "swift-configuration", condition: cloud),
        .product(name: "CoreMetrics", package: "swift-metrics", condition: cloud),
        .product(name: "Crypto", package: "swift-crypto", condition: cloud),
        .product(name: "Logging", package: "swift-log", condition: cloud),
        .product(name: "UnixSignals", package: "swift-service-lifecycle", condition: cloud),
        .product(name: "Yams", package: "Yams", condition: cloud),
      ],
      swiftSettings: strict),
    // Games that show how it is used (`make space`, `make dead-panic`). A game that depends on Keepsake never builds
    // them.
    .executableTarget(
      name: "Space", dependencies: ["Keepsake"], path: "Examples/Space", exclude: ["README.md", "space.svg"],
      resources: [.copy("Assets")], swiftSettings: strict),
    .executableTarget(
      name: "DeadPanic", dependencies: ["Keepsake"], path: "Examples/DeadPanic", exclude: ["README.md"],
      swiftSettings: strict),
    // A library, played by the demo and by tests.
    .target(
      name: "FlowerGarden", dependencies: ["Keepsake"], path: "Examples/FlowerGarden", exclude: ["README.md"],
      swiftSettings: strict),
    // Beside the sources, a folder a target. What several of them share is in TestSupport.
    .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: strict),
    // Alters messages and checks what becomes of them: for `make fuzz` and a test.
    .target(
      name: "ExchangeFuzz", dependencies: ["KeepsakeReplication"], path: "Fuzz/Exchange", exclude: ["Runner"],
      swiftSettings: strict),
    // The types that the tests of archives save.
    .target(
      name: "ArchiveWorlds", dependencies: ["KeepsakeArchive"], path: "Tests/ArchiveWorlds", swiftSettings: strict),
    .testTarget(name: "ArchitectureTests", dependencies: ["TestSupport"]),
    .testTarget(name: "ExampleTests", dependencies: ["DeadPanic", "Keepsake", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "KeepsakeArchiveTests",
      dependencies: ["ArchiveWorlds", "KeepsakeArchive", "KeepsakeInspection", "TestSupport"],
      resources: [.copy("Fixtures")], swiftSettings: strict),
    .testTarget(
      name: "KeepsakeInspectionTests",
      dependencies: ["ArchiveWorlds", "KeepsakeArchive", "KeepsakeInspection", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "KeepsakeInterchangeTests",
      dependencies: [
        "ArchiveWorlds", "KeepsakeArchive", "KeepsakeInterchange", "TestSupport",
        .product(name: "Crypto", package: "swift-crypto"),
      ],
      exclude: ["tree.py"],
      swiftSettings: strict),
    .testTarget(
      name: "KeepsakeMainActorTests", dependencies: ["KeepsakeArchive"],
      swiftSettings: strict + [.defaultIsolation(MainActor.self)]),
    // Asks the built plugin, as the compiler does: a target that depended on the macros, or on swift-syntax, would have
    // the package manager build swift-syntax a second time. KeepsakeArchive has the plugin built.
    .testTarget(
      name: "KeepsakeMacroExpansionTests", dependencies: ["KeepsakeArchive", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "KeepsakeReplicationTests",
      dependencies: ["KeepsakeReplication", "KeepsakeSimulation", "KeepsakeStore", "TestSupport"],
      exclude: ["Fixtures"], swiftSettings: strict),
    .testTarget(
      name: "SimulationTests", dependencies: ["KeepsakeReplication", "KeepsakeSimulation", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "KeepsakeStoreTests",
      dependencies: [
        "KeepsakeStore", "KeepsakePlatform", "KeepsakeReplication", "KeepsakeSimulation", "Keepsake", "TestSupport",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "GRDBSQLite", package: "GRDB.swift"),
      ],
      exclude: ["Fixtures"], swiftSettings: strict),
    .testTarget(
      name: "KeepsakeSyncTests",
      dependencies: ["KeepsakeSync", "KeepsakeStore", "KeepsakeReplication", "KeepsakeSimulation", "TestSupport"],
      exclude: ["Fixtures"], swiftSettings: strict),
    .testTarget(
      name: "KeepsakeTests",
      dependencies: [
        "Keepsake", "KeepsakePlatform", "KeepsakeSync", "KeepsakeStore", "KeepsakeReplication", "KeepsakeSimulation",
        "KeepsakeTesting", "TestSupport",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "KeepsakeTestingTests",
      dependencies: [
        "FlowerGarden", "Keepsake", "KeepsakeReplication", "KeepsakeSimulation", "KeepsakeStore", "KeepsakeTesting",
        "TestSupport",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "KeepsakePostgreSQLTests", dependencies: ["KeepsakePlatform", "KeepsakePostgreSQL", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "KeepsakeServerTests",
      dependencies: [
        .target(name: "KeepsakePostgreSQL", condition: postgres),
        "ExchangeFuzz", "Keepsake", "KeepsakeServer", "KeepsakeSync", "KeepsakeStore", "KeepsakeReplication",
        "KeepsakeSimulation", "TestSupport",
        .product(name: "GRDB", package: "GRDB.swift", condition: cloud),
        .product(name: "Logging", package: "swift-log", condition: cloud),
        .product(name: "CoreMetrics", package: "swift-metrics", condition: cloud),
        .product(name: "Crypto", package: "swift-crypto", condition: cloud),
        .product(name: "HTTPTypes", package: "swift-http-types", condition: cloud),
        .product(name: "JWTKit", package: "jwt-kit", condition: cloud),
      ],
      exclude: ["Fixtures"], swiftSettings: strict),
    .testTarget(
      name: "KeepsakeMirrorTests",
      dependencies: ["KeepsakeMirror", "KeepsakeReplication", "KeepsakeStore", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "KeepsakeCommandTests",
      dependencies: [
        .target(name: "KeepsakePostgreSQL", condition: postgres),
        "KeepsakeCommand", "FlowerGarden", "KeepsakeArchive", "KeepsakeInspection", "KeepsakeInterchange",
        "KeepsakeMirror",
        "KeepsakeServer", "KeepsakeSync", "KeepsakeStore", "KeepsakeReplication",
        "Keepsake", "TestSupport",
        .target(name: "CZlib", condition: cloud),
        .product(name: "ArgumentParser", package: "swift-argument-parser", condition: cloud),
        .product(name: "Configuration", package: "swift-configuration", condition: cloud),
        .product(name: "GRDB", package: "GRDB.swift", condition: cloud),
      ],
      swiftSettings: strict),
  ] + zstd.targets,
  swiftLanguageModes: [.v6]
)

// Where tests run code that is built for release (`make accounts`): to optimise the tests, too, would take longer than
// everything else.
if Context.environment["KEEPSAKE_PLAIN_TESTS"] != nil {
  for target in package.targets where target.type == .test {
    target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(["-Onone"])]
  }
}
