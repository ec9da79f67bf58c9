#if Cloud
import Foundation
import Keepsake
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake doctor` reports what is lost in a damaged store before anything is changed, and then repairs it.
@Suite(.serialized) struct DoctorTests {
  private let folder = TemporaryFolder.url("doctor")
  private var database: URL { folder.appendingPathComponent(Store.databaseName) }

  private func status(_ arguments: String...) async -> Int32 {
    await KeepsakeCommandTests.status(of: DoctorCommand.self, arguments)
  }

  private func makeStore() throws {
    let game = try GameData.open("com.example.space", at: folder)
    for level in 1...5 { try game.progress.record(level, for: ProgressKey("level", default: 0, rule: .max)).wait() }
    try game.close()
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.hasPrefix("backup") {
      try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
    }
  }

  @Test("a damaged store is reported and unchanged, then repaired with the damaged files kept, and then sound")
  func repairs() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    try makeStore()
    #expect(await status(folder.path) == 0)
    var bytes = try Data(contentsOf: database)
    bytes[2] ^= 0xFF
    try bytes.write(to: database)
    #expect(await status(folder.path, "--json") == VerifyCommand.unsound)
    let isUntouched = try Data(contentsOf: database) == bytes
    #expect(isUntouched)
    #expect(!FileManager.default.fileExists(atPath: folder.appendingPathComponent("damaged").path))
    #expect(await status(folder.path, "--repair") == 0)
    #expect(FileManager.default.fileExists(atPath: folder.appendingPathComponent("damaged").path))
    #expect(await status(folder.path) == 0)
    let game = try GameData.open("com.example.space", at: folder)
    #expect(game.progress[ProgressKey("level", default: 0, rule: .max)] == 5)
    try game.close()
  }

  @Test("the output says what is wrong and what a repair would recover")
  func explains() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    try makeStore()
    var bytes = try Data(contentsOf: database)
    bytes[2] ^= 0xFF
    try bytes.write(to: database)
    let doctor = try StoreDoctor(at: folder)
    defer { doctor.release() }
    let diagnosis = try doctor.examine()
    #expect(diagnosis.plan == .recover && diagnosis.recovery?.values == 1)
    let lines = DoctorCommand.Answer(store: folder.path, diagnosis).lines
    #expect(lines.first?.hasPrefix("damaged: ") == true && lines.last?.contains("--repair") == true)
    #expect(lines.contains { $0.contains("1 value") })
  }

  @Test("a store that a game has open is refused, and a missing store is an error")
  func refuses() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let game = try GameData.open("com.example.space", at: folder)
    #expect(await status(folder.path) == CommandFailure.Kind.temporary.rawValue)
    #expect(await status(folder.path, "--repair") == CommandFailure.Kind.temporary.rawValue)
    try game.close()
    #expect(await status(folder.appendingPathComponent("nowhere").path) == CommandFailure.Kind.noInput.rawValue)
  }
}
#endif
