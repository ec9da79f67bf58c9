import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@testable import KeepsakeSync

/// What is particular about a folder in iCloud, over a stand-in for it.
@Suite("A folder in iCloud", .hangLimit) struct ICloudFolderTests {
  private static let other = ContainerID(high: 7, low: 7)

  private static func failure(of phase: EngineStatus.Phase) -> TransportFailure? {
    switch phase {
    case .waiting(let failure), .halted(let failure): failure
    case .stopped, .idle, .busy: nil
    }
  }

  private static func kind(_ error: any Error) -> TransportFailure.Kind? { (error as? TransportFailure)?.kind }

  @Test("devices that begin before they see each other are one player's, and each gets what the other had")
  func bothBegin() async throws {
    try await onThread {
      for seed in UInt64(1)...4 {
        let iCloud = try ICloudStandIn(seed: seed, begins: 2)
        #expect(iCloud.container(0) != iCloud.container(1))
        let devices = try (0..<2).map {
          try FolderDevice(iCloud.place($0), of: iCloud.container($0), seed: seed &* 10 &+ UInt64($0))
        }
        for (index, device) in devices.enumerated() {
          try device.raise("level \(index)", to: 5)
          #expect(try device.sync() == .idle)
        }
        for _ in 0..<6 {
          try iCloud.bringAll()
          for device in devices { try device.sync() }
        }
        for device in devices { #expect(device.value("level 0") == 5 && device.value("level 1") == 5) }
        // One that comes later belongs to the same container as one of them.
        for _ in 0..<2 {
          _ = try? iCloud.place(2).container(making: nil)
          try iCloud.bringAll()
        }
        let third = try iCloud.place(2).container(making: Self.other)
        #expect(third == min(iCloud.container(0), iCloud.container(1)))
        #expect(devices.allSatisfy { device in device.answers.allSatisfy { !$0.restart } })
        #expect(iCloud.problems == [])
      }
    }
  }

  @Test("names say whose a folder is, before any bytes arrive; a folder whose names aren't here isn't anybody's yet")
  func namesAreEnough() async throws {
    try await onThread {
      let iCloud = try ICloudStandIn(seed: 1, begins: 1)
      try iCloud.bringAll()
      // The second device has been shown a name, the third the folder alone.
      #expect(try iCloud.place(1).container(making: Self.other) == iCloud.container(0))
      #expect {
        try iCloud.place(2).container(making: Self.other)
      } throws: {
        Self.kind($0) == .unreachable && "\($0)".contains("not yet on this device")
      }
      #expect(iCloud.wanted(1).isEmpty && iCloud.wanted(2) == ["containers"])
      try iCloud.bringAll()
      #expect(try iCloud.place(2).container(making: Self.other) == iCloud.container(0))
      #expect(iCloud.wanted(2).isEmpty)
    }
  }

  @Test("another account's folder is refused, an empty one is waited for, and neither gets anything")
  func otherAccount() async throws {
    try await onThread {
      let ours = try ICloudStandIn(seed: 1, begins: 1)
      let device = try FolderDevice(ours.place(0), of: ours.container(0), seed: 1)
      try device.save("one")
      #expect(try device.sync() == .idle)
      try device.save("two")
      // The player signs in to an account in which another device has begun, or none.
      for begins in [1, 0] {
        let iCloud = try ICloudStandIn(seed: 2, begins: begins)
        let before = try FileManager.default.subpathsOfDirectory(atPath: iCloud.places[0].path)
        let moved = try FolderDevice(iCloud.place(0), of: Self.other, seed: 2, storage: device.storage)
        let failure = Self.failure(of: try moved.sync())
        #expect(failure?.kind == (begins == 1 ? .unauthorized : .unreachable))
        #expect(failure.map { "\($0)" }?.contains("account") == true)
        let hash = ContentHash(of: Data("two".utf8))
        let content = try moved.storage.encoded(hash, against: nil)
        #expect(throws: TransportFailure.self) { try moved.cloud.putContent(content) }
        #expect(throws: TransportFailure.self) { try moved.cloud.content(hash) }
        #expect(throws: TransportFailure.self) { try moved.cloud.poll() }
        #expect(try FileManager.default.subpathsOfDirectory(atPath: iCloud.places[0].path) == before)
        #expect(moved.storage.outboxCount() > 0)
      }
    }
  }

