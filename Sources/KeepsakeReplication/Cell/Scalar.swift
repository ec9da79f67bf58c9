package import Foundation

/// A single value in a cell, with a total order over all values.
///
/// Numbers compare as numbers whether they are whole or not; a whole number ranks just below the equal fraction so that the
/// order is total. Numbers rank below strings, strings below bytes. Not-a-number is refused where a value enters a cell.
package enum Scalar: Hashable, Sendable {
  case int(Int64)
  case double(Double)
  case string(String)
  case data(Data)
}
