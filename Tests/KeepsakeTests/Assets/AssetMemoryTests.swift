import Foundation
import KeepsakeSimulation
import TestSupport
import Testing

@testable import Keepsake

/// A game's assets are larger than the memory that it gives them.
@Suite struct AssetMemoryTests {
  private static let patience = Patience.limit

  @Test("a library ten times its budget loads all assets, never exceeds the budget, and reloads evicted assets")
  func budget() async throws {
    let paths = (0..<100).map { "asset\($0)" }
    let world = try AssetWorld(Dictionary(uniqueKeysWithValues: paths.map { ($0, 1_000) }))
    let gate = ReadGate()
    let most = Peak()
    let library = Shared<AssetLibrary?>(nil)
    let assets = try AssetLibrary(
      at: world.url, budget: 10_000,
      reading: { path in
        gate.pass(path)
        // The bytes of a read in progress already count.
        most.note(library.value?.heldBytes ?? 0)
      })
    library.value = assets
    defer { library.value = nil }
    try await assets.load(paths, pinned: false).waitUntilLoaded()
    #expect(gate.reads.count == 100 && most.value == 10_000 && assets.heldBytes == 10_000)
    #expect(paths.count { assets[$0] != nil } == 10)
    for path in paths {
      let bytes = try await assets.data(for: path)
      #expect(bytes == world.bytes[path])
    }
    #expect(most.value == 10_000)
    #expect(gate.reads.count > 180)
  }

  @Test("the assets and values that were used least recently are evicted first")
  func leastRecentlyUsed() async throws {
    let world = try AssetWorld(["a": 100, "b": 100, "c": 100, "d": 100])
    let assets = try AssetLibrary(at: world.url, budget: 300)
    for path in ["a", "b", "c"] { _ = try await assets.data(for: path) }
    #expect(assets["a"] != nil)
    _ = try await assets.data(for: "d")
    #expect(assets["b"] == nil && assets["a"] != nil && assets["c"] != nil && assets["d"] != nil)
    // A decoded value counts towards the budget and is evicted like an asset.
    #expect(try await assets.value(for: "a", cost: 200) { $0.count } == 100)
    #expect(assets.heldBytes == 300 && assets["a"] != nil && assets["c"] == nil && assets["d"] == nil)
    _ = try await assets.data(for: "b")
    #expect(assets.heldBytes <= 300 && assets["b"] != nil)
  }

