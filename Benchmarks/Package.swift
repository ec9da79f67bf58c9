// swift-tools-version: 6.2
import PackageDescription

// Speed beside peers, in one run, as ratios. A package of its own, so that a game never fetches what only a benchmark
// needs.
let keepsake: Target.Dependency = .product(name: "Keepsake", package: "keepsake")
let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "Benchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "keepsake", path: ".."),
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    // As a peer, and what a game that keeps records names too.
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    // The worlds as a game would declare them, in a module of their own and internal to it, with what the other
    // encoders need beside them: messages, mirrors for Codable, mirrors for NSCoding, the same bytes written by hand.
    .target(
      name: "GameWorlds",
      dependencies: [keepsake, "BenchmarkKit", "CPeers", .product(name: "SwiftProtobuf", package: "swift-protobuf")],
      swiftSettings: strict),
    // The same bytes by hand in C++, behind a C interface.
    .target(name: "CPeers"),
    .systemLibrary(name: "CZstandard", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),
    // Tables, goals, and where they are written down.
    .target(name: "BenchmarkKit", dependencies: ["CPeers"], swiftSettings: strict),
    .executableTarget(
      name: "StoreBenchmark",
      dependencies: ["BenchmarkKit", "GameWorlds", "CPeers", keepsake, .product(name: "GRDB", package: "GRDB.swift")],
      swiftSettings: strict),
    .executableTarget(name: "AssetBenchmark", dependencies: ["BenchmarkKit", keepsake], swiftSettings: strict),
    .executableTarget(
      name: "RecordsBenchmark",
      dependencies: ["BenchmarkKit", keepsake, .product(name: "GRDB", package: "GRDB.swift")], swiftSettings: strict),
    .executableTarget(
      name: "ArchiveBenchmark", dependencies: ["BenchmarkKit", "GameWorlds", "CPeers", "CZstandard", keepsake],
      swiftSettings: strict),
    .executableTarget(name: "InterchangeBenchmark", dependencies: ["BenchmarkKit", keepsake], swiftSettings: strict),
    .executableTarget(name: "SyncBenchmark", dependencies: ["BenchmarkKit", keepsake], swiftSettings: strict),
    .executableTarget(
      name: "PreferenceBenchmark",
      dependencies: ["BenchmarkKit", keepsake, .product(name: "GRDB", package: "GRDB.swift")], swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6],
  cxxLanguageStandard: .cxx17
)
