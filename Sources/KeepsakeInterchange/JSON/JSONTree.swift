/// What a JSON text says, in its own order and to the last digit.
package indirect enum JSONTree: Sendable {
  case null
  case bool(Bool)
  /// As it is written: JSON has no limit on digits.
  case number(String)
  case string(String)
  case array([JSONTree])
  /// Also members whose name stands twice.
  case object([Member])

  package struct Member: Sendable {
    package var name: String
    package var value: JSONTree

    package init(name: String, value: JSONTree) { (self.name, self.value) = (name, value) }
  }
}
