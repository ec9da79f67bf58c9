#if Cloud
import ArgumentParser
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeCommand

@Archivable private struct Lamp { var isOn = true }

extension Slot<Lamp> {
  fileprivate static let lamp = Slot("lamp")
}

/// Support inspects a player's sealed store.
@Suite struct SealedStoreTests {
  private static let secret = Data(repeating: 42, count: 32)

  private func inStore(_ seal: Seal, _ body: (_ store: String, _ secretFile: String) throws -> Void) throws {
    let folder = TemporaryFolder.url("seal")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = folder.appendingPathComponent("store")
    let game = try GameData.open("com.example.lamp", at: store, seal: seal)
    try game.saves.capture(Lamp(), to: .lamp).wait()
    try game.close()
    let file = folder.appendingPathComponent("secret")
    try Self.secret.write(to: file)
    try body(store.path, file.path)
  }

  private func options(_ arguments: [String]) throws -> SealRequest? { try SealOptions.parse(arguments).request() }

  @Test("a sealed store is inspected and verified with the secret; without it, the failure suggests --secret-file")
  func sealed() throws {
    try inStore(.sealed(Self.secret, player: "ada")) { store, file in
      let failure = #expect(throws: StoreError.self) { try InspectCommand.look(at: store) }
      let told = CommandFailure(try #require(failure))
      #expect(told.kind == .permission && told.next?.contains("--secret-file") == true)
      let blind = Verification.run(on: [store], progress: { _ in }, each: { _ in })
      #expect(blind.unsound == 1 && blind.files.first?.next?.contains("--secret-file") == true)

      let seal = try options(["--secret-file", file, "--player", "ada"])
      guard case .store(let report) = try InspectCommand.look(at: store, seal: seal) else {
        Issue.record("no store")
        return
      }
      #expect(report.seal == StoreReport.Protection(kind: "sealed", checked: true, quarantined: 0))
      #expect(report.text.contains("seal: sealed, verified"))
      #expect(Verification.run(on: [store], seal: seal, progress: { _ in }, each: { _ in }).unsound == 0)
      #expect(throws: StoreError.self) { try InspectCommand.look(at: store, seal: options(["--secret-file", file])) }
    }
  }

  @Test("a signed store is inspected without the secret, and reported as not checked")
  func signed() throws {
    try inStore(.signed(Self.secret)) { store, file in
      guard case .store(let report) = try InspectCommand.look(at: store) else {
        Issue.record("no store")
        return
      }
      #expect(report.seal?.checked == false)
      #expect(report.text.contains("signatures not checked"))
      let verdict = Verification.run(on: [store], progress: { _ in }, each: { _ in }).files.first
      #expect(verdict?.state == .sound && verdict?.message.contains("signatures not checked") == true)
      let checked = Verification.run(
        on: [store], seal: try options(["--secret-file", file]), progress: { _ in }, each: { _ in })
      #expect(checked.files.first?.message.contains("not checked") == false)
      #expect(throws: CommandFailure.self) { try options(["--secret-file", file + " elsewhere"]) }
    }
  }
}
#endif
