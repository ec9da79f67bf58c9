/// The forms in which a value can be read whose class corresponds to no `Codable` type or plain value.
///
/// The class's `read` creates all forms at once; the class isn't known anywhere else.
package struct KeyedForms {
  package typealias Part = (name: String, value: KeyedContent)

  /// A short description for errors, such as "a range".
  let summary: String
  /// The value as shown without types; nothing is omitted.
  let shown: KeyedContent
  /// Numbers by name or in their order, for types with keys and vectors; empty if there are none.
  var parts: [Part] = []
  /// The same values as Swift's own type has them, if that differs.
  var otherParts: [Part] = []
  /// Elements in their order; nil if the value isn't a list.
  var elements: [KeyedContent]?
  /// Values under keys, which may refer to objects; nil if there are none.
  var fields: [PropertyList.Entry]?
  /// The text, for types that are a text.
  var text: String?
  /// Returns the value as a type whose `Codable` form is different; nil for all other types, which may have been saved
  /// in Swift's form.
  var swiftValue: ((any Any.Type) -> Any?)?

  /// The number of values that are scanned to read it.
  var count: Int { elements?.count ?? 1 }
}
