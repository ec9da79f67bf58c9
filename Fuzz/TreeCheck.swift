import Foundation
import KeepsakeArchive

/// Reads an archive as a generic tree and compares that with typed decoding.
struct TreeCheck {
  let data: Data
  init(_ data: Data) { self.data = data }

  func run() {
    let tree = Target.expected([], { try ArchiveInspection(of: data, limits: Root.limits) })
    let header = Target.expected([], { try ArchiveInspection.verify(data, limits: Root.limits) })
    if header != tree?.header { Target.found("What is verified and what is inspected are two things") }
    if let tree { show(tree) }
    guard isExact else { return }
    let encode = Target.expected([], { try Root.of(data, in: Root.own).again(data) })
    guard let encode else { return }
    guard let tree else { Target.found("The tree refuses what the typed reader takes") }
    guard tree.objects.isEmpty, let bytes = Target.expected([.limit], encode) else { return }
    guard let second = Target.expected([.limit], { try ArchiveInspection(of: bytes, limits: Root.limits) }) else {
      return
    }
    if Root.number(of: data) % Root.own.count == Root.roundingNumber { return }
    if Self.text(tree.root) != Self.text(second.root) {
      Target.found("The tree and the typed reader read different values")
    }
  }

  /// What people and scripts see of a tree. Takes longer than reading it: for some inputs each, always the same for
  /// one.
  private func show(_ tree: ArchiveInspection) {
    switch data.last.map({ $0 & 7 }) {
    case 0:
      let json = tree.json()
      do { _ = try JSONSerialization.jsonObject(with: json) } catch {
        Target.found("The tree's JSON is none: \(error)")
      }
    case 1:
      let difference = ArchiveDifference(from: tree, to: tree)
      // Objects to which nothing leads, which no program writes, are matched with nothing.
      if !difference.changes.isEmpty || !difference.types.isEmpty || !difference.omitted.isEmpty {
        Target.found("A tree differs from itself: " + difference.text())
      }
    case 2:
      guard let other = Target.expected([], { try ArchiveInspection(of: data.altered(), limits: Root.limits) }) else {
        return
      }
      let difference = ArchiveDifference(from: tree, to: other)
      _ = difference.text()
      _ = difference.json()
      _ = tree.root.description
    default: _ = tree.text()
    }
  }

  /// Whether the archive's schema is the program's own and all of a value is read: only then the typed reader can't
  /// pass over what the tree refuses, such as a damaged string under a key that nobody asks for.
  private var isExact: Bool {
    let number = Root.number(of: data) % Root.own.count
    guard number != Root.keyedNumber, let parts = data.withUnsafeBytes({ Parts($0) }) else { return false }
    let own = Root.own[number].schema
    return parts[.fixedTypes] == own.types && parts[.rootType] == own.root && parts[.furtherTypes] == [1]
  }

  /// A value as text in which only its content shows: not the order of sets, not how a URL was escaped.
  private static func text(_ value: ArchiveValue) -> String {
    func text(_ fields: [ArchiveValue.Field]) -> String {
      fields.map { $0.key + ":" + Self.text($0.value) }.joined(separator: ",")
    }
    switch value {
    case .set(let values): return "{" + values.map(Self.text).sorted().joined(separator: ",") + "}"
    case .array(let values), .vector(let values): return "[" + values.map(Self.text).joined(separator: ",") + "]"
    case .dictionary(let pairs):
      return "{" + pairs.map { Self.text($0.key) + "=" + Self.text($0.value) }.sorted().joined(separator: ",") + "}"
    case .structure(_, let fields): return "(" + text(fields) + ")"
    case .enumeration(_, let name, let fields): return "." + name + "(" + text(fields) + ")"
    case .url: return "url"
    default: return "\(value)"
    }
  }
}