  @Test("what iCloud has removed from a device is still known there: it goes on sending without a network")
  func evictedChain() async throws {
    try await onThread {
      let iCloud = try ICloudStandIn(seed: 1, begins: 1)
      let device = try FolderDevice(iCloud.place(0), of: iCloud.container(0), seed: 1)
      for text in ["one", "two"] {
        try device.save(text)
        try device.sync()
      }
      try iCloud.bringAll()
      try iCloud.evictAll(0)
      try device.save("three")
      #expect(try device.sync() == .idle)
      #expect(device.storage.outboxCount() == 0 && device.answers.allSatisfy { !$0.restart })
      #expect(iCloud.problems == [])
    }
  }

  @Test("a content that was stored here and removed from the device isn't stored again, nor fetched to tidy up")
  func evictedContents() async throws {
    try await onThread {
      let iCloud = try ICloudStandIn(seed: 1, begins: 1)
      let device = try FolderDevice(iCloud.place(0), of: iCloud.container(0), seed: 1)
      try device.save("one")
      #expect(try device.sync() == .idle)
      try iCloud.bringAll()
      try iCloud.evictAll(0)
      try device.save("one", slot: "another")
      #expect(try device.sync() == .idle)
      try device.tidy()
      let path = String(device.contentFile("one").path.dropFirst(iCloud.places[0].path.count + 1))
      #expect(iCloud.writes[path] == 1)
      #expect(iCloud.wanted(0).isEmpty)
      #expect(iCloud.problems == [])
    }
  }

  @Test("a content that was stored here counts as gone while its name isn't here, and is stored again if it is gone")
  func unlistedContents() async throws {
    try await onThread {
      let iCloud = try ICloudStandIn(seed: 1, begins: 1)
      let device = try FolderDevice(iCloud.place(0), of: iCloud.container(0), seed: 1)
      try device.save("one")
      #expect(try device.sync() == .idle)
      for _ in 0..<2 { try iCloud.bringAll() }
      #expect(try iCloud.hide("contents", 0) == .emptied)
      // Another device removes it.
      let path = String(device.contentFile("one").path.dropFirst(iCloud.places[0].path.count + 1))
      try iCloud.place(1).access.remove(iCloud.places[1].path + "/" + path)
      try device.save("one", slot: "another")
      #expect(Self.failure(of: try device.sync())?.kind == .unreachable)
      for _ in 0..<3 {
        try iCloud.bringAll()
        try device.sync()
      }
      #expect(device.engine.status.phase == .idle && iCloud.writes[path] == 2)
      #expect(iCloud.problems == [])
    }
  }

