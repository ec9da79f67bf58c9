import Foundation
import KeepsakeInterchange
import Testing

/// Other programs read our property lists, and we read theirs.
struct PeerTests {
  @Test(
    "Foundation reads the property lists that we write, and we read those that it writes",
    arguments: PropertyList.Format.allCases)
  func foundation(format: PropertyList.Format) throws {
    let theirs = try PropertyListSerialization.propertyList(from: Samples.plain.encoded(as: format), format: nil)
    let tree = try Self.tree(theirs)
    for entry in Samples.plain.dictionary ?? [] {
      let isSame = tree[entry.key] == entry.value
      #expect(isSame, "\(entry.key)")
    }
    #expect(tree.dictionary?.count == Samples.plain.dictionary?.count)
    let bytes = try PropertyListSerialization.data(
      fromPropertyList: theirs, format: format == .binary ? .binary : .xml, options: 0)
    let isReadBack = try PropertyList(bytes) == tree
    #expect(isReadBack)
  }

  @Test("Python's plistlib reads the property lists that we write, including values that only binary files have")
  func plistlib() throws {
    // plistlib has neither sets nor dates beyond the year 9999.
    var binary = Samples.binaryOnly.dictionary ?? []
    binary.removeAll { ["set", "late"].contains($0.key) }
    let values: [PropertyList] = [Samples.plain, .dictionary(binary), Samples.plain]
    let files = try [values[0].encoded(as: .binary), values[1].encoded(as: .binary), values[2].encoded(as: .xml)]
    for (value, answer) in zip(values, try Plistlib.read(files)) {
      guard case .tree(let tree) = answer else {
        Issue.record("plistlib refused what we wrote: \(answer)")
        continue
      }
      let isSame = tree == CanonicalTree.json(value)
      #expect(isSame)
    }
  }

  /// Converts a value that Foundation read to a property list of ours.
  static func tree(_ value: Any) throws -> PropertyList {
    switch value {
    case let list as [Any]: return .array(try list.map(tree))
    case let dictionary as [String: Any]: return .dictionary(try dictionary.map { .init($0.key, try tree($0.value)) })
    case let text as String: return .string(text)
    case let data as Data: return .data(data)
    case let date as Date: return .date(date)
    case let number as NSNumber:
      switch CFNumberKind(number) {
      case .bool: return .bool(number.boolValue)
      case .real: return .number(number.doubleValue)
      case .integer: return .integer(Int128(number.int64Value))
      }
    default: throw PropertyListError(.mismatch, "Foundation gave a \(type(of: value))")
    }
  }

  private enum CFNumberKind {
    case bool, real, integer

    init(_ number: NSNumber) {
      switch UnicodeScalar(UInt8(bitPattern: number.objCType.pointee)) {
      case "c", "B": self = .bool
      case "d", "f": self = .real
      default: self = .integer
      }
    }
  }
}
