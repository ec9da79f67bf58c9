// swift-tools-version: 6.2
import PackageDescription

// Speed beside peers, in one run, as ratios. A package of its own, so that a game never fetches what only a benchmark needs.
let package = Package(
  name: "Benchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "keepsake", path: "..")],
  targets: [
    .target(name: "GameWorlds", dependencies: [.product(name: "Keepsake", package: "keepsake")]),
    .executableTarget(
      name: "ArchiveBenchmark", dependencies: ["GameWorlds", .product(name: "Keepsake", package: "keepsake")]),
  ],
  swiftLanguageModes: [.v6]
)
