import Foundation

/// Writes values into an archive's bytes.
///
/// A hand-written type uses `encode(_:forKey:)`. All other public members are called by generated code and must not be
/// mixed with keys.
public struct ArchiveWriter: ~Copyable {
  @usableFromInline var base: UnsafeMutableRawPointer
  @usableFromInline var cursor: UnsafeMutableRawPointer
  @usableFromInline var limit: UnsafeMutableRawPointer
  /// The references section while values are written, and vice versa. Allocated when it is first needed.
  private var otherBase: UnsafeMutableRawPointer
  private var otherCursor: UnsafeMutableRawPointer
  private var otherLimit: UnsafeMutableRawPointer
  @usableFromInline let core: WriterCore
  /// Which fields of the class that is being written belong to the references section.
  @usableFromInline var deferred = FieldMask()
  /// The index of the first field of the class that is being written, among all fields of the object.
  @usableFromInline var fieldBase = 0
  @usableFromInline var depth = 0
  @usableFromInline let depthLimit: Int
  @usableFromInline let stringLimit: Int
  /// Above zero while a set element or key is written only for comparison. Objects get no numbers then.
  var fingerprints = 0
  @usableFromInline var referencesInFingerprint = 0
  var isInKeyed = false

  /// The id of the writer. Counters fold their pending change into this writer's entry.
  public let writer: UInt64

  /// Creates a writer. `expected` is the size of the last archive of this root.
  init(core: WriterCore, expected: Int, writer: UInt64) {
    self.core = core
    self.writer = writer
    depthLimit = core.limits.depth
    stringLimit = core.limits.stringBytes
    // An eighth more than expected: as saved games grow, the buffer rarely has to.
    var capacity = max(Self.leastBytes, expected + expected / 8)
    if let output = core.takeOutput(atLeast: capacity) {
      (base, capacity) = output
    } else {
      base = Self.allocate(capacity)
    }
    cursor = base + ArchiveLayout.headerBytes
    limit = base + capacity
    let spare = core.takeSpare()
    otherBase = spare?.memory ?? Self.nothing
    otherCursor = otherBase
    otherLimit = otherBase + (spare?.bytes ?? 0)
  }

  private static let leastBytes = 512

  deinit {
    Self.release(base)
    Self.release(otherBase)
  }

  /// A placeholder for memory that isn't allocated yet.
  private nonisolated(unsafe) static let nothing = allocate(1)

  private static func release(_ memory: UnsafeMutableRawPointer) {
    if memory != nothing { free(memory) }
  }

  private static func allocate(_ bytes: Int) -> UnsafeMutableRawPointer {
    guard let memory = malloc(bytes) else { preconditionFailure("Out of memory") }
    return memory
  }

  // MARK: Bytes

  var offset: Int { cursor - base }
  var otherOffset: Int { otherCursor - otherBase }

  /// Returns the address for the next value, with room for a number of bytes. Returned by the call, so that the
  /// compiler needn't load it from memory again.
  @inlinable @inline(__always) mutating func room(_ bytes: Int) -> UnsafeMutableRawPointer {
    limit - cursor < bytes ? grow(bytes) : cursor
  }

  @usableFromInline @inline(never) mutating func grow(_ bytes: Int) -> UnsafeMutableRawPointer {
    let used = offset
    let capacity = max((limit - base) * 2, used + bytes, Self.leastBytes)
    guard let memory = base == Self.nothing ? malloc(capacity) : realloc(base, capacity) else {
      preconditionFailure("Out of memory")
    }
    base = memory
    cursor = memory + used
    limit = memory + capacity
    return cursor
  }

  @inlinable @inline(__always) mutating func putByte(_ value: UInt8) {
    let place = room(1)
    place.storeBytes(of: value, as: UInt8.self)
    cursor = place + 1
  }

