#if Cloud
import Foundation
import Keepsake
import Testing

/// Where the stores go; nil in other runs of the tests.
private let largeStores = ProcessInfo.processInfo.environment["KEEPSAKE_LARGE_STORES"]

/// Writes large stores for `Scripts/doctor-damage.py`, if `KEEPSAKE_LARGE_STORES` names a folder for them.
@Suite(.enabled(if: largeStores != nil)) struct LargeStoreTests {
  private static let secret = Data(repeating: 42, count: 32)
  /// As the save of a game is: larger than a page, and smaller than what goes into segments.
  private static let saveBytes = 256 << 10

  @Test(
    "stores of 25 MiB and of 1 GiB are written, without a seal and signed", .timeLimit(.minutes(30)),
    arguments: [("25", 100), ("1024", 4_096)], [false, true])
  func write(size: (name: String, saves: Int), isSigned: Bool) throws {
    let root = URL(fileURLWithPath: try #require(largeStores), isDirectory: true)
    let store = root.appending(path: (isSigned ? "signed-" : "plain-") + size.name)
    guard !FileManager.default.fileExists(atPath: store.path) else { return }
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
    try Self.secret.write(to: root.appending(path: "secret"))
    let game = try GameData.open("com.example.large", at: store, seal: isSigned ? .signed(Self.secret) : .none)
    // Bytes that don't compress, so that the size of the store is that of its saves.
    let random = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/dev/urandom"))
    for number in 0..<size.saves {
      let bytes = try #require(try random.read(upToCount: Self.saveBytes))
      try game.saves.capture(bytes, to: Slot<Data>("save-\(number)")).wait()
    }
    try game.close()
  }
}
#endif
