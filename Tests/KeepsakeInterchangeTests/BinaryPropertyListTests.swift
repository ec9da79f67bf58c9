import Foundation
import KeepsakeInterchange
import Testing

struct BinaryPropertyListTests {
  @Test("every value survives a round trip through a binary file, and equal trees give equal bytes")
  func roundTrip() throws {
    let bytes = try Samples.all.encoded(as: .binary)
    let again = try PropertyList(bytes)
    let isSame = again == Samples.all
    #expect(isSame)
    let second = try again.encoded(as: .binary)
    let isStable = second == bytes
    #expect(isStable, "equal trees must give equal bytes")
  }

  @Test("a file has exactly the bytes that the format specifies")
  func bytes() throws {
    let list: PropertyList = ["a": 1, "b": ["é", 1]]
    let expected: [UInt8] =
      Array("bplist00".utf8) + [0xD2, 1, 2, 3, 4, 0x51, 0x61, 0x51, 0x62, 0x10, 1, 0xA2, 5, 3, 0x61, 0, 0xE9]
      + [8, 13, 15, 17, 19, 22] + [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, 6] + [0, 0, 0, 0, 0, 0, 0, 0]
      + [0, 0, 0, 0, 0, 0, 0, 25]
    #expect(try Array(list.encoded(as: .binary)) == expected)
  }

  @Test("offsets and references of every width are read", arguments: 1...8, 1...8)
  func widths(offset: Int, reference: Int) throws {
    var file = Forged(offsetBytes: offset, referenceBytes: reference)
    file.list(0xA0, [1, 2])
    file.object([0x51, 0x78])
    file.object([0x13, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE])
    #expect(try PropertyList(file.data) == ["x", -2])
  }

  @Test("counts of every width are read, and a count that exceeds the file is refused")
  func counts() throws {
    let markers: [[UInt8]] = [
      [0x10, 3], [0x11, 0, 3], [0x12, 0, 0, 0, 3], [0x13, 0, 0, 0, 0, 0, 0, 0, 3],
      [0x14] + [UInt8](repeating: 0, count: 15) + [3],
    ]
    for marker in markers {
      var file = Forged()
      file.object([0x5F] + marker + Array("abc".utf8))
      #expect(try PropertyList(file.data) == "abc")
    }
    let excessive: [[UInt8]] = [
      [0x10, 200], [0x12, 0xFF, 0xFF, 0xFF, 0xFF], [0x13, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
      [0x13, 0xFF, 0, 0, 0, 0, 0, 0, 0],
      [0x14] + [UInt8](repeating: 0xFF, count: 16),
    ]
    for kind in [0x4F, 0x5F, 0x6F, 0xAF, 0xCF, 0xDF] as [UInt8] {
      for count in excessive {
        var file = Forged()
        file.object([kind] + count + Array("abc".utf8))
        #expect(
          throws: PropertyListError(
            .damaged, "A value extends past the end of the file, which was cut off or altered", offset: 8)
        ) {
          try PropertyList(file.data)
        }
      }
    }
  }

  @Test("a list that contains itself is refused; the error for an indirect cycle has its offset")
  func cycles() throws {
    var near = Forged()
    near.list(0xA0, [0])
    #expect(throws: PropertyListError.self) { try PropertyList(near.data) }
    var far = Forged()
    far.list(0xA0, [1])
    far.object([0xD1, 2, 3])
    far.object([0x51, 0x6B])
    far.list(0xA0, [0])
    do {
      _ = try PropertyList(far.data)
      Issue.record("a cycle was read")
    } catch let error as PropertyListError {
      #expect(error.code == .cycle)
      #expect(error.offset == 15, "\(error)")
    }
  }

  @Test("lists that each contain the next one twice are refused at 40 levels; at 20 they are read, but not written")
  func billionLaughs() throws {
    var file = Forged()
    for level in 1...40 { file.list(0xA0, [level, level]) }
    file.object([0x51, 0x61])
    let error = #expect(throws: PropertyListError.self) { try PropertyList(file.data) }
    #expect(error?.code == .limit)
    // With fewer levels, there is one array in memory for each list in the file.
    var small = Forged()
    for level in 1...20 { small.list(0xA0, [level, level]) }
    small.object([0x51, 0x61])
    var tree = try PropertyList(small.data)
    for _ in 1...20 {
      let elements = try #require(tree.array)
      #expect(elements.count == 2)
      tree = elements[1]
    }
    #expect(tree == "a")
    // But writing it would exceed the limit.
    var limits = PropertyListLimits()
    limits.values = 1 << 21
    let read = try PropertyList(small.data, limits: limits)
    limits.values = 1 << 16
    #expect(throws: PropertyListError.self) { try read.encoded(as: .binary, limits: limits) }
    #expect(throws: PropertyListError.self) { try read.encoded(as: .xml, limits: limits) }
  }

  @Test("overlapping objects are refused before they fill the memory")
  func overlap() throws {
    // Two hundred objects that are all the same list of two hundred elements.
    var file = Forged()
    file.object([0xAF, 0x10, 200] + [UInt8](1...200))
    file.object([0xAF, 0x10, 200] + [UInt8](repeating: 201, count: 200))
    for _ in 2...200 { file.same(as: 1) }
    file.object([0x09])
    let error = #expect(throws: PropertyListError.self) { try PropertyList(file.data) }
    #expect(error?.code == .damaged, "\(String(describing: error))")
  }