  @inlinable @inline(__always) mutating func putVarint(_ value: UInt64) {
    let place = room(9)
    if value < 1 << 14 {
      // One byte or two, without a branch, because the processor can hardly predict which.
      let more: UInt64 = value < 1 << 7 ? 0 : 1
      place.storeBytes(of: UInt16(truncatingIfNeeded: (value &<< 1 | 1) &<< more).littleEndian, as: UInt16.self)
      cursor = place + (Int(truncatingIfNeeded: more) &+ 1)
    } else {
      cursor = Self.storeLongVarint(value, at: place)
    }
  }

  /// Writes a varint of any length and returns the address behind it. The caller has reserved nine bytes.
  @usableFromInline static func storeLongVarint(_ value: UInt64, at place: UnsafeMutableRawPointer)
    -> UnsafeMutableRawPointer
  {
    let bits = 64 &- value.leadingZeroBitCount
    if bits > 56 {
      place.storeBytes(of: 0, as: UInt8.self)
      (place + 1).storeBytes(of: value.littleEndian, as: UInt64.self)
      return place + 9
    }
    // Stores a whole word and advances by the number of bytes that count.
    let length = max(1, (bits &+ 6) / 7)
    let word = (value &<< 1 | 1) &<< UInt64(truncatingIfNeeded: length &- 1)
    place.storeBytes(of: word.littleEndian, as: UInt64.self)
    return place + length
  }

  @inlinable @inline(__always) mutating func putFixed<T: FixedWidthInteger>(_ value: T) {
    let place = room(MemoryLayout<T>.size)
    place.storeBytes(of: value.littleEndian, as: T.self)
    cursor = place + MemoryLayout<T>.size
  }

  /// Writes the length and the bytes of a string or data value.
  @inlinable @inline(__always) mutating func putMeasured(_ bytes: UnsafeRawBufferPointer) throws {
    let count = bytes.count
    if count > stringLimit { throw tooLong(count) }
    var place = room(count &+ 9)
    if count < 128 {
      place.storeBytes(of: UInt8(truncatingIfNeeded: count &<< 1 | 1), as: UInt8.self)
      place += 1
    } else {
      place = Self.storeLongVarint(UInt64(count), at: place)
    }
    if let start = bytes.baseAddress { place.copyMemory(from: start, byteCount: count) }
    cursor = place + count
  }

  @usableFromInline mutating func tooLong(_ count: Int) -> ArchiveError {
    ArchiveError(.limit, "A string or data value takes \(count) bytes; the limit is \(stringLimit)")
  }

  @inlinable mutating func putBytes(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress, bytes.count > 0 else { return }
    let place = room(bytes.count)
    place.copyMemory(from: start, byteCount: bytes.count)
    cursor = place + bytes.count
  }

  mutating func swapSections() {
    swap(&base, &otherBase)
    swap(&cursor, &otherCursor)
    swap(&limit, &otherLimit)
  }

  @inlinable mutating func descend() throws {
    depth &+= 1
    if depth > depthLimit { throw tooDeep() }
  }

  @inlinable mutating func ascend() { depth &-= 1 }

  @usableFromInline mutating func tooDeep() -> ArchiveError {
    ArchiveError(.limit, "Values are nested more than \(depthLimit) levels deep: use references to objects instead")
  }

  // MARK: For generated code

  /// Writes the next field of the type that is being written.
  ///
  /// - Parameter value: The field's value.
  /// - Throws: `ArchiveError` if the value can't be written, and errors of hand-written conformances.
  @inlinable @inline(__always) public mutating func writeField<T: Archivable>(_ value: T) throws {
    try T.archiveWrite(value, to: &self)
  }

  /// Writes the next field of an enum case's payload.
  ///
  /// - Parameter value: The field's value.
  /// - Throws: `ArchiveError` if the value can't be written, and errors of hand-written conformances.
  @inlinable @inline(__always) public mutating func writePayload<T: Archivable>(_ value: T) throws {
    try T.archiveWrite(value, to: &self)
  }