  @Test("what nothing needs is removed, but not while a segment arrives that may need it", arguments: [false, true])
  func collects(isArriving: Bool) async throws {
    try await onThread {
      let iCloud = try ICloudStandIn(seed: 1, begins: 1)
      var options = FolderOptions()
      options.segmentsBeforeSnapshot = 2
      let (here, there) = try (
        FolderDevice(iCloud.place(0), of: iCloud.container(0), seed: 1, options: options),
        FolderDevice(iCloud.place(1), of: iCloud.container(0), seed: 2, options: options)
      )
      for text in ["one", "two", "three", "four"] {
        try here.save(text)
        #expect(try here.sync() == .idle)
      }
      let old = Data("old".utf8)
      try here.cloud.putContent(
        EncodedContent(hash: ContentHash(of: old), length: old.count, base: nil, bytes: old))
      func settle() throws {
        for _ in 0..<8 {
          try iCloud.bringAll()
          try there.sync()
          try here.sync()
        }
      }
      try settle()
      // It has seen the snapshot, and says so.
      try there.save("other", slot: "other")
      #expect(try there.sync() == .idle)
      try settle()
      if isArriving {
        let before = Set(try there.stateFiles)
        try there.save("another", slot: "other")
        #expect(try there.sync() == .idle)
        iCloud.lost = Set(try there.stateFiles.filter { !before.contains($0) }.map { "state/\($0)" })
        #expect(iCloud.lost.count == 1)
        try settle()
      }
      let segments = try here.stateFiles.count
      try here.tidy(now: Int64(Date.now.timeIntervalSince1970 * 1_000) + 40 * 86_400_000)
      #expect(try here.stateFiles.count < segments)
      #expect(FileManager.default.fileExists(atPath: here.contentFile("old").path) == isArriving)
      #expect(FileManager.default.fileExists(atPath: here.contentFile("four").path))
      #expect(iCloud.problems == [])
    }
  }

  @Test("a device that has to start over waits for what is on its way, but not for ever, and not for other files")
  func waitingEnds() async throws {
    try await onThread {
      for name in ["", "somebody's notes"] {
        let iCloud = try ICloudStandIn(seed: 1, begins: 1)
        let device = try FolderDevice(iCloud.place(0), of: iCloud.container(0), seed: 1)
        try device.save("one")
        #expect(try device.sync() == .idle)
        let segment = try device.stateFiles[0]
        if !name.isEmpty { try Data("text".utf8).write(to: device.state(name)) }
        try iCloud.bringAll()
        // The same store on another device, on which the first one's segment is shown and never comes; or is gone, and
        // something else never comes.
        if !name.isEmpty {
          try FileManager.default.removeItem(at: device.state(segment))
          try iCloud.bringAll()
        }
        iCloud.lost = ["state/\(name.isEmpty ? segment : name)"]
        let copy = try FolderDevice(iCloud.place(1), of: iCloud.container(0), seed: 2, storage: device.storage)
        for _ in 0..<6 {
          try iCloud.bringAll()
          try copy.sync()
        }
        guard name.isEmpty else {
          #expect(copy.engine.status.phase == .idle && copy.answers.first?.restart == true)
          continue
        }
        #expect(Self.failure(of: copy.engine.status.phase)?.kind == .unreachable && copy.answers.isEmpty)
        copy.now += FolderOptions().arrivalMilliseconds
        #expect(try copy.sync() == .idle)
        #expect(copy.answers.first?.restart == true)
        #expect(copy.texts() == ["one"] && iCloud.problems == [])
      }
    }
  }

  @Test("a device that waited once waits again the next time that it has to")
  func waitsAgain() async throws {
    try await onThread {
      let iCloud = try ICloudStandIn(seed: 1, begins: 1)
      let device = try FolderDevice(iCloud.place(0), of: iCloud.container(0), seed: 1)
      try device.save("one")
      #expect(try device.sync() == .idle)
      iCloud.lost = ["state/\(try device.stateFiles[0])"]
      let copy = try FolderDevice(iCloud.place(1), of: iCloud.container(0), seed: 2, storage: device.storage)
      func settle() throws {
        for _ in 0..<6 {
          try iCloud.bringAll()
          try copy.sync()
        }
      }
      try settle()
      #expect(copy.answers.isEmpty)
      iCloud.lost = []
      try copy.save("two", slot: "other")
      try settle()
      #expect(copy.engine.status.phase == .idle && copy.storage.outboxCount() == 0)
      let own = "\(try #require(copy.cloud.ownChain().first))"
      // An hour later its own segment is gone, and another one is on its way.
      let before = Set(try device.stateFiles)
      try device.save("three")
      #expect(try device.sync() == .idle)
      iCloud.lost = Set(try device.stateFiles.filter { !before.contains($0) }.map { "state/\($0)" })
      #expect(iCloud.lost.count == 1)
      try settle()
      try iCloud.place(1).access.remove(iCloud.places[1].path + "/state/" + own)
      copy.now += 6 * FolderOptions().arrivalMilliseconds
      let phase = try copy.sync()
      #expect(Self.failure(of: phase)?.kind == .unreachable && !copy.answers.contains { $0.restart })
    }
  }

