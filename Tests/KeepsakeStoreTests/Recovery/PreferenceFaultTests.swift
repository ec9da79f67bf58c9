import Foundation
import GRDBSQLite
import Keepsake
import Synchronization
import Testing

@testable import KeepsakeStore

/// In the same suite as other faults of the disk, because the process has only one faulty layer.
extension DiskFaultTests {
  @Test(
    "preferences set on a full, read-only or failing disk stay in the game, and are written when the disk works again",
    arguments: [
      (FaultyDisk.Fault.write(SQLITE_FULL), StoreError.Code.diskFull), (.write(SQLITE_READONLY), .notPermitted),
      (.write(FaultyDisk.failedWrite), .io), (.sync(FaultyDisk.failedSync), .io),
    ])
  func preferences(fault: FaultyDisk.Fault, expected: StoreError.Code) throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let volume = PreferenceKey("volume", default: 0.8)
    let hat = PreferenceKey("hat", default: "none", synced: true)
    var game = try GameData.open("com.example.space", at: folder)
    game.preferences[volume] = 0.1
    try game.preferences.flush()
    FaultyDisk.fault.withLock { $0 = fault }
    for step in 2...4 {
      game.preferences[volume] = Double(step) / 10
      game.preferences[hat] = "hat \(step)"
      #expect(errorCode { try game.preferences.flush() } == expected)
      #expect(game.preferences[volume] == Double(step) / 10 && game.preferences[hat] == "hat \(step)")
    }
    FaultyDisk.fault.withLock { $0 = nil }
    #expect(game.incidents.contains { $0.kind == .failedCommit && $0.message.contains("preferences") })
    // Nothing has to be set again.
    try game.close()
    game = try GameData.open("com.example.space", at: folder)
    #expect(game.preferences[volume] == 0.4 && game.preferences[hat] == "hat 4" && game.incidents.isEmpty)
    try game.close()
  }

  @Test(
    "if the disk never works again, the game gets an incident and can be closed, and the unsaved preference is lost")
  func preferencesLost() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let volume = PreferenceKey("volume", default: 0.8)
    var game = try GameData.open("com.example.space", at: folder)
    game.preferences[volume] = 0.1
    try game.preferences.flush()
    FaultyDisk.fault.withLock { $0 = .write(SQLITE_FULL) }
    game.preferences[volume] = 0.2
    try game.close()
    FaultyDisk.fault.withLock { $0 = nil }
    // Once or twice: a commit may have been due before the game closed. Nor could the data be backed up.
    let kinds = Set(game.incidents.map(\.kind))
    #expect(kinds.contains(.failedCommit) && kinds.isSubset(of: [.failedCommit, .backupFailed]))
    game = try GameData.open("com.example.space", at: folder)
    #expect(game.preferences[volume] == 0.1)
    try game.close()
  }
}