  /// Writes a weak reference, which is kept only if the object is also saved through another reference.
  ///
  /// - Parameter object: The object, or nil.
  /// - Throws: `ArchiveError` with `limit` if there are too many objects.
  @inlinable public mutating func writeWeakField<T: Archivable & AnyObject>(_ object: T?) throws {
    if let object { try putWeak(object) } else { putVarint(0) }
  }

  /// Writes an unowned reference; the object must also be saved through another reference.
  ///
  /// - Parameter object: The object.
  /// - Throws: `ArchiveError` with `limit` if there are too many objects.
  @inlinable public mutating func writeUnownedField<T: Archivable & AnyObject>(_ object: T) throws {
    try putUnowned(object)
  }

  @usableFromInline mutating func putWeak(_ object: AnyObject) throws {
    guard fingerprints == 0 else { return putNoReference() }
    putVarint(UInt64(try core.number(for: object)) + 1)
  }

  @usableFromInline mutating func putUnowned(_ object: AnyObject) throws {
    guard fingerprints == 0 else { return putNoReference() }
    let id = try core.number(for: object)
    core.noteUnowned(id)
    putVarint(UInt64(id) + 1)
  }

  /// Begins an enum value.
  ///
  /// - Parameter index: The case's index in the declaration, from 0.
  /// - Throws: `ArchiveError` with `limit` if values are nested too deeply.
  public mutating func writeCase(_ index: Int) throws {
    try descend()
    putVarint(UInt64(index))
  }

  /// Ends the enum value that `writeCase` began.
  public mutating func endCase() { ascend() }

  /// Writes an empty struct as one byte, so that every element of an array takes at least one byte.
  public mutating func writeEmpty() { putByte(0) }

  /// Returns whether a field belongs to the references section.
  ///
  /// - Parameter field: The field's index in its own class, from 0.
  /// - Returns: Whether the field is written there.
  @inlinable public func isDeferred(_ field: Int) -> Bool { deferred.contains(fieldBase + field) }

  /// Called by each class of an object after its own fields.
  ///
  /// - Parameter ownFields: The number of the class's own fields.
  @inlinable public mutating func passFields(_ ownFields: Int) { fieldBase += ownFields }

  // MARK: Objects

  @usableFromInline mutating func writeReference(_ object: AnyObject) throws {
    guard fingerprints == 0 else { return try writeFingerprint(of: object) }
    putVarint(UInt64(try core.enqueue(object)) + 1)
  }

  /// Writes the elements of an array in place, because copying each out would count references.
  @usableFromInline mutating func writeReferences(_ objects: UnsafeBufferPointer<Unmanaged<AnyObject>>) throws {
    for object in objects {
      try object._withUnsafeGuaranteedRef { object in
        guard fingerprints == 0 else { return try writeFingerprint(of: object) }
        putVarint(UInt64(try core.enqueue(object)) &+ 1)
      }
    }
  }

  /// Writes a placeholder for a reference, which is written with its number later.
  private mutating func putNoReference() {
    referencesInFingerprint += 1
    putVarint(0)
  }

  /// Writes an object for comparison. Assigns no numbers and creates no queues, because the order in which elements are
  /// written for comparison differs between processes.
  private mutating func writeFingerprint(of object: AnyObject) throws {
    guard fingerprints == 1 else { return putNoReference() }
    referencesInFingerprint += 1
    fingerprints += 1
    defer { fingerprints -= 1 }
    let (entry, codec) = try core.shape(of: object)
    try putText(entry.name)
    try codec.writeFingerprint(of: object, isKeyed: entry.kind.isKeyed, deferred: entry.deferred, to: &self)
  }

