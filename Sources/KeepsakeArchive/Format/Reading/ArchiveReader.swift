/// Reads values from an archive's bytes.
///
/// A hand-written type uses `decode(_:forKey:)`. All other public members are called by generated code and must not be
/// mixed with keys. Every step is checked against the end of the section, so that damaged bytes cause nothing worse
/// than an error.
public struct ArchiveReader: ~Copyable {
  @usableFromInline let base: UnsafeRawPointer
  @usableFromInline var cursor: UnsafeRawPointer
  @usableFromInline var end: UnsafeRawPointer
  @usableFromInline let core: ReaderCore
  /// Whether the value was written by an identical declaration, so that no field needs to be looked up.
  @usableFromInline var isExact: Bool
  /// The saved type of the next value. Meaningless if `isExact`.
  @usableFromInline var current: Int32 = 0
  @usableFromInline var depth = 0
  @usableFromInline let depthLimit: Int
  /// For the class that is being built: which of the program's fields are in the references section.
  @usableFromInline var deferred = FieldMask([])
  @usableFromInline var fieldBase = 0
  /// The fields that a subclass left for its superclass to read.
  var passedFields: ArchiveFields?
  /// Whether the references section is being read.
  @usableFromInline var isInReferences = false
  /// The result of `enter` for the last changed struct that has no keys and isn't migrated, with its saved type and the
  /// program's type.
  var lastNode: Int32 = -1
  var lastType: ObjectIdentifier?
  var lastFields: ArchiveFields?
  var keyed: KeyedFields?
  /// Bytes per integer while the elements of a block are read one by one, otherwise 0.
  var blockWidth = 0
  /// The numbers of the objects that skipped values refer to; nil if they aren't collected.
  var passedReferences: [Int32]?

  init(core: ReaderCore, base: UnsafeRawPointer, isExact: Bool) {
    self.core = core
    self.base = base
    self.isExact = isExact
    cursor = base
    end = base
    depthLimit = core.limits.depth
  }

  /// The context that the caller passed to `decode` for hooks and hand-written initialisers.
  public var context: Any? { core.context }

  // MARK: Bytes

  @inlinable var offset: Int { cursor - base }

  /// Mutating, like everything that is called while values are read: for a nonmutating call, the reader would be
  /// copied.
  @usableFromInline @inline(never) mutating func damaged(_ message: String) -> ArchiveError {
    ArchiveError(.damaged, message, offset: offset)
  }

  @inlinable @inline(__always) mutating func need(_ bytes: Int) throws {
    if end - cursor < bytes { throw damaged("The archive ends in the middle of a value") }
  }

  @inlinable @inline(__always) mutating func takeByte() throws -> UInt8 {
    try need(1)
    let value = cursor.load(as: UInt8.self)
    cursor += 1
    return value
  }

  @inlinable @inline(__always) mutating func takeVarint() throws -> UInt64 {
    if end - cursor >= 2 {
      let word = UInt16(littleEndian: cursor.loadUnaligned(as: UInt16.self))
      if word & 3 != 0 {
        // One byte or two, without a branch, because the processor can hardly predict which.
        let more = ~word & 1
        cursor += 1 &+ Int(truncatingIfNeeded: more)
        return UInt64((word & (0xFF | (0 &- more))) &>> (1 &+ more))
      }
    }
    return try takeLongVarint()
  }

  @usableFromInline mutating func takeLongVarint() throws -> UInt64 {
    try need(1)
    let bytes = cursor.load(as: UInt8.self).trailingZeroBitCount + 1
    try need(bytes)
    if bytes == 9 {
      defer { cursor += 9 }
      return UInt64(littleEndian: (cursor + 1).loadUnaligned(as: UInt64.self))
    }
    var word: UInt64 = 0
    if end - cursor >= 8 {
      word = UInt64(littleEndian: cursor.loadUnaligned(as: UInt64.self)) & (.max >> UInt64(64 - 8 * bytes))
    } else {
      for index in 0..<bytes { word |= UInt64((cursor + index).load(as: UInt8.self)) << UInt64(8 * index) }
    }
    cursor += bytes
    return word >> UInt64(bytes)
  }

  @inlinable @inline(__always) mutating func takeFixed<T: FixedWidthInteger>(_: T.Type) throws -> T {
    try need(MemoryLayout<T>.size)
    let value = T(littleEndian: cursor.loadUnaligned(as: T.self))
    cursor += MemoryLayout<T>.size
    return value
  }

  @inlinable @inline(__always) mutating func takeFlag() throws -> Bool {
    let value = try takeByte()
    if value > 1 { throw damaged("A flag is neither 0 nor 1") }
    return value == 1
  }

  /// Reads a number of elements, each of which takes at least one byte.
  @inlinable @inline(__always) mutating func takeCount() throws -> Int {
    let count = try takeVarint()
    guard count <= UInt64(end - cursor) else { throw damaged("A count is larger than the rest of the archive") }
    return Int(count)
  }

