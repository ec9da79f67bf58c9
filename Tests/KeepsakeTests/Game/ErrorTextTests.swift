import Foundation
import Testing

@testable import Keepsake
@testable import KeepsakeTesting

/// Games show errors by `localizedDescription`, whatever the error's type.
struct ErrorTextTests {
  private static let located = ArchiveError(
    .mismatch, "the value doesn't fit", type: "Hero", field: "coins", offset: 16)

  static let errors: [(error: any Error, text: String)] = [
    (GameDataError(.misuse, "the name is empty"), "the name is empty"),
    (StoreError(.io, "the disk failed", cause: CancellationError()), "the disk failed"),
    (ArchiveError(.missing, "There is nothing to read"), "There is nothing to read"),
    (located, "the value doesn't fit (in Hero.coins at byte 16)"),
    (AssetError(.stale, "the file has changed", path: "a.png"), "the file has changed"),
    (AssetReport(findings: [], assets: 2, hashed: 2), "2 assets: all sound"),
    (ReferenceError(.missing, "there is no such file"), "there is no such file"),
    (StructuredFileError(.mismatch, path: "quests[3]", "expected a number"), "quests[3]: expected a number"),
    (PropertyListError(.damaged, "the file is cut off", offset: 8), "the file is cut off (at byte 8)"),
    (
      UnsettledError(debts: [
        .init(device: "phone", unsentCommits: 1, refusals: [], hasUnreportedMoney: false, isBehind: false, failure: nil)
      ]),
      "The world doesn't settle: phone has 1 unsent commit."
    ),
  ]

  @Test(
    "The text that an error shows is its message, with its location and without its code", arguments: errors.indices)
  func text(index: Int) {
    let (error, text) = Self.errors[index]
    #expect(error.localizedDescription == text)
  }
}
