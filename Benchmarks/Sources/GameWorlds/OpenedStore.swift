import BenchmarkKit
import Foundation
import Keepsake

/// The data of a player with many saves, opened again and again as a game does when it starts.
public final class OpenedStore {
  /// How much a player has.
  public struct Size: Sendable {
    public var title: String
    public var slots: Int
    /// Of each slot: the 20 newest stay whole, and of the others their records.
    public var versions: Int
    /// Of each save, which don't compress.
    public var bytes: Int

    public static let all = [
      Size(title: "100 slots, 2,000 versions, 20 MB", slots: 100, versions: 20, bytes: 10_000),
      Size(title: "10 slots, 1,000 versions", slots: 10, versions: 100, bytes: 500),
      Size(title: "10 slots, 20,000 versions", slots: 10, versions: 2_000, bytes: 500),
    ]
  }

  /// How what is kept is sealed.
  public enum Sealing: String, CaseIterable, Sendable {
    case none, signed, sealed

    public var title: String { self == .none ? "no seal" : rawValue }

    fileprivate var seal: Seal {
      let secret = (0..<32).map { UInt8($0) }
      return switch self {
      case .none: .none
      case .signed: .signed(secret)
      case .sealed: .sealed(secret)
      }
    }
  }

  private let folder: URL
  private let size: Size
  private let seal: Seal
  private var game: GameData?

  /// Makes the data. Takes about half a millisecond for each version.
  public init(_ size: Size, _ sealing: Sealing) throws {
    (self.size, seal) = (size, sealing.seal)
    folder = FileManager.default.temporaryDirectory.appending(
      path: "keepsake-opened-\(sealing.rawValue)-\(size.versions)-\(ProcessInfo.processInfo.processIdentifier)")
    var random = SeededRandom(seed: 11)
    try open()
    for version in 0..<size.versions {
      for slot in 0..<size.slots {
        try game?.saves.capture(Tiles(width: version + 1, tiles: Self.noise(size.bytes, &random)), to: Self.slot(slot))
      }
    }
    try close()
  }

  public func open() throws { game = try GameData.open("benchmark", at: folder, seal: seal) }

  public func close() throws {
    try game?.close()
    game = nil
  }

  /// Checks that all of it was there, removes the folder.
  public func finish() throws {
    try open()
    let saved = try game?.saves.load(Self.slot(size.slots - 1))
    try BenchmarkError.require(saved?.width == size.versions, "The newest save was lost")
    try BenchmarkError.require(game?.incidents.isEmpty == true, "Something was amiss with the data")
    try close()
    try FileManager.default.removeItem(at: folder)
  }

  private static func slot(_ number: Int) -> Slot<Tiles<UInt8>> { Slot("slot \(number)") }

  private static func noise(_ bytes: Int, _ random: inout SeededRandom) -> [UInt8] {
    (0..<bytes).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }
}
