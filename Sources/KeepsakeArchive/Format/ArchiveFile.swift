/// The parts of an archive, checked: checksum, sections, schema, and which objects there are.
struct ArchiveFile {
  struct Run {
    let type: Int
    let ids: [Int32]
  }

  let bytes: UnsafeRawBufferPointer
  let version: UInt16
  let schema: ArchiveSchema
  let staticCount: Int
  let staticBytes: Range<Int>
  let root: Int32
  let names: [String]
  let wires: [Int32]
  let rootSection: Range<Int>
  let valueSection: Range<Int>
  let referenceSection: Range<Int>
  let objectCount: Int
  let runs: [Run]

  init(_ bytes: UnsafeRawBufferPointer, limits: ArchiveLimits) throws {
    self.bytes = bytes
    guard !bytes.isEmpty else { throw ArchiveError(.missing, "There are no bytes to read") }
    guard bytes.count <= limits.archiveBytes else {
      throw ArchiveError(.limit, "The archive takes \(bytes.count) bytes; the limit is \(limits.archiveBytes)")
    }
    let magic = ArchiveLayout.magic
    guard bytes.prefix(magic.count).elementsEqual(magic.prefix(bytes.count)) else {
      throw ArchiveError(.notAnArchive, "The bytes don't begin like an archive")
    }
    guard bytes.count >= ArchiveLayout.headerBytes + ArchiveLayout.trailerBytes else {
      throw ArchiveError(.damaged, "The archive is cut off after \(bytes.count) bytes", offset: bytes.count)
    }
    version = UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt16.self))
    let flags = UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 10, as: UInt16.self))
    // Before the version is believed: a flipped bit in it must read as damage, not as "too new".
    let sum = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self))
    guard Checksum.xxh64(UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count - 8)])) == sum else {
      throw ArchiveError(.damaged, "The archive's checksum is wrong: it was cut off or altered")
    }
    guard version == ArchiveLayout.version, flags == 0 else {
      throw ArchiveError(
        .tooNew, "The archive has format version \(version), flags \(flags); this program reads version \(ArchiveLayout.version)")
    }
    let bodyEnd = bytes.count - ArchiveLayout.trailerBytes
    let rawOffset = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: bodyEnd, as: UInt64.self))
    guard let footer = Int(exactly: rawOffset), footer >= ArchiveLayout.headerBytes, footer <= bodyEnd else {
      throw ArchiveError(.damaged, "The archive's footer is out of place", offset: bodyEnd)
    }
    var input = ByteCursor(bytes: bytes, offset: footer, end: bodyEnd)
    var parser = SchemaParser(limits: limits)
    staticCount = try input.count(limit: limits.types, "types")
    let length = try input.count(limit: limits.archiveBytes, "bytes of schema")
    staticBytes = input.offset..<input.offset + length
    try parser.parseTypes(staticCount, from: &input)
    guard input.offset == staticBytes.upperBound else { throw input.damaged("The schema's length is wrong") }
    let dynamicCount = try input.count(limit: limits.types, "types")
    try parser.parseTypes(dynamicCount, from: &input)
    root = try parser.expression(from: &input, depth: 0)
    var names: [String] = []
    for _ in 0..<(try input.count(limit: limits.fields, "keys")) { names.append(try input.string(limit: limits.stringBytes)) }
    self.names = names
    var wires: [Int32] = []
    for _ in 0..<(try input.count(limit: limits.fields, "types under keys")) {
      wires.append(try parser.expression(from: &input, depth: 0))
    }
    self.wires = wires
    schema = try parser.finish(input)
    var position = ArchiveLayout.headerBytes
    func section() throws -> Range<Int> {
      guard let length = Int(exactly: try input.varint()), length <= footer - position else {
        throw input.damaged("A section passes the footer")
      }
      defer { position += length }
      return position..<position + length
    }
    rootSection = try section()
    valueSection = try section()
    referenceSection = try section()
    guard position == footer else { throw input.damaged("The sections don't fill the archive") }
    // Each object is referred to by at least one byte somewhere.
    guard let objects = Int(exactly: try input.varint()), objects <= bytes.count else {
      throw input.damaged("The count of objects passes the archive's size")
    }
    guard objects <= limits.objects else {
      throw ArchiveError(.limit, "The archive has \(objects) objects; the limit is \(limits.objects)")
    }
    objectCount = objects
    runs = try Self.runs(
      &input, objects: objects, schema: schema, values: valueSection.count, references: referenceSection.count)
    guard input.offset == bodyEnd else { throw input.damaged("The footer is longer than its content") }
  }

  /// Each field of an object takes at least a byte in its section, so that objects whose fields aren't there are found out before
  /// any is built.
  private static func runs(
    _ input: inout ByteCursor, objects: Int, schema: ArchiveSchema, values: Int, references: Int
  ) throws -> [Run] {
    let count = try input.count(limit: objects, "runs of objects")
    var runs: [Run] = []
    var seen = [Bool](repeating: false, count: objects)
    var total = 0
    var fieldCounts: [Int: (values: Int, references: Int)] = [:]
    var (valuesLeft, referencesLeft) = (values, references)
    for _ in 0..<count {
      guard let type = Int(exactly: try input.varint()), type < schema.types.count, schema.types[type].kind.isObject else {
        throw input.damaged("A run of objects has no class")
      }
      guard let length = Int(exactly: try input.varint()), length > 0, length <= objects - total else {
        throw input.damaged("A run has more objects than the archive")
      }
      total += length
      let fields = fieldCounts[type] ?? schema.types[type].objectFieldCounts
      fieldCounts[type] = fields
      guard fields.values == 0 || length <= valuesLeft / fields.values,
        fields.references == 0 || length <= referencesLeft / fields.references
      else {
        throw input.damaged("A run has more objects than there are bytes for their fields")
      }
      valuesLeft -= length * fields.values
      referencesLeft -= length * fields.references
      let mode = try input.byte()
      guard mode <= 1 else { throw input.damaged("A run of objects has an unknown form") }
      var ids: [Int32] = []
      ids.reserveCapacity(length)
      var last: Int64 = 0
      for index in 0..<length {
        let step = index > 0 && mode == 0 ? 1 : try input.signed()
        let (id, overflow) = last.addingReportingOverflow(step)
        guard !overflow, id >= 0, id < Int64(objects), !seen[Int(id)] else { throw input.damaged("An object's number is wrong") }
        seen[Int(id)] = true
        ids.append(Int32(truncatingIfNeeded: id))
        last = id
      }
      runs.append(Run(type: type, ids: ids))
    }
    return runs
  }
}
