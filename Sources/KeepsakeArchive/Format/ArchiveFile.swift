/// The validated parts of an archive: checksum, sections, schema, and the list of its objects.
package final class ArchiveFile {
  /// Objects of one class, in the order in which they are built.
  package struct Run {
    package let type: Int
    package let ids: ObjectNumbers
  }

  let bytes: UnsafeRawBufferPointer
  package let version: UInt16
  package let schema: ArchiveSchema
  package let staticCount: Int
  /// Whether the types that the root leads to are declared as in the program, so that no field needs to be looked up.
  let isSame: Bool
  package let root: Int32
  package let names: [String]
  package let wires: [Int32]
  let rootSection: Range<Int>
  let valueSection: Range<Int>
  let referenceSection: Range<Int>
  package let objectCount: Int
  package let runs: [Run]

  /// The maximum memory for types and runs of objects, per byte of their description.
  private static let memoryPerFooterByte = 32
  /// Memory per object of the tables by number, not counting the object itself.
  private static let memoryPerObjectNumber = 32

  /// - Parameter compiled: The program's types, if available. If the archive's description is the same, it isn't
  ///   parsed.
  init(_ envelope: ArchiveEnvelope, limits: ArchiveLimits, compiled: CompiledSchema? = nil) throws {
    bytes = envelope.bytes
    version = envelope.version
    let (footer, bodyEnd) = (envelope.footer.lowerBound, envelope.footer.upperBound)
    guard bodyEnd - footer <= limits.memoryBytes / Self.memoryPerFooterByte else {
      throw ArchiveError(
        .limit,
        """
        The archive's description takes \(bodyEnd - footer) bytes; with ArchiveLimits.memoryBytes of \
        \(limits.memoryBytes) it may take \(limits.memoryBytes / Self.memoryPerFooterByte)
        """,
        offset: footer)
    }
    var input = ByteCursor(bytes: bytes, offset: footer, end: bodyEnd)
    if let compiled, compiled.isHead(of: UnsafeRawBufferPointer(rebasing: bytes[footer..<bodyEnd])) {
      input.offset += compiled.footerHead.count
      schema = compiled.schema
      root = compiled.root
      staticCount = compiled.typeCount
      names = []
      wires = []
      isSame = true
    } else {
      var parser = SchemaParser(limits: limits)
      staticCount = try input.count(limit: limits.types, "types")
      let length = try input.count(limit: limits.archiveBytes, "bytes of schema")
      let staticBytes = input.offset..<input.offset + length
      try parser.parseTypes(staticCount, from: &input)
      guard input.offset == staticBytes.upperBound else { throw input.damaged("The schema's length is wrong") }
      let dynamicCount = try input.count(limit: limits.types, "types")
      try parser.parseTypes(dynamicCount, from: &input)
      let rootStart = input.offset
      root = try parser.expression(from: &input, depth: 0)
      let rootEnd = input.offset
      isSame = compiled?.isSame(types: bytes[staticBytes], root: bytes[rootStart..<rootEnd]) ?? false
      var names: [String] = []
      for _ in 0..<(try input.count(limit: limits.fields, "keys")) {
        names.append(try input.string(limit: limits.stringBytes))
      }
      self.names = names
      var wires: [Int32] = []
      for _ in 0..<(try input.count(limit: limits.fields, "types under keys")) {
        wires.append(try parser.expression(from: &input, depth: 0))
      }
      self.wires = wires
      schema = try parser.finish(input)
    }
    var position = ArchiveLayout.headerBytes
    func section() throws -> Range<Int> {
      guard let length = Int(exactly: try input.varint()), length <= footer - position else {
        throw input.damaged("A section extends past the start of the footer")
      }
      defer { position += length }
      return position..<position + length
    }
    rootSection = try section()
    valueSection = try section()
    referenceSection = try section()
    guard position == footer else {
      throw input.damaged("The lengths of the sections don't add up to the length of the archive")
    }
    // Each object is referred to somewhere, by at least one byte.
    guard let objects = Int(exactly: try input.varint()), objects <= bytes.count else {
      throw input.damaged("The count of objects is larger than the archive's size")
    }
    guard objects <= min(limits.objects, Int(Int32.max) - 1) else {
      throw ArchiveError(.limit, "The archive has \(objects) objects; the limit is \(limits.objects)")
    }
    let most = limits.memoryBytes / Self.memoryPerObjectNumber
    guard objects <= most else {
      throw ArchiveError(
        .limit,
        """
        The archive has \(objects) objects; with ArchiveLimits.memoryBytes of \(limits.memoryBytes) it may have \(most)
        """)
    }
    objectCount = objects
    runs = try Self.runs(
      &input, objects: objects, schema: schema, values: valueSection.count, references: referenceSection.count)
    guard input.offset == bodyEnd else { throw input.damaged("The footer is longer than its content") }
  }

  package convenience init(_ bytes: UnsafeRawBufferPointer, limits: ArchiveLimits) throws {
    try self.init(ArchiveEnvelope(bytes, limits: limits), limits: limits)
  }

  /// Reads the runs of objects. Each field of an object takes at least one byte in its section, so runs whose objects
  /// can't fit are detected before any object is built.
  private static func runs(
    _ input: inout ByteCursor, objects: Int, schema: ArchiveSchema, values: Int, references: Int
  ) throws -> [Run] {
    let count = try input.count(limit: objects, "runs of objects")
    var runs: [Run] = []
    runs.reserveCapacity(count)
    var seen = [Bool](repeating: false, count: objects)
    var total = 0
    var fieldCounts: [Int: (values: Int, references: Int)] = [:]
    var (valuesLeft, referencesLeft) = (values, references)
    for _ in 0..<count {
      guard let type = Int(exactly: try input.varint()), type < schema.types.count, schema.types[type].kind.isObject
      else {
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
      var list: [Int32] = []
      if mode == 1 {
        guard length <= input.end - input.offset else { throw input.damaged("A run has more objects than the archive") }
        list.reserveCapacity(length)
      }
      var last: Int64 = 0
      for index in 0..<length {
        let step = index > 0 && mode == 0 ? 1 : try input.signed()
        let (id, overflow) = last.addingReportingOverflow(step)
        guard !overflow, id >= 0, id < Int64(objects), !seen[Int(id)] else {
          throw input.damaged("An object's number is out of range or used twice")
        }
        seen[Int(id)] = true
        if mode == 1 { list.append(Int32(truncatingIfNeeded: id)) }
        last = id
      }
      let first = Int32(truncatingIfNeeded: last) - Int32(truncatingIfNeeded: length - 1)
      runs.append(Run(type: type, ids: mode == 0 ? ObjectNumbers(from: first, count: length) : ObjectNumbers(list)))
    }
    return runs
  }
}

/// The numbers of a run's objects, usually consecutive.
package struct ObjectNumbers: RandomAccessCollection {
  private let first: Int32
  private let list: [Int32]
  package let count: Int

  init(from first: Int32, count: Int) {
    self.first = first
    self.count = count
    list = []
  }

  init(_ list: [Int32]) {
    first = 0
    count = list.count
    self.list = list
  }

  package var startIndex: Int { 0 }
  package var endIndex: Int { count }
  package subscript(index: Int) -> Int32 { list.isEmpty ? first &+ Int32(truncatingIfNeeded: index) : list[index] }
}