  @Test("lists nested up to the limit are read, and deeper ones are refused")
  func depth() throws {
    func nested(_ depth: Int) -> Data {
      var file = Forged(referenceBytes: 2)
      for level in 1..<depth { file.list(0xA0, [level]) }
      file.list(0xA0, [])
      return file.data
    }
    var tree = try PropertyList(nested(256))
    var depth = 0
    while let inner = tree.array?.first { (tree, depth) = (inner, depth + 1) }
    #expect(depth == 255)
    #expect(throws: PropertyListError.self) { try PropertyList(nested(257)) }
  }

  @Test(
    "unknown and invalid objects are refused, with their offset in the error",
    arguments: [
      ([0x0F], .unsupported), ([0x15], .unsupported), ([0x21, 0, 0], .unsupported), ([0x32, 0, 0, 0, 0], .unsupported),
      ([0x70], .unsupported),
      ([0xB0], .unsupported), ([0x0C], .unsupported), ([0xF0], .unsupported), ([0x51, 0x80], .damaged),
      ([0x61, 0xD8, 0x00], .damaged),
      ([0x5F, 0x51, 0x61], .damaged), ([0xD1, 0, 0], .cycle), ([0xA1, 7], .damaged),
      ([0x8F] + [UInt8](repeating: 1, count: 16), .unsupported),
      ([0xD1, 1, 1, 0x08], .unsupported),
    ] as [([UInt8], PropertyListError.Code)])
  func refused(object: [UInt8], code: PropertyListError.Code) throws {
    var file = Forged()
    file.object(object)
    file.object([0x08])
    let error = #expect(throws: PropertyListError.self) { try PropertyList(file.data) }
    #expect(error?.code == code)
    #expect((error?.offset ?? 0) >= 8)
  }

  @Test("every truncated file is refused, and every altered byte gives a value or a typed error")
  func damage() throws {
    let list: PropertyList = [
      "name": "Ünal", "list": [1, -2, 3.5, .float(2), .null, true, ["inner": .data(Data([1, 2, 3]))]],
      "when": .date(Samples.dates[3]),
      "uid": .uid(3), "set": .set([1, 300, 70_000]), "wide": .integer(.max),
    ]
    let bytes = try list.encoded(as: .binary)
    var (read, refused) = (0, 0)
    func attempt(_ data: Data) throws {
      do {
        _ = try PropertyList(data)
        read += 1
      } catch is PropertyListError {
        refused += 1
      }
    }
    for count in bytes.indices { try attempt(bytes.prefix(count)) }
    #expect(read == 0, "a file that was cut off was read as if it were whole")
    for index in bytes.indices {
      for value in UInt8.min...UInt8.max where value != bytes[index] {
        var altered = bytes
        altered[index] = value
        try attempt(altered)
      }
    }
    #expect(read + refused == bytes.count * 256)
    #expect(refused > bytes.count * 100)
  }

  @Test("bytes of another format aren't a property list, and a later binary version is unsupported")
  func others() throws {
    for text in ["", "{ a = b; }", "PK\u{3}\u{4}", "bplis"] {
      let error = #expect(throws: PropertyListError.self) { try PropertyList(Data(text.utf8)) }
      #expect(error?.code == .notAPropertyList)
    }
    let newer = #expect(throws: PropertyListError.self) {
      try PropertyList(Data(("bplist16" + String(repeating: "x", count: 60)).utf8))
    }
    #expect(newer?.code == .unsupported)
  }

  @Test("the last value of a repeated key counts, and dictionaries are equal in any order")
  func dictionaries() throws {
    let twice = PropertyList.dictionary([.init("a", 1), .init("b", 2), .init("a", 3)])
    #expect(twice["a"] == 3)
    #expect(twice == ["b": 2, "a": 3])
    #expect(twice != ["b": 2, "a": 1])
    #expect(try PropertyList(twice.encoded(as: .binary))["a"] == 3)
  }
}

/// A hand-made binary property list: objects as bytes, and a table and trailer that match them.
struct Forged {
  var offsetBytes = 2
  var referenceBytes = 1
  private var objects: [UInt8] = []
  private var offsets: [Int] = []

  init(offsetBytes: Int = 2, referenceBytes: Int = 1) {
    self.offsetBytes = offsetBytes
    self.referenceBytes = referenceBytes
  }

  mutating func object(_ bytes: [UInt8]) {
    offsets.append(8 + objects.count)
    objects += bytes
  }

  mutating func list(_ kind: UInt8, _ references: [Int]) {
    object([kind | UInt8(references.count)] + references.flatMap { number($0, referenceBytes) })
  }

  mutating func same(as object: Int) { offsets.append(offsets[object]) }

  private func number(_ value: Int, _ width: Int) -> [UInt8] {
    (0..<width).reversed().map { $0 < 8 ? UInt8(truncatingIfNeeded: value >> (8 * $0)) : 0 }
  }

  var data: Data {
    var bytes = Array("bplist00".utf8) + objects
    let table = bytes.count
    for offset in offsets { bytes += number(offset, offsetBytes) }
    bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetBytes), UInt8(referenceBytes)]
    bytes += number(offsets.count, 8) + number(0, 8) + number(table, 8)
    return Data(bytes)
  }
}
