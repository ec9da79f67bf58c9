import Foundation
import KeepsakeArchive

/// What is done with each input. A finding ends the process: by a trap in a reader, or by `found`.
enum InterchangeTarget: String, CaseIterable {
  /// Either format: what was read must be written, and read again to the same.
  case propertyList
  /// The tree of a keyed archive, and Codable types that take anything.
  case keyedArchive

  /// Small enough that a list of lists that name each other is written out quickly.
  static let limits = {
    var limits = PropertyListLimits()
    limits.values = 1 << 12
    limits.depth = 64
    return limits
  }()
  /// In XML a UID is a dictionary with a number.
  static let limitsOfXML = {
    var limits = InterchangeTarget.limits
    limits.values *= 4
    return limits
  }()
  /// That may live at once for an input of 4 KiB.
  static let mostBytes = 16 << 20

  func run(_ data: Data) {
    switch self {
    case .propertyList: Self.again(data)
    case .keyedArchive: Self.keyed(data)
    }
  }

  private static func keyed(_ data: Data) {
    guard let archive = expected([], { try KeyedArchive(data, limits: limits) }) else { return }
    if let tree = expected([], { try archive.tree(limits: limits) }) {
      // Each number leads to an object.
      for object in tree.objects where !tree.classes.indices.contains(object.type) && !object.fields.isEmpty {
        found("An object has class \(object.type) of \(tree.classes.count)")
      }
    }
    let key = archive.top.first?.key ?? ""
    let keys = ["B": ["name": "values", "part": "next"]]
    for named in [[:], keys] {
      func decode<Value: Archivable>(_ type: Value.Type) {
        defer { InterchangeTypes.sever() }
        guard
          let value = expected(
            [], { try archive.decode(type, key: key, classes: InterchangeTypes.classes, keys: named, limits: limits) })
        else { return }
        do {
          _ = try Archive.encode(value)
        } catch {
          found("What was decoded can't be encoded: \(error)")
        }
      }
      decode(InterchangeTypes.Node.self)
      decode(InterchangeTypes.Part.self)
      decode([InterchangeTypes.Kind].self)
      decode([String: InterchangeTypes.Part].self)
    }
    for classes in [[:], ["A": Anything.self, "B": Linked.self]] as [[String: any Decodable.Type]] {
      guard let value = expected([], { try archive.decode(Anything.self, key: key, classes: classes, limits: limits) })
      else { continue }
      guard
        let again = expected([.limit], { try KeyedArchive.encode(value, classes: ["B": Linked.self], limits: limits) })
      else {
        continue
      }
      // An object of a named class is made as that, and isn't Anything.
      _ = expected(
        [.limit, .mismatch],
        { try KeyedArchive.decode(Anything.self, from: again, classes: ["B": Linked.self], limits: limits) })
    }
  }

  /// Tries one kind of value after the other.
  private indirect enum Anything: Codable {
    case bool(Bool)
    case integer(Int)
    case unsigned(UInt64)
    case number(Double)
    case text(String)
    case data(Data)
    case date(Date)
    case uuid(UUID)
    case url(URL)
    case decimal(Decimal)
    case list([Anything])
    case fields([String: Anything])
    case linked(Linked)
    case none

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      func attempt<T: Decodable>(_ type: T.Type) -> T? { try? value.decode(type) }
      guard !value.decodeNil() else {
        self = .none
        return
      }
      let leaf =
        attempt(Bool.self).map { .bool($0) } ?? attempt(Int.self).map { .integer($0) } ?? attempt(UInt64.self).map {
          .unsigned($0)
        }
        ?? attempt(Double.self).map { .number($0) } ?? attempt(String.self).map { .text($0) } as Anything?
      let other =
        attempt(Data.self).map { .data($0) } ?? attempt(Date.self).map { .date($0) } ?? attempt(UUID.self).map {
          .uuid($0)
        }
        ?? attempt(URL.self).map { .url($0) } ?? attempt(Decimal.self).map { .decimal($0) } as Anything?
      if let known = leaf ?? other ?? attempt(Linked.self).map({ .linked($0) }) {
        self = known
      } else if var elements = try? decoder.unkeyedContainer() {
        var list: [Anything] = []
        while !elements.isAtEnd { list.append(try elements.decode(Anything.self)) }
        self = .list(list)
      } else {
        let fields = try decoder.container(keyedBy: KeyedName.self)
        let pairs = try fields.allKeys.map { ($0.stringValue, try fields.decode(Anything.self, forKey: $0)) }
        self = .fields(Dictionary(pairs, uniquingKeysWith: { $1 }))
      }
    }

    func encode(to encoder: any Encoder) throws {
      var single = encoder.singleValueContainer()
      switch self {
      case .bool(let it): try single.encode(it)
      case .integer(let it): try single.encode(it)
      case .unsigned(let it): try single.encode(it)
      case .number(let it): try single.encode(it)
      case .text(let it): try single.encode(it)
      case .data(let it): try single.encode(it)
      case .date(let it): try single.encode(it)
      case .uuid(let it): try single.encode(it)
      case .url(let it): try single.encode(it)
      case .decimal(let it): try single.encode(it)
      case .list(let it): try single.encode(it)
      case .fields(let it): try single.encode(it)
      case .linked(let it): try single.encode(it)
      case .none: try single.encodeNil()
      }
    }
  }

  /// An object that may be shared.
  private final class Linked: Codable {
    var next: Linked?
    var values: [String: Int]?
  }

  private static func again(_ data: Data) {
    guard let list = expected([], { try PropertyList(data, limits: limits) }) else { return }
    guard let first = expected([.limit], { try list.encoded(as: .binary, limits: limits) }) else { return }
    guard let read = expected([], { try PropertyList(first, limits: limits) }, isSure: true) else { return }
    let second = expected([], { try read.encoded(as: .binary, limits: limits) }, isSure: true)
    if first != second || read != list { found("A property list that was written and read gave other bytes") }
    guard let text = expected([.unwritable, .limit], { try list.encoded(as: .xml, limits: limits) }) else { return }
    guard let fromText = expected([], { try PropertyList(text, limits: limitsOfXML) }, isSure: true) else { return }
    guard let again = expected([], { try fromText.encoded(as: .xml, limits: limitsOfXML) }, isSure: true) else {
      return
    }
    if again != text { found("A property list that was written as XML and read gave other XML") }
  }

  /// Runs a step that may refuse in a typed way; nil if it did. `codes` restricts which refusals are in order, if it
  /// isn't empty.
  static func expected<Value>(_ codes: [PropertyListError.Code], _ step: () throws -> Value, isSure: Bool = false)
    -> Value?
  {
    do {
      return try step()
    } catch let error as PropertyListError where !isSure && (codes.isEmpty || codes.contains(error.code)) {
      return nil
    } catch {
      found("The reader threw \(error)")
    }
  }

  static func found(_ message: String) -> Never { fatalError(message) }
}
