/// The contents of a JSON text, in the original order.
package indirect enum JSONTree: Sendable {
  case null
  case bool(Bool)
  /// A number without a fraction and an exponent, except for `-0`.
  case integer(Int128)
  case number(Double)
  case string(String)
  case array([JSONTree])
  /// All members, including several with the same name.
  case object([Member])

  package struct Member: Sendable {
    package var name: String
    package var value: JSONTree

    package init(name: String, value: JSONTree) { (self.name, self.value) = (name, value) }
  }
}