  @Test("assets pinned by a batch stay loaded; others that don't fit fail at once, or are returned but not kept")
  func pins() async throws {
    let world = try AssetWorld(["a": 400, "b": 400, "c": 400, "small": 100, "huge": 2_000])
    let assets = try AssetLibrary(at: world.url, budget: 1_000)
    var first: AssetBatch? = assets.load(["a", "b"])
    try await first?.waitUntilLoaded()
    let second = assets.load(["c", "a"])
    #expect(second.isDone && second.failures.map(\.code) == [.overBudget])
    #expect(second.failures.first?.message.contains("1000 bytes, of which 800 are pinned") == true)
    await #expect(throws: AssetError.self) { try await second.waitUntilLoaded() }
    // In an unpinned batch, only the asset that doesn't fit fails, with its path; the others are loaded.
    let unpinned = assets.load(["small", "c"], pinned: false)
    await #expect { try await unpinned.waitUntilLoaded() } throws: { error in
      (error as? AssetError)?.code == .overBudget && (error as? AssetError)?.path == "c"
    }
    #expect(assets["small"] != nil)
    #expect(try await assets.data(for: "c") == world.bytes["c"] && assets["c"] == nil, "returned, but not kept")
    let huge = try await onThread { try assets.data(for: "huge") }
    #expect(huge == world.bytes["huge"] && assets["huge"] == nil)
    #expect(assets["a"] != nil && assets["b"] != nil && assets.heldBytes <= 1_000)
    #expect(assets.load(["huge"]).failures.map(\.code) == [.overBudget])
    // An asset that two batches pinned stays until both are released.
    var third: AssetBatch? = assets.load(["a"])
    first = nil
    assets.removeUnpinned()
    #expect(assets["a"] != nil && assets["b"] == nil)
    try await third?.waitUntilLoaded()
    third?.cancel()
    assets.removeUnpinned()
    #expect(assets["a"] != nil, "cancelling a loaded batch unpins nothing")
    third = nil
    assets.removeUnpinned()
    #expect(assets["a"] == nil && assets.heldBytes == 0)
    try await assets.load(["c", "a"]).waitUntilLoaded()
  }

  @Test("cancelling a batch unpins its assets, which makes room for a later batch")
  func cancelledPins() async throws {
    let world = try AssetWorld(["a": 900, "b": 900])
    let gate = ReadGate(holding: ["a"])
    let assets = try AssetLibrary(at: world.url, budget: 1_000, reading: { gate.pass($0) })
    let first = assets.load(["a"])
    try await onThread { gate.waitFor(["a"]) }
    #expect(assets.load(["b"]).failures.map(\.code) == [.overBudget])
    first.cancel()
    let second = assets.load(["b"])
    #expect(second.failures.isEmpty)
    // The read in progress still takes the room, so the second batch waits for it to end.
    #expect(assets.heldBytes == 900)
    gate.open("a")
    try await second.waitUntilLoaded()
    #expect(assets["b"] == world.bytes["b"] && assets.heldBytes == 900)
  }

  @Test("a library with a budget of 0 returns what is requested, and keeps nothing")
  func nothingKept() async throws {
    let world = try AssetWorld(["a": 100, "empty": 0])
    let assets = try AssetLibrary(at: world.url, budget: 0)
    #expect(try await assets.data(for: "a") == world.bytes["a"] && assets.heldBytes == 0)
    #expect(try await assets.value(for: "a") { $0.count } == 100)
    try await assets.load(["empty"]).waitUntilLoaded()
    #expect(assetErrorCode { _ = try AssetLibrary(at: world.url, budget: -1) } == .misuse)
    #expect(
      try await assets.value(for: "a", cost: .max) { $0.count } == 100, "the largest possible cost doesn't trap")
    #expect(try await assets.value(for: "a", cost: -1) { $0.count } == 100)
    #expect(assets.heldBytes == 0)
  }

  @Test("a large file that is mapped has the same bytes, counts in full, and is refused if it was altered")
  func mapped() async throws {
    let large = AssetLibrary.largeFileBytes
    let world = try AssetWorld(["large": large + 3, "small": large - 1])
    let assets = try AssetLibrary(at: world.url, largeFiles: .mapped)
    for path in ["large", "small"] {
      let bytes = try await assets.data(for: path)
      let isSame = bytes == world.bytes[path]
      #expect(isSame, "\(path)")
    }
    #expect(assets.heldBytes == 2 * large + 2)
    // A file that was altered before it is mapped is refused like any other.
    assets.removeUnpinned()
    var altered = try #require(world.bytes["large"])
    altered[large] ^= 1
    try world.write(altered, to: "large")
    await #expect { try await assets.data(for: "large") } throws: { ($0 as? AssetError)?.code == .damaged }
    try world.write(altered.dropLast(), to: "large")
    await #expect { try await assets.data(for: "large") } throws: { ($0 as? AssetError)?.code == .damaged }
  }

  @Test(
    "pinning, reading, using and releasing never exceed the budget, and pinned assets always have room",
    arguments: [1, 2, 3, 4, 5])
  func invariants(seed: UInt64) async throws {
    try await onThread { Self.useCache(seed) }
  }

  private static func useCache(_ seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var cache = AssetCache(budget: 1_000)
    let sizes = (0..<20).map { _ in Int.random(in: 0...400, using: &random) }
    var reading: [Int] = []
    var pinned: [[Int]] = []
    var sawLater = 0
    for step in 0..<20_000 {
      let asset = Int.random(in: 0..<20, using: &random)
      switch Int.random(in: 0..<8, using: &random) {
      case 0:
        let assets: [Int] = (0..<20).filter { _ in Int.random(in: 0..<12, using: &random) == 0 }
        var all = 0
        for asset in Set(pinned.joined()).union(assets) { all += sizes[asset] }
        let fits = cache.pin(assets.map { ($0, sizes[$0]) })
        #expect(fits == (all <= 1_000), "seed \(seed), step \(step)")
        if fits { pinned.append(assets) }
      case 1:
        guard !pinned.isEmpty else { break }
        cache.unpin(pinned.remove(at: Int.random(in: 0..<pinned.count, using: &random)))
      case 2...4:
        guard !reading.contains(asset), !cache.isLoaded(asset), reading.count < 3 else { break }
        let isPinned = pinned.contains { $0.contains(asset) }
        switch cache.reserve(asset, sizes[asset]) {
        case .granted: reading.append(asset)
        case .later:
          sawLater += 1
          #expect(!reading.isEmpty, "seed \(seed), step \(step): nothing would ever end the wait")
        case .never: #expect(!isPinned, "seed \(seed), step \(step): no room for a pinned asset")
        }
      case 5:
        guard !reading.isEmpty else { break }
        let done = reading.removeFirst()
        cache.finish(done, Bool.random(using: &random) ? Data(count: sizes[done]) : nil)
      case 6: _ = cache.bytes(of: asset)
      default: _ = cache.keep("a value", of: asset, cost: Int.random(in: 0...300, using: &random))
      }
      _ = cache.takeLetGo()
      #expect(cache.heldBytes <= 1_000 && cache.heldBytes >= 0, "seed \(seed), step \(step)")
      var pinnedBytes = 0
      for asset in Set(pinned.joined()) { pinnedBytes += sizes[asset] }
      #expect(cache.pinnedBytes == pinnedBytes, "seed \(seed), step \(step)")
    }
    #expect(sawLater > 0, "seed \(seed)")
    for assets in pinned { cache.unpin(assets) }
    for asset in reading { cache.finish(asset, nil) }
    cache.empty()
    #expect(cache.heldBytes == 0 && cache.pinnedBytes == 0, "seed \(seed): nothing is held any more")
  }
}
