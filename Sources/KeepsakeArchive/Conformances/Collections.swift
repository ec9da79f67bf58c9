/// Encoded as a byte, 0 or 1, and the value. An optional reference is encoded as its number alone, 0 for nil.
extension Optional: Archivable where Wrapped: Archivable {
  public static var archiveName: String { Wrapped.archiveName + "?" }
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType {
    schema.composite(.optional, Wrapped.self)
  }
  @inlinable public static var archiveIsKeyed: Bool { false }

  @inlinable public func encode(to writer: inout ArchiveWriter) throws {
    try Wrapped.archiveWriteOptional(self, to: &writer)
  }

  @inlinable public init(from reader: inout ArchiveReader) throws {
    self = try Wrapped.archiveReadOptional(from: &reader)
  }

  public static var archiveHasMergeRules: Bool { MergeFields.hasRules(Wrapped.self) }

  /// Merges two values by their fields. If only one side has a value, it is dropped if it equals the ancestor's,
  /// because the other side then removed it; otherwise it is kept.
  ///
  /// - Parameters:
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if there was none or it isn't known.
  public mutating func mergeFields(from other: Wrapped?, ancestor: Wrapped??) {
    let old = ancestor ?? nil
    switch (self, other) {
    case (var mine?, let theirs?):
      mine.mergeFields(from: theirs, ancestor: old)
      self = mine
    case (let mine?, nil):
      if let old, MergeFields.isSame(mine, old) { self = nil }
    case (nil, let theirs?):
      if let old, MergeFields.isSame(theirs, old) { return }
      self = theirs
    case (nil, nil): break
    }
  }
}

/// Encoded as a count and the elements.
extension Array: Archivable where Element: Archivable {
  public static var archiveName: String { "[" + Element.archiveName + "]" }
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType {
    schema.composite(.array, Element.self)
  }
  @inlinable public static var archiveIsKeyed: Bool { false }

  @inlinable public func encode(to writer: inout ArchiveWriter) throws {
    writer.putVarint(UInt64(count))
    if Element.archiveBlockCode != 0 {
      withUnsafeBytes { writer.putBlock($0, code: Element.archiveBlockCode, count: count) }
      return
    }
    try writer.descend()
    try withUnsafeBufferPointer { elements in
      if let start = elements.baseAddress {
        try Element.archiveWriteElements(start, count: elements.count, to: &writer)
      }
    }
    writer.ascend()
  }

  @inlinable public init(from reader: inout ArchiveReader) throws {
    let element = try reader.enterList(.array)
    let count = try reader.takeCount(of: MemoryLayout<Element>.stride, and: ArchiveLimits.arrayBytes)
    if reader.isBlock(element, as: Element.archiveBlockCode) {
      let block = try reader.takeBlock(element, wanted: Element.archiveBlockCode, count: count)
      try self.init(unsafeUninitializedCapacity: count) { buffer, initialized in
        // For numbers, any bytes are a valid value, and nothing has to be released if a conversion throws.
        try block.copy(to: UnsafeMutableRawBufferPointer(buffer))
        initialized = count
      }
      return
    }
    try reader.descend()
    try reader.enterElements(element, count: count)
    // Uses a ContiguousArray, because the compiler specialises its methods, while those of an Array call into the
    // standard library. Only a bounded amount of memory is reserved, so that a small archive can't request a large
    // allocation.
    var elements = ContiguousArray<Element>()
    if count > 0 { elements.reserveCapacity(ArchiveLimits.reserved(count, of: MemoryLayout<Element>.stride)) }
    for _ in 0..<count {
      reader.current = element
      elements.append(try Element.archiveRead(from: &reader))
    }
    self.init(elements)
    reader.leaveElements()
    reader.ascend()
  }
}

/// Encoded as a count and the elements in the order of their bytes, so that equal sets give equal bytes in every
/// process.
extension Set: Archivable where Element: Archivable {
  public static var archiveName: String { "Set<" + Element.archiveName + ">" }
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType {
    schema.composite(.set, Element.self)
  }
  @inlinable public static var archiveIsKeyed: Bool { false }

  @inlinable public func encode(to writer: inout ArchiveWriter) throws {
    writer.putVarint(UInt64(count))
    try writer.descend()
    let elements = ContiguousArray(self)
    try writer.writeSorted(elements.count, { try Element.archiveWrite(elements[$1], to: &$0) }, after: { _, _ in })
    writer.ascend()
  }

  @inlinable public init(from reader: inout ArchiveReader) throws {
    let element = try reader.enterList(.set)
    // A hash table has a larger capacity than its count.
    let bytes = 2 * MemoryLayout<Element>.stride
    let count = try reader.takeCount(of: bytes, and: ArchiveLimits.tableBytes)
    self.init(minimumCapacity: ArchiveLimits.reserved(count, of: bytes))
    try reader.descend()
    for _ in 0..<count {
      reader.current = element
      if !insert(try Element.archiveRead(from: &reader)).inserted {
        try reader.refuseRepetition("A set contains an element twice")
      }
    }
    reader.ascend()
  }
}

/// Encoded as a count and the pairs in the order of their keys' bytes.
extension Dictionary: Archivable where Key: Archivable, Value: Archivable {
  public static var archiveName: String { "[" + Key.archiveName + ": " + Value.archiveName + "]" }
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType {
    schema.dictionary(Key.self, Value.self)
  }
  @inlinable public static var archiveIsKeyed: Bool { false }

  @inlinable public func encode(to writer: inout ArchiveWriter) throws {
    writer.putVarint(UInt64(count))
    try writer.descend()
    let pairs = ContiguousArray(self)
    try writer.writeSorted(
      pairs.count, { try Key.archiveWrite(pairs[$1].key, to: &$0) },
      after: { try Value.archiveWrite(pairs[$1].value, to: &$0) })
    writer.ascend()
  }

  @inlinable public init(from reader: inout ArchiveReader) throws {
    let (key, value) = try reader.enterDictionary()
    let bytes = 2 * (MemoryLayout<Key>.stride + MemoryLayout<Value>.stride)
    let count = try reader.takeCount(of: bytes, and: ArchiveLimits.tableBytes)
    self.init(minimumCapacity: ArchiveLimits.reserved(count, of: bytes))
    try reader.descend()
    for _ in 0..<count {
      reader.current = key
      let newKey = try Key.archiveRead(from: &reader)
      reader.current = value
      if updateValue(try Value.archiveRead(from: &reader), forKey: newKey) != nil {
        try reader.refuseRepetition("A dictionary contains a key twice")
      }
    }
    reader.ascend()
  }
}

extension ArchiveReader {
  @inlinable @inline(__always) mutating func enterDictionary() throws -> (Int32, Int32) {
    isExact ? (0, 0) : try enterMappedDictionary()
  }

  @usableFromInline mutating func enterMappedDictionary() throws -> (Int32, Int32) {
    let key = try enterMappedList(.dictionary)
    return (key, core.nodes[Int(current)].second)
  }
}
