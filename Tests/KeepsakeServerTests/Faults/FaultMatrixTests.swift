#if Cloud && os(Linux)
import Foundation
import Keepsake
import Synchronization
import TestSupport
import Testing

/// What can go wrong in the middle of each kind of transfer, over real HTTP: the game is told, loses nothing, and needs
/// to do nothing.
@Suite("Faults in the middle of transfers", .hangLimit)
struct FaultMatrixTests {
  @Test(
    """
    the server is killed, or the connection cut, in the middle of any transfer: told, nothing lost, and it goes on by \
    itself
    """,
    arguments: [FaultMatrix.Fault.serverKilled, .connectionCut])
  func broken(fault: FaultMatrix.Fault) async throws { try await FaultMatrix.run(fault) }

  @Test(
    """
    the server's disk gets full in the middle of any transfer: told, nothing refused or lost, and it goes on when \
    there is room
    """,
    .needsPrivateMounts)
  func serverDisk() async throws { try await FaultMatrix.run(.serverDiskFull) }

  @Test(
    "a device's disk gets full in the middle of any transfer: told, nothing lost, and it goes on when there is room",
    .needsPrivateMounts)
  func deviceDisk() async throws {
    let output = try await DeviceDisk.runChild("FaultMatrixOnDeviceDisk")
    print(output.split(separator: "\n").filter { $0.hasPrefix("| ") }.joined(separator: "\n"))
    let hasPassed =
      output.contains("Test run with 1 test in 1 suite passed after") && output.contains(DeviceDisk.passed)
    #expect(hasPassed, "\(output)")
  }

  @Test(
    """
    the player's quota is used up in the middle of any transfer: told with its numbers, nothing lost, the rest goes \
    on, and it goes when there is room
    """)
  func quota() async throws { try await FaultMatrix.run(.quotaUsedUp) }
}

/// What runs where the device's disk is small.
@Suite(.serialized, .partOfAnotherTest(where: DeviceDisk.isChild))
struct FaultMatrixOnDeviceDisk {
  @Test func deviceDisk() async throws {
    try await FaultMatrix.run(.deviceDiskFull)
    print(DeviceDisk.passed)
  }
}

/// Transfers on one side, what befalls them on the other.
enum FaultMatrix {
  enum Fault: String, Sendable {
    case serverKilled = "server killed"
    case connectionCut = "connection cut"
    case serverDiskFull = "server's disk full"
    case deviceDiskFull = "device's disk full"
    case quotaUsedUp = "quota used up"
  }

  /// What the game is told while the fault lasts.
  enum Told: Equatable {
    case waiting(String?)
    case storeFailed
    /// `storeFailed`, unless the little that comes finds room in what the database's log holds already: then it is
    /// there.
    case storeFailedOrThere
    case notListening
    /// The transfer goes through all the same, because of this.
    case nothing(String)
    /// The cloud's refusal stands in the status, with its numbers; everything else goes on.
    case refused
    /// The call of the game throws this.
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
