/// A value of a class that no type of `Codable` or plain value stands for: the forms that whoever reads it may take.
///
/// A class of Foundation's gives them once, when it is read; there is no second place that knows the class.
package struct KeyedForms {
  package typealias Part = (name: String, value: KeyedContent)

  /// In a few words, for errors: "a range".
  let summary: String
  /// What somebody sees who has no types: nothing is left out.
  let shown: KeyedContent
  /// Numbers by name or in their order, as types with keys and vectors take them; empty for what has none.
  var parts: [Part] = []
  /// The same as Swift's own type has them, where that differs.
  var otherParts: [Part] = []
  /// Elements in their order; nil for what is no list.
  var elements: [KeyedContent]?
  /// Values under keys, which may refer to objects; nil for what has none.
  var fields: [PropertyList.Entry]?
  /// For types that are a text.
  var text: String?
  /// The value as a type that `Codable` has another form for; nil for all other types, which may have been saved as Swift does.
  var swiftValue: ((any Any.Type) -> Any?)?

  /// How many values are looked through to read it.
  var count: Int { elements?.count ?? 1 }
}
