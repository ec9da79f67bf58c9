import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@testable import KeepsakeSync

/// What is particular about a folder in iCloud, over a stand-in for it.
@Suite("A folder in iCloud", .hangLimit) struct ICloudFolderTests {
  private static let (smaller, larger) = (ContainerID(high: 0, low: 1), ContainerID(high: 0, low: 2))

  @Test("devices that begin before they see each other agree on one container, whichever version wins")
  func bothBegin() async throws {
    try await onThread {
      var winners: Set<ContainerID> = []
      for seed in UInt64(1)...20 {
        let iCloud = try ICloudStandIn(seed: seed, making: nil)
        #expect(try FolderTransport.container(of: iCloud.shared(0), making: Self.larger) == Self.larger)
        #expect(try FolderTransport.container(of: iCloud.shared(1), making: Self.smaller) == Self.smaller)
        try iCloud.bringAll()
        let layout = FolderLayout(iCloud.places[0])
        let bytes = try Data(contentsOf: URL(fileURLWithPath: layout.identity))
        winners.insert(try JSONDecoder().decode(FolderIdentity.self, from: bytes).container)
        #expect(try FolderTransport.container(of: iCloud.shared(0), making: nil) == Self.smaller)
        #expect(try FolderTransport.container(of: iCloud.shared(1), making: nil) == Self.smaller)
        // One device ends the conflict for all, and for those that come later.
        try FolderIdentity.settle(in: layout, by: iCloud.access(0))
        #expect(try iCloud.access(1).losers(of: FolderLayout(iCloud.places[1]).identity, limit: 1 << 20).isEmpty)
        try iCloud.bringAll()
        #expect(throws: TransportFailure.self) { try FolderTransport.container(of: iCloud.shared(2), making: nil) }
        try iCloud.bringAll()
        #expect(try FolderTransport.container(of: iCloud.shared(2), making: nil) == Self.smaller)
        #expect(iCloud.problems == [])
      }
      #expect(winners.count == 2)
    }
  }

  @Test("a folder whose identity is on its way isn't made anew, and is unreachable until it is there")
  func arrivingIdentity() async throws {
    try await onThread {
      let iCloud = try ICloudStandIn(seed: 1)
      for _ in 0..<2 { try iCloud.bringAll() }
      for index in 1...2 {
        #expect {
          try FolderTransport.container(of: iCloud.shared(index), making: Self.larger)
        } throws: {
          ($0 as? TransportFailure)?.kind == .unreachable && "\($0)".contains("not yet on this device")
        }
      }
      try iCloud.bringAll()
      for index in 1...2 {
        #expect(try FolderTransport.container(of: iCloud.shared(index), making: Self.larger) == FolderDevice.container)
      }
    }
  }

  @Test("what iCloud has removed from a device is still known there: it goes on sending without a network")
  func evictedChain() async throws {
    try await onThread {
      let iCloud = try ICloudStandIn(seed: 1)
      let device = try FolderDevice(iCloud.places[0], seed: 1, by: iCloud.access(0))
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

  @Test("without iCloud the folder is unreachable, and the message says what may be wrong")
  func off() throws {
    #expect {
      try FolderPlace.inICloud("Keepsake", container: nil, by: nil)
    } throws: {
      ($0 as? TransportFailure)?.kind == .unreachable && "\($0)".contains("signed in")
    }
  }
}