  @Test("what a snapshot replaces stays, however old it is, until another device has the snapshot")
  func oldSnapshot() async throws {
    try await onThread {
      let iCloud = try ICloudStandIn(seed: 1, begins: 1)
      var options = FolderOptions()
      options.segmentsBeforeSnapshot = 2
      let device = try FolderDevice(iCloud.place(0), of: iCloud.container(0), seed: 1, options: options)
      for text in ["one", "two", "three", "four"] {
        try device.save(text)
        #expect(try device.sync() == .idle)
      }
      let before = try device.stateFiles
      #expect(before.count > 4)
      try device.tidy(now: Int64(Date.now.timeIntervalSince1970 * 1_000) + 40 * 86_400_000)
      #expect(try device.stateFiles == before)
    }
  }

  @Test("a folder of a newer release is left alone, also while the game runs")
  func newerFormat() async throws {
    try await onThread {
      let iCloud = try ICloudStandIn(seed: 1, begins: 1)
      let device = try FolderDevice(iCloud.place(0), of: iCloud.container(0), seed: 1)
      try device.save("one")
      #expect(try device.sync() == .idle)
      for (name, isNewer) in [("format-1", false), ("format-2", true)] {
        try Data("x".utf8).write(to: iCloud.places[0].appendingPathComponent("containers/\(name)"))
        try device.save(name)
        let failure = Self.failure(of: try device.sync())
        #expect((failure?.kind == .unauthorized) == isNewer, "\(name)")
      }
      #expect { try iCloud.place(0).container(making: Self.other) } throws: { Self.kind($0) == .unauthorized }
    }
  }

  @Test("a device keeps its container if it is one of the folder's; others belong to the smallest")
  func keepsContainer() async throws {
    try await onThread {
      let iCloud = try ICloudStandIn(seed: 1, begins: 2)
      for _ in 0..<6 { try iCloud.bringAll() }
      let (larger, smaller) = (iCloud.container(0), iCloud.container(1))
      #expect(smaller < larger)
      for index in 0..<2 {
        let place = iCloud.place(index)
        #expect(try place.container(keeping: larger, making: nil) == larger)
        #expect(try place.container(keeping: smaller, making: nil) == smaller)
        #expect(try place.container(keeping: Self.other, making: nil) == smaller)
        #expect(try place.container(making: nil) == smaller)
      }
    }
  }

  @Test(
    "a folder's name leads to no other place, and is nothing that iCloud leaves out",
    arguments: ["", ".", "..", "a/b", "../b", "saves.nosync", ".hidden", " a", "a ", "ä", "a\0b", "a\\b"]
      + [String(repeating: "a", count: 101)])
  func names(_ name: String) throws {
    let iCloud = try ICloudStandIn(seed: 1, begins: 0)
    #expect {
      try FolderPlace.inICloud(name, container: nil, by: iCloud.ubiquity(0))
    } throws: {
      Self.kind($0) == .unauthorized && "\($0)".contains("be a folder")
    }
    #expect(try FolderPlace.inICloud("Our Saves-2_b", container: nil, by: iCloud.ubiquity(0)).owner == .account)
  }

  @Test("without iCloud the folder is unreachable, and the message says what may be wrong")
  func off() throws {
    #expect {
      try FolderPlace.inICloud("Keepsake", container: nil, by: nil)
    } throws: {
      Self.kind($0) == .unreachable && "\($0)".contains("signed in")
    }
  }
}
