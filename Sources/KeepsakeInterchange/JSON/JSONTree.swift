/// The contents of a JSON text, in the original order and with all digits.
package indirect enum JSONTree: Sendable {
  case null
  case bool(Bool)
  /// The number as it is written: JSON has no limit on digits.
  case number(String)
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
