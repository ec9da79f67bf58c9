import Foundation
import KeepsakeSimulation
import TestSupport
import Testing

@testable import Keepsake

/// Assets load in the background while the game runs, the important ones first, and every wait ends.
@Suite struct AssetLoadingTests {
  /// Long enough for any machine; a test that waits so long has failed.
  private static let patience = Patience.limit

  @Test("assets load in the background, and a game can wait for them in a task or on a thread")
  func loads() async throws {
    let world = try AssetWorld(["Images/Ship.png": 5_000, "Sounds/Boom.wav": 70_000, "empty": 0])
    let assets = try AssetLibrary(at: world.url)
    #expect(
      assets.paths == ["Images/Ship.png", "Sounds/Boom.wav", "empty"] && assets.size(of: "Sounds/Boom.wav") == 70_000)
    #expect(assets["Images/Ship.png"] == nil && assets.heldBytes == 0)
    let batch = assets.load(["Images/Ship.png", "empty", "Images/Ship.png"], priority: .high)
    try await batch.waitUntilLoaded()
    #expect(batch.isLoaded && batch.isDone && batch.failures.isEmpty)
    #expect(batch.progress == AssetProgress(bytesDone: 5_000, bytesInAll: 5_000, filesDone: 2, filesInAll: 2))
    #expect(batch.progress.fraction == 1)
    #expect(assets["Images/Ship.png"] == world.bytes["Images/Ship.png"] && assets["empty"] == Data())
    #expect(assets["Sounds/Boom.wav"] == nil && assets["no such"] == nil && assets["../secret"] == nil)
    let sound = try await assets.data(for: "Sounds/Boom.wav")
    #expect(sound == world.bytes["Sounds/Boom.wav"] && assets.heldBytes == 75_000)
    assets.removeUnpinned()
    withExtendedLifetime(batch) {
      #expect(
        assets["Sounds/Boom.wav"] == nil && assets["Images/Ship.png"] != nil, "a live batch keeps what it loaded")
    }
    let again = try await onThread {
      let batch = assets.load(["Sounds/Boom.wav"])
      try batch.wait(within: Self.patience)
      return (try assets.data(for: "Sounds/Boom.wav"), try assets.url(for: "Sounds/Boom.wav"))
    }
    #expect(again.0 == sound && again.1.path == world.file("Sounds/Boom.wav").path)
    let nothing = assets.load([])
    #expect(nothing.isLoaded && nothing.progress.fraction == 1)
  }

  @Test("assets load by priority, then in the order of the requests, and a request's priority can be raised")
  func priorities() async throws {
    let world = try AssetWorld([
      "block1": 1, "block2": 1, "low1": 1, "low2": 1, "normal": 1, "high": 1, "raised": 1, "shared": 1,
    ])
    // One thread is blocked until the end, so that the order of the other one's reads can be seen.
    let gate = ReadGate(holding: ["block1", "block2"])
    let assets = try AssetLibrary(at: world.url, reading: { gate.pass($0) })
    let reads = try await onThread {
      let blocks = assets.load(["block1", "block2"])
      gate.waitFor(["block1", "block2"])
      var batches = [assets.load(["low1", "shared"], priority: .low), assets.load(["raised"], priority: .low)]
      batches.append(assets.load(["low2"], priority: .low))
      batches.append(assets.load(["normal"]))
      batches.append(assets.load(["high"], priority: .high))
      batches.append(assets.load(["shared"], priority: .normal))
      batches[1].raise(to: .high)
      batches[0].raise(to: .low)
      gate.open("block1")
      for batch in batches { try batch.wait(within: Self.patience) }
      gate.open("block2")
      try blocks.wait(within: Self.patience)
      return gate.reads.dropFirst(2)
    }
    #expect(reads == ["raised", "high", "shared", "normal", "low1", "low2"])
  }

  @Test("an asset that several tasks and threads request at once is read once, and all of them get it")
  func coalesced() async throws {
    let world = try AssetWorld(["a": 300_000])
    let gate = ReadGate(holding: ["a"])
    let assets = try AssetLibrary(at: world.url, reading: { gate.pass($0) })
    let expected = try #require(world.bytes["a"])
    let batches = [assets.load(["a"]), assets.load(["a"], priority: .low)]
    // Signalled by each reader just before its call.
    let calls = DispatchSemaphore(value: 0)
    let tasks = (0..<4).map { _ in
      Task { () async throws -> Bool in
        calls.signal()
        return try await assets.data(for: "a") == expected
      }
    }
    let threads = (0..<4).map { _ in
      Task { () async throws -> Bool in
        try await onThread {
          calls.signal()
          return try assets.data(for: "a") == expected
        }
      }
    }
    try await onThread {
      gate.waitFor(["a"])
      for _ in 0..<8 { calls.wait() }
    }
    gate.open("a")
    for task in tasks + threads { #expect(try await task.value) }
    for batch in batches { try await batch.waitUntilLoaded() }
    #expect(gate.reads == ["a"])
  }

  @Test("cancelling a batch ends it at once; only assets that another batch has requested are still read")
  func cancellation() async throws {
    let world = try AssetWorld(["block1": 1, "block2": 1, "mine": 10, "ours": 10])
    let gate = ReadGate(holding: ["block1", "block2"])
    let assets = try AssetLibrary(at: world.url, reading: { gate.pass($0) })
    let blocks = assets.load(["block1", "block2"])
    try await onThread { gate.waitFor(["block1", "block2"]) }
    let mine = assets.load(["mine", "ours"])
    let other = assets.load(["ours"])
    let waiting = Task { try await mine.waitUntilLoaded() }
    let updates = mine.progressUpdates
    mine.cancel()
    await #expect { try await waiting.value } throws: { ($0 as? AssetError)?.code == .cancelled }
    // Its stream ends as well.
    for await _ in updates {}
    #expect(mine.isDone && !mine.isLoaded && !other.isDone)
    gate.open("block1")
    gate.open("block2")
    try await other.waitUntilLoaded()
    try await blocks.waitUntilLoaded()
    blocks.cancel()
    #expect(blocks.isLoaded, "cancelling a loaded batch does nothing")
    #expect(!gate.reads.contains("mine") && assets["ours"] == world.bytes["ours"])
  }

  @Test("cancelling a task ends only its own wait; the batch and other waiting tasks continue")
  func cancelledTasks() async throws {
    let world = try AssetWorld(["a": 10])
    let gate = ReadGate(holding: ["a"])
    let assets = try AssetLibrary(at: world.url, reading: { gate.pass($0) })
    let batch = assets.load(["a"])
    let tasks = [Task { try await batch.waitUntilLoaded() }, Task { _ = try await assets.data(for: "a") }]
    let other = Task { try await assets.data(for: "a") }
    for task in tasks { task.cancel() }
    for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
    #expect(!batch.isDone)
    gate.open("a")
    #expect(try await other.value == world.bytes["a"])
    try await batch.waitUntilLoaded()
  }

  @Test("a wait that exceeds its time limit throws, and loading continues")
  func timeOut() async throws {
    let world = try AssetWorld(["a": 10, "b": 10])
    let gate = ReadGate(holding: ["a"])
    let assets = try AssetLibrary(at: world.url, reading: { gate.pass($0) })
    let batch = assets.load(["a", "b"])
    let code = try await onThread { assetErrorCode { try batch.wait(within: .milliseconds(20)) } }
    #expect(code == .timedOut && !batch.isDone)
    gate.open("a")
    try await batch.waitUntilLoaded()
  }

  @Test("the progress of a batch never decreases, and reaches 1 only if everything was loaded")
  func progress() async throws {
    let world = try AssetWorld(["large": 5 * AssetFolder.chunkBytes + 1, "small": 999, "tiny": 1])
    let assets = try AssetLibrary(at: world.url)
    let gate = ReadGate(holding: ["large"])
    let held = try AssetLibrary(at: world.url, reading: { gate.pass($0) })
    let batch = held.load(["large", "small", "tiny"])
    let updates = batch.progressUpdates
    gate.open("large")
    var seen: [Double] = []
    for await progress in updates { seen.append(progress.fraction) }
    #expect(seen == seen.sorted() && seen.last == 1, "\(seen)")
    // A stream that begins after loading has ended has one element.
    var late: [AssetProgress] = []
    for await progress in batch.progressUpdates { late.append(progress) }
    #expect(late == [batch.progress])
    let failing = assets.load(["small", "no such"])
    await #expect(throws: AssetError.self) { try await failing.waitUntilLoaded() }
    #expect(failing.progress.fraction < 1 && failing.progress.filesDone == 1)
  }

  @Test("a file that is still being read counts with the bytes read so far, and streams are updated at once")
  func progressWithinFiles() async throws {
    var queue = AssetQueue()
    let assets = [(asset: 7, size: 1_000), (asset: 8, size: 10)]
    queue.add(AssetBatchRecord(priority: .low, assets: assets, isLoaded: { $0 == 8 }, failures: [], pinned: []), as: 1)
    let (stream, continuation) = AsyncStream<AssetProgress>.makeStream(bufferingPolicy: .bufferingNewest(1))
    #expect(queue.addStream(continuation, as: 1, to: 1) && queue.next() == 7)
    queue.begin(7)
    queue.note(400, of: 7)
    let expected = AssetProgress(bytesDone: 410, bytesInAll: 1_010, filesDone: 1, filesInAll: 2)
    #expect(queue.progress(of: 1) == expected)
    var updates = stream.makeAsyncIterator()
    #expect(await updates.next() == expected)
  }

  @Test("a synchronous load reads on the calling thread, even while all of the library's threads are busy")
  func blocking() async throws {
    let world = try AssetWorld(["block1": 1, "block2": 1, "now": 10])
    let gate = ReadGate(holding: ["block1", "block2"])
    let assets = try AssetLibrary(at: world.url, reading: { gate.pass($0) })
    let blocks = assets.load(["block1", "block2"])
    let now = try await onThread {
      gate.waitFor(["block1", "block2"])
      // Both threads of the library are busy.
      return try assets.data(for: "now")
    }
    #expect(now == world.bytes["now"] && !blocks.isDone)
    gate.open("block1")
    gate.open("block2")
    try await blocks.waitUntilLoaded()
  }

  @Test("an asset is decoded once for each path and type, and errors of the decoding closure are thrown as they are")
  func values() async throws {
    struct Image: Sendable, Equatable { var bytes: Int }
    struct NoImage: Error {}
    let world = try AssetWorld(["a": 100, "b": 100])
    let assets = try AssetLibrary(at: world.url)
    let decoded = ReadGate()
    let decode: @Sendable (Data) -> Image = { data in
      decoded.pass("decoded")
      return Image(bytes: data.count)
    }
    let first = try await assets.value(for: "a", decode: decode)
    let second = try await onThread { try assets.value(for: "a", decode: decode) }
    #expect(first == Image(bytes: 100) && second == first && decoded.reads.count == 1)
    #expect(try await assets.value(for: "a") { "\($0.count)" } == "100", "another type is another value")
    await #expect(throws: NoImage.self) { try await assets.value(for: "b") { _ -> Image in throw NoImage() } }
    #expect(try await assets.value(for: "b", decode: decode) == Image(bytes: 100))
    await #expect(throws: AssetError.self) { try await assets.value(for: "c", decode: decode) }
    #expect(assets.heldBytes == 500, "two files, two values of one and one of the other")
  }

  @Test("a requested asset loads even if its batch is released, and a released library frees its loader")
  func lettingGo() async throws {
    let world = try AssetWorld(["a": 10])
    weak var loader: AssetLoader?
    do {
      let assets = try AssetLibrary(at: world.url)
      loader = assets.loader
      assets.load(["a"])
      let end = ContinuousClock.now + Self.patience
      while assets["a"] == nil, ContinuousClock.now < end { await Task.yield() }
      #expect(assets["a"] == world.bytes["a"])
    }
    // The loader's threads end, and with them the last reference to it.
    let end = ContinuousClock.now + Self.patience
    while loader != nil, ContinuousClock.now < end { await Task.yield() }
    #expect(loader == nil)
  }

  @Test("`game.assets` is the library that the game attached, and throws if there is none")
  func attached() async throws {
    let world = try AssetWorld(["a": 10])
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    #expect(gameErrorCode { _ = try game.assets } == .misuse)
    game.attach(try AssetLibrary(at: world.url))
    try await game.assets.load(["a"]).waitUntilLoaded()
    #expect(try game.assets["a"] == nil || game.assets["a"] == world.bytes["a"])
    #expect(try await game.assets.data(for: "a") == world.bytes["a"])
  }

  @Test(
    "concurrent loads, waits, cancels and releases get right bytes or a typed error, within the budget",
    arguments: [11, 12, 13])
  func stress(seed: UInt64) async throws {
    let sizes = Dictionary(uniqueKeysWithValues: (0..<40).map { ("asset\($0)", $0 * 997 % 9_000) })
    let world = try AssetWorld(sizes)
    let assets = try AssetLibrary(at: world.url, budget: 30_000)
    let most = Peak()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for player in 0..<6 {
        group.addTask {
          try await onThread {
            var random = SeededGenerator(seed: seed &* 100 &+ UInt64(player))
            var batches: [AssetBatch] = []
            for _ in 0..<150 {
              let paths = (0..<Int.random(in: 1...6, using: &random)).map { _ in
                "asset\(Int.random(in: 0..<40, using: &random))"
              }
              switch Int.random(in: 0..<6, using: &random) {
              case 0: batches.append(assets.load(paths, priority: .low, pinned: Bool.random(using: &random)))
              case 1: batches.popLast()?.cancel()
              case 2: batches.first?.raise(to: .high)
              case 3: if batches.count > 3 { batches.removeFirst() }
              case 4:
                do {
                  try assets.load(paths, pinned: Bool.random(using: &random)).wait(within: Self.patience)
                } catch let error as AssetError where error.code == .overBudget {
                  // Other batches have pinned the whole budget.
                }
              default: #expect(try assets.data(for: paths[0]) == world.bytes[paths[0]], "seed \(seed)")
              }
              most.note(assets.heldBytes)
            }
            for batch in batches {
              do {
                try batch.wait(within: Self.patience)
              } catch let error as AssetError where error.code == .overBudget || error.code == .cancelled {
                // Other batches have pinned the whole budget, or this one was cancelled.
              }
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(most.value <= 30_000, "seed \(seed)")
    #expect(most.value > 15_000, "seed \(seed): the budget was used")
  }
}