  @inlinable mutating func takeBytes(_ count: Int) throws -> UnsafeRawBufferPointer {
    try need(count)
    defer { cursor += count }
    return UnsafeRawBufferPointer(start: cursor, count: count)
  }

  /// Reads the length of a string or data value.
  @inlinable @inline(__always) mutating func takeLength() throws -> Int {
    let count = try takeCount()
    if count > core.stringLimit {
      throw ArchiveError(
        .limit, "A string or data value takes \(count) bytes; the limit is \(core.stringLimit)", offset: offset)
    }
    // Shorter text needs no allocation.
    if count > 15 { try claim(count) }
    return count
  }

  @inlinable mutating func descend() throws {
    depth &+= 1
    if depth > depthLimit {
      throw ArchiveError(.limit, "Values are nested more than \(depthLimit) levels deep", offset: offset)
    }
  }

  @inlinable mutating func ascend() { depth &-= 1 }

  // MARK: For generated code

  /// Reads the next field. Only if the archive was written by an identical declaration.
  ///
  /// `T` is known at compile time, so the comparisons are resolved then and the most frequent types are read inline.
  /// Through the protocol, the compiler would call a witness in another module.
  ///
  /// - Returns: The field's value.
  /// - Throws: `ArchiveError` if the saved value is damaged or doesn't fit the type, and errors of hand-written
  ///   conformances and hooks.
  @inlinable @inline(__always) public mutating func readField<T: Archivable>() throws -> T {
    if T.self == Int.self { return unsafeBitCast(try Int(from: &self), to: T.self) }
    if T.self == Int32.self { return unsafeBitCast(try Int32(from: &self), to: T.self) }
    if T.self == Double.self { return unsafeBitCast(try Double(from: &self), to: T.self) }
    if T.self == Float.self { return unsafeBitCast(try Float(from: &self), to: T.self) }
    if T.self == Bool.self { return unsafeBitCast(try Bool(from: &self), to: T.self) }
    if T.self == String.self { return unsafeBitCast(try String(from: &self), to: T.self) }
    return try T.archiveRead(from: &self)
  }

  /// Skips the byte of an empty struct.
  ///
  /// - Throws: `ArchiveError` with `damaged` if the archive ends before it.
  public mutating func readEmpty() throws { if isExact { _ = try takeByte() } }

  /// Returns whether a field is in the references section.
  ///
  /// - Parameter field: The field's index in its own class, from 0.
  /// - Returns: Whether the field is read there.
  @inlinable public func isDeferred(_ field: Int) -> Bool { deferred.contains(fieldBase + field) }

  // MARK: Objects

  @inlinable mutating func readReference<T: Archivable & AnyObject>(_ type: T.Type) throws -> T {
    if !isExact { try checkReference(T.archiveName) }
    guard let object = try takeObject(mustExist: true) else { throw damaged("A required reference is empty") }
    return try cast(object, to: type)
  }

  @inlinable mutating func readOptionalReference<T: Archivable & AnyObject>(_ type: T.Type) throws -> T? {
    if !isExact { try checkReference(T.archiveName) }
    guard let object = try takeObject(mustExist: false) else { return nil }
    return try cast(object, to: type)
  }

  /// Returns the object as the wanted class. Throws if it is of another class, whatever the archive contains.
  @inlinable @inline(__always) mutating func cast<T: AnyObject>(_ object: AnyObject, to type: T.Type) throws -> T {
    if Swift.type(of: object) == type { return unsafeDowncast(object, to: type) }
    guard let typed = object as? T else { throw wrongClass(object, "\(type)") }
    return typed
  }

  @usableFromInline mutating func wrongClass(_ object: AnyObject, _ wanted: String) -> ArchiveError {
    ArchiveError(
      .mismatch, "A reference points to a \(Swift.type(of: object)) where a \(wanted) is expected", offset: offset)
  }

  /// Returns the object of the next reference; nil for a nil reference, and for an object that had only weak
  /// references.
  @usableFromInline mutating func takeObject(mustExist: Bool) throws -> AnyObject? {
    let number = try takeVarint()
    guard number <= UInt64(core.directCount) else { return try takeRecordedObject(number, mustExist: mustExist) }
    let object = number == 0 ? nil : core.object(Int32(truncatingIfNeeded: number) - 1)
    guard object != nil || !mustExist else {
      throw number == 0
        ? ArchiveError(.missingField, "A required reference is empty", offset: offset)
        : damaged("A reference points to an object that isn't built yet")
    }
    return object?.takeUnretainedValue()
  }

  @usableFromInline mutating func checkReference(_ wanted: String) throws {
    var node = core.nodes[Int(current)]
    if node.code == .optional { node = core.nodes[Int(node.first)] }
    guard node.code == .named, core.file.types[Int(node.first)].kind.isObject else { throw mismatch(wanted) }
  }

  @usableFromInline mutating func mismatch(_ wanted: String) -> ArchiveError {
    let isLater = core.nodes[Int(current)].code == .later
    return ArchiveError(
      isLater ? .tooNew : .mismatch, "The archive has \(core.file.text(current)) where \(wanted) is expected",
      offset: offset)
  }
}
