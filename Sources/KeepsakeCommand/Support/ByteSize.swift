#if Cloud
import ArgumentParser

/// A number of bytes as people write it: `1500`, `64K`, `10M`, `1.5G`, `2T`, also as `10MiB` or `10 mb`. A K is 1,024.
struct ByteSize: ExpressibleByArgument, Hashable, Sendable {
  var bytes: Int64

  private static let units: [Character: Int64] = ["k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40]

  /// Nil for text that isn't a size, for less than one byte, and for more than an `Int64` holds.
  init?(argument: String) {
    let text = argument.lowercased()
    let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    var unit = text.dropFirst(number.count).drop { $0 == " " }
    var factor: Int64 = 1
    if let first = unit.first, let known = Self.units[first] {
      factor = known
      unit = unit.dropFirst()
      if unit.hasPrefix("i") { unit = unit.dropFirst() }
    }
    guard unit.isEmpty || unit == "b" else { return nil }
    if let whole = Int64(number) {
      let (product, overflow) = whole.multipliedReportingOverflow(by: factor)
      guard !overflow, product > 0 else { return nil }
      bytes = product
    } else {
      guard factor > 1, let value = Double(number), let product = Int64(exactly: (value * Double(factor)).rounded()),
        product > 0
      else {
        return nil
      }
      bytes = product
    }
  }
}

/// A limit in bytes, or `none`.
struct SizeLimit: ExpressibleByArgument, Hashable, Sendable {
  /// Nil for no limit.
  var bytes: Int64?

  init?(argument: String) {
    if argument.lowercased() == "none" { return }
    guard let size = ByteSize(argument: argument) else { return nil }
    bytes = size.bytes
  }

  var text: String { bytes.map(String.init) ?? "none" }
}
#endif
