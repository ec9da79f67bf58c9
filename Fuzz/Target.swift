import Foundation
import KeepsakeArchive

/// What is done with each input. A finding ends the process: by a trap in the reader, or by `found`.
enum Target: String, CaseIterable {
  /// Typed decoding by the program that wrote, encoding again, decoding that.
  case reader
  /// The same by a program whose types have changed.
  case changed
  /// The generic tree, its text and JSON, and whether it contradicts typed decoding.
  case tree

  /// Bytes that may live at once while an input is decoded: a share for each byte of it, and what any decoding takes.
  static let bytesForByte = 4096
  static let bytesForAny = 1 << 18
  /// However long the input is: what `ArchiveLimits.memoryBytes` counts, and as much again for each of what a target
  /// does after another, the copies from which collections grow, and the two values that are compared.
  static let mostBytes = 8 * Root.limits.memoryBytes

  func run(_ data: Data) {
    switch self {
    case .reader: again(data, Root.of(data, in: Root.own))
    case .changed: again(data, Root.of(data, in: Root.changed))
    case .tree: TreeCheck(data).run()
    }
    Registry.unlinkAll()
  }

  /// What was decoded must encode, and its bytes decode to the same bytes.
  private func again(_ data: Data, _ root: Root) {
    _ = Self.expected([.limit], { try root.isNewer(data) })
    guard let encode = Self.expected([], { try root.again(data) }) else { return }
    // An unowned object may be owned by nobody, and default values may need more room than there is.
    guard let first = Self.expected([.unbuildable, .limit], encode) else { return }
    guard let next = Self.expected([.limit], { try root.again(first) }) else { return }
    guard let second = Self.expected([], next, isSure: true) else { return }
    if first == second { return }
    // A cycle to which nothing leads but weak references lives on after decoding. Encoding leaves it out, so that after
    // that it is gone.
    guard let tree = Self.expected([.limit], { try ArchiveInspection(of: first, limits: Root.limits) }) else { return }
    let third = Self.expected([], { try root.again(second)() }, isSure: true)
    if !tree.objects.contains(where: { $0 == nil }) || second != third {
      Self.found("A value that was decoded and encoded twice gave other bytes")
    }
  }

  /// Runs a step that may refuse in a typed way; nil if it did. `codes` restricts which refusals are in order, if it
  /// isn't empty.
  static func expected<Value>(_ codes: [ArchiveError.Code], _ step: () throws -> Value, isSure: Bool = false) -> Value?
  {
    do {
      return try step()
    } catch let error as ArchiveError where !isSure && (codes.isEmpty || codes.contains(error.code)) {
      return nil
    } catch {
      found("The reader threw \(error)")
    }
  }

  static func found(_ message: String) -> Never { fatalError(message) }
}