  /// Writes set elements or dictionary keys in the order of their bytes: `write` writes one of them, `after` what
  /// follows it.
  @inlinable @inline(__always) mutating func writeSorted(
    _ count: Int, _ write: (inout ArchiveWriter, Int) throws -> Void, after: (inout ArchiveWriter, Int) throws -> Void
  ) throws {
    if count == 0 { return }
    let order = ElementOrder(count: count, outerReferences: referencesInFingerprint)
    beginSorting()
    let start = cursor - base
    for index in 0..<count {
      try write(&self, index)
      order.note(index, end: cursor - base - start)
    }
    endSorting(order, start: start)
    for place in 0..<count {
      let index = order.index(place)
      if order.isPlain { putBytes(order.bytes(place)) } else { try write(&self, index) }
      try after(&self, index)
    }
  }

  @usableFromInline mutating func beginSorting() {
    referencesInFingerprint = 0
    fingerprints += 1
  }

  /// Sorts the elements written since `start` and removes them from the output.
  @usableFromInline mutating func endSorting(_ order: ElementOrder, start: Int) {
    fingerprints -= 1
    let written = UnsafeRawBufferPointer(start: base + start, count: offset - start)
    // Elements with references are written again in sorted order, which is when objects get their numbers.
    order.sort(written, isPlain: referencesInFingerprint == 0 || fingerprints > 0)
    referencesInFingerprint += order.outerReferences
    cursor = base + start
  }

  mutating func putText(_ text: String) throws {
    var text = text
    try text.withUTF8 { try putMeasured(UnsafeRawBufferPointer($0)) }
  }

  // MARK: End

  mutating func appendOther() {
    let bytes = UnsafeRawBufferPointer(start: otherBase, count: otherOffset)
    putBytes(bytes)
  }

  /// Fills in the header, appends the checksum and returns the bytes.
  mutating func sealed(_ core: WriterCore) -> Data {
    base.copyMemory(from: ArchiveLayout.magic, byteCount: ArchiveLayout.magic.count)
    (base + 8).storeBytes(of: ArchiveLayout.version.littleEndian, as: UInt16.self)
    (base + 10).storeBytes(of: 0, as: UInt16.self)
    (base + 12).storeBytes(of: 0, as: UInt32.self)
    putFixed(Checksum.xxh64(UnsafeRawBufferPointer(start: base, count: offset)))
    let length = offset
    core.compiled.recordSize(length)
    defer {
      // Prevents `deinit` from freeing the memory.
      base = Self.nothing
      if otherBase != Self.nothing { core.keepSpare(otherBase, otherLimit - otherBase) }
      otherBase = Self.nothing
    }
    if length <= WriterCore.mostOutputBytes {
      // Copying so few bytes costs less than passing the memory on and allocating the same amount for the next archive.
      let data = Data(bytes: base, count: length)
      core.keepOutput(base, limit - base)
      return data
    }
    // Doubling leaves up to half of the memory unused, and the bytes may be kept for long.
    if limit - base > length + length / 4 + Self.leastBytes, let exact = realloc(base, length) { base = exact }
    return Data(bytesNoCopy: base, count: length, deallocator: .free)
  }

  /// Rearranges the pieces of both sections in a new order.
  mutating func reorder(root: Int, values: [Range<Int>], references: [Range<Int>]) {
    let newValues = Self.allocate(max(limit - base, 1))
    newValues.copyMemory(from: base, byteCount: root)
    var end = root
    for piece in values {
      (newValues + end).copyMemory(from: base + piece.lowerBound, byteCount: piece.count)
      end += piece.count
    }
    let newReferences = Self.allocate(max(otherLimit - otherBase, 1))
    var otherEnd = 0
    for piece in references {
      (newReferences + otherEnd).copyMemory(from: otherBase + piece.lowerBound, byteCount: piece.count)
      otherEnd += piece.count
    }
    let capacity = limit - base
    Self.release(base)
    base = newValues
    cursor = base + end
    limit = base + capacity
    let otherCapacity = otherLimit - otherBase
    Self.release(otherBase)
    otherBase = newReferences
    otherCursor = otherBase + otherEnd
    otherLimit = otherBase + otherCapacity
  }
}
