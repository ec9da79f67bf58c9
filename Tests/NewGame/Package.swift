// swift-tools-version: 6.2
import PackageDescription

// A game of its own that depends on Keepsake as any game would: `make test` builds it, runs it, and checks what it had
// to fetch.
let package = Package(
  name: "NewGame",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "keepsake", path: "../..")],
  targets: [
    .executableTarget(name: "NewGame", dependencies: [.product(name: "Keepsake", package: "keepsake")]),
    .testTarget(
      name: "NewGameTests",
      dependencies: [
        .product(name: "Keepsake", package: "keepsake"), .product(name: "KeepsakeTesting", package: "keepsake"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
