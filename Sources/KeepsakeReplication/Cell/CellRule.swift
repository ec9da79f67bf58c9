/// A merge rule, described once: its name, how two values are joined, how a change is applied, what is refused, and how
/// a value is encoded and shown.
///
/// `CellValue` delegates all of this to the rule of its case. A new rule is a file in `Cell/Rules`, a case of
/// `CellValue`, a case of `CellDraft.Change`, and its public form in `ProgressRule`; `CellLawTests` checks the laws for
/// each rule of `CellRule.all`.
package struct CellRule: Sendable {
  /// The key for a value on the wire and in stores. Never changes.
  package let name: String
  /// Decides if two rules meet under one key, which only a mistake can cause: the rule of the higher rank wins, on
  /// every device. Never changes; a new rule takes the next number, and `later` stays above all.
  package let rank: Int

  let title: @Sendable (CellValue) -> String
  let join: @Sendable (CellValue, CellValue) -> CellValue?
  let size: @Sendable (CellValue) -> Int
  let objection: @Sendable (CellValue, _ depth: Int) -> String?
  let text: @Sendable (CellValue, CellText) -> String
  let apply: @Sendable (CellDraft.Change, CellValue?, CellDraft.Application) throws(CellError) -> CellValue
  let encode: @Sendable (CellValue, inout KeyedEncodingContainer<Key>) throws -> Void
  let decode: @Sendable (KeyedDecodingContainer<Key>, any Decoder) throws -> CellValue
  let nested: Nested

  /// What a rule has to define only if its values hold other values, or any number of parts.
  struct Nested: Sendable {
    /// The values inside; empty for plain values.
    var values: @Sendable (CellValue) -> [CellValue] = { _ in [] }
    /// The same value with each value inside replaced.
    var map: @Sendable (CellValue, (CellValue) -> CellValue) -> CellValue = { value, _ in value }
    /// Whether games can insert any number of parts.
    var isCollection = false
    /// Whether its encoding encloses other values. Such values are counted while decoding, to limit nesting.
    var isContainer = false
  }

  /// The key of a rule in an encoded value.
  struct Key: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { return nil }
  }

  /// Creates a rule.
  ///
  /// - Parameters:
  ///   - payload: Returns what the case of `CellValue` holds; nil for every other case.
  ///   - value: Creates the case.
  ///   - join: Commutative, associative and idempotent.
  ///   - size: The approximate size of a value in bytes, for limits.
  ///   - objection: Why a value inside `depth` others can't be kept or sent; nil if it can.
  ///   - change: Returns the smallest value whose join with the known one gives what the change asks for.
  ///   - asked: The rule that a change asks for, as named in errors.
  ///   - written: Returns the form that is encoded. `read` must return an equal value for it.
  init<Payload, Form: Codable & SendableMetatype>(
    _ name: String, rank: Int, payload: @escaping @Sendable (CellValue) -> Payload?,
    value: @escaping @Sendable (Payload) -> CellValue,
    title: (@Sendable (Payload) -> String)? = nil,
    join: @escaping @Sendable (Payload, Payload) -> Payload,
    size: @escaping @Sendable (Payload) -> Int,
    objection: @escaping @Sendable (Payload, _ depth: Int) -> String?,
    text: @escaping @Sendable (Payload, CellText) -> String,
    asked: (@Sendable (CellDraft.Change) -> String)? = nil,
    change: @escaping @Sendable (CellDraft.Change, Payload?, CellDraft.Application) throws(CellError) -> Payload,
    written: @escaping @Sendable (Payload) -> Form,
    read: @escaping @Sendable (Form) throws -> Payload,
    nested: Nested = Nested()
  ) {
    self.name = name
    self.rank = rank
    self.nested = nested
    self.title = { payload($0).flatMap { title?($0) } ?? name }
    self.join = { left, right in
      guard let left = payload(left), let right = payload(right) else { return nil }
      return value(join(left, right))
    }
    self.size = { payload($0).map(size) ?? 0 }
    self.objection = { value, depth in payload(value).flatMap { objection($0, depth) } }
    self.text = { value, style in payload(value).map { text($0, style) } ?? name }
    apply = { (wanted, known, application) throws(CellError) -> CellValue in
      let held = known.flatMap(payload)
      guard known == nil || held != nil else { throw application.mismatch(known, asked: asked?(wanted) ?? name) }
      return value(try change(wanted, held, application))
    }
    encode = { value, container in
      if let payload = payload(value) { try container.encode(written(payload), forKey: Key(stringValue: name)) }
    }
    decode = { container, decoder in
      if nested.isContainer { try Self.checkDepth(of: decoder) }
      return value(try read(container.decode(Form.self, forKey: Key(stringValue: name))))
    }
  }

  private static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })
  private static let containerNames = Set(all.filter(\.nested.isContainer).map(\.name))

  /// Returns the rule that an encoded value names. Unknown names are ignored, as everywhere on the wire.
  ///
  /// - Throws: `DecodingError` if no rule or several are named, because taking such a value for another would lose it.
  static func named(in container: KeyedDecodingContainer<Key>, _ decoder: any Decoder) throws -> CellRule {
    let named = container.allKeys.compactMap { byName[$0.stringValue] }
    guard let rule = named.first, named.count == 1 else {
      let known = all.map(\.name).joined(separator: ", ")
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "expected one of \(known)"))
    }
    return rule
  }

  /// Checks the depth before anything inside is decoded: endlessly nested values must not exhaust the stack.
  private static func checkDepth(of decoder: any Decoder) throws {
    let around = decoder.codingPath.count { key in key is Key && containerNames.contains(key.stringValue) }
    guard around < CellValue.maximumDepth else {
      throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: CellValue.tooDeep))
    }
  }
}

/// How a value is shown to people.
package struct CellText: Sendable {
  package var scalar: @Sendable (Scalar) -> String
  package var time: @Sendable (_ milliseconds: Int64) -> String
  /// Text from outside, in which characters that would disturb a terminal are escaped.
  package var name: @Sendable (String) -> String

  package init(
    scalar: @escaping @Sendable (Scalar) -> String, time: @escaping @Sendable (_ milliseconds: Int64) -> String,
    name: @escaping @Sendable (String) -> String
  ) {
    (self.scalar, self.time, self.name) = (scalar, time, name)
  }

  func list(_ scalars: Set<Scalar>) -> String { "{" + scalars.sorted().map(scalar).joined(separator: ", ") + "}" }
}
