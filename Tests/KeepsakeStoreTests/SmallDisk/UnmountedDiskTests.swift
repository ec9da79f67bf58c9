#if os(Linux)
import Foundation
import TestSupport
import Testing

@testable import KeepsakeStore

/// The disk that the game's data is on is unmounted while the game runs.
@Suite struct UnmountedDiskTests {
  @Test("nothing is acknowledged once the disk is unmounted, and what was is on the disk", .needsPrivateMounts)
  func unmounted() async throws {
    let failure = try await onThread { try SmallDisk.run("ChildOfUnmountedDisk") }
    #expect(failure == nil)
  }
}

/// The test that runs on the small disk.
@Suite(.serialized, .partOfAnotherTest(where: SmallDisk.mounted != nil))
struct ChildOfUnmountedDisk {
  @Test func unmounts() throws {
    let disk = try #require(SmallDisk.mounted)
    // A second name for the disk, under which it can still be looked at.
    let view = try TemporaryFolder()
    try Self.execute("mount", "--bind", disk.path, view.url.path)
    let folder = disk.appendingPathComponent("store")
    let store = try Store.open(at: folder)
    let (acknowledged, isGone) = (Shared(UInt64(0)), Shared(false))
    let saving = WatchedThread {
      var number: UInt64 = 0
      while true {
        number += 1
        let wasGone = isGone.value
        do {
          try store.save(Data("save \(number)".utf8), as: number)
        } catch let error as StoreError where error.code == .removed {
          return
        }
        #expect(!wasGone, "acknowledged after the disk was gone")
        acknowledged.value = number
      }
    }
    while acknowledged.value < 20 { Thread.sleep(forTimeInterval: 0.001) }
    try Self.execute("umount", "--lazy", disk.path)
    isGone.value = true
    try saving.value()
    let rescued = try TemporaryFolder()
    try StoreRescue.rescue(store, nil, to: rescued.store)
    #expect(store.incidents.map(\.kind) == [.removed])
    do {
      try store.close()
      Issue.record("closing was silent")
    } catch let error as StoreError {
      #expect(error.code == .removed)
    }
    for url in [rescued.store, view.url.appendingPathComponent("store")] {
      let found = try Store.open(at: url)
      defer { try? found.close() }
      #expect(try found.read { try $0.version(id(acknowledged.value)) } != nil, "\(url.path)")
      #expect(try found.read { try $0.version(id(acknowledged.value + 2)) } == nil, "\(url.path)")
    }
    try Self.execute("umount", "--lazy", view.url.path)
  }

  private static func execute(_ command: String...) throws {
    let ended = try ChildProcess.run(URL(fileURLWithPath: "/usr/bin/env"), command)
    try #require(ended.status == 0, "\(ended.errors)")
  }
}
#endif
