#if Cloud && os(Linux)
import Foundation
import Keepsake
import Synchronization
import TestSupport
import Testing

/// Faults in the middle of each kind of transfer, over real HTTP: the game gets a report, loses nothing, and needs to
/// do nothing.
@Suite("Faults in the middle of transfers", .hangLimit)
struct FaultMatrixTests {
  @Test(
    "a server killed or a connection cut during any transfer is reported, and sync resumes without loss",
    arguments: [FaultMatrix.Fault.serverKilled, .connectionCut])
  func broken(fault: FaultMatrix.Fault) async throws { try await FaultMatrix.run(fault) }

  @Test(
    "a full server disk during any transfer is reported and refuses nothing, and sync resumes when there is room",
    .needsPrivateMounts)
  func serverDisk() async throws { try await FaultMatrix.run(.serverDiskFull) }

  @Test(
    "a full device disk during any transfer is reported, and sync resumes without loss when there is room",
    .needsPrivateMounts)
  func deviceDisk() async throws {
    let output = try await DeviceDisk.runChild("FaultMatrixOnDeviceDisk")
    print(output.split(separator: "\n").filter { $0.hasPrefix("| ") }.joined(separator: "\n"))
    let hasPassed =
      output.contains("Test run with 1 test in 1 suite passed after") && output.contains(DeviceDisk.passed)
    #expect(hasPassed, "\(output)")
  }

  @Test("a quota used up during any transfer is reported with its numbers, and delays only the save that it refuses")
  func quota() async throws { try await FaultMatrix.run(.quotaUsedUp) }
}

/// The test that runs in a child process, where the device's disk is small.
@Suite(.serialized, .partOfAnotherTest(where: DeviceDisk.isChild))
struct FaultMatrixOnDeviceDisk {
  @Test func deviceDisk() async throws {
    try await FaultMatrix.run(.deviceDiskFull)
    print(DeviceDisk.passed)
  }
}

/// The matrix of transfers and of the faults that they meet.
enum FaultMatrix {
  enum Fault: String, Sendable {
    case serverKilled = "server killed"
    case connectionCut = "connection cut"
    case serverDiskFull = "server's disk full"
    case deviceDiskFull = "device's disk full"
    case quotaUsedUp = "quota used up"
  }

  /// What the game gets while the fault lasts.
  enum Told: Equatable {
    case waiting(String?)
    case storeFailed
    /// `storeFailed`, unless the little that was received fits into the space that the database's log already has: then
    /// it is stored.
    case storeFailedOrThere
    case notListening
    /// The transfer succeeds despite the fault, for this reason.
    case nothing(String)
    /// The status contains the cloud's refusal with its numbers; everything else continues.
    case refused
    /// The game's call throws an error that contains this text.
    case thrown(String?)
  }

  static func run(_ fault: Fault) async throws {
    try await TemporaryFolder.with { folder in
      let stage = try await FaultStage.set(fault, in: folder)
      do {
        for transfer in stage.transfers { try await stage.play(transfer) }
      } catch {
        await stage.printRows()
        try await stage.end()
        throw error
      }
      await stage.printRows()
      try await stage.end()
    }
  }
}
#endif
