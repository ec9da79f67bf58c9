/// The position of a generated initialiser among the saved fields of its value. Small and without references, because
/// it is created for every value.
public struct ArchiveFields {
  /// Whether the value was written by an identical declaration.
  public let isExact: Bool
  /// Whether something has to be done at the end.
  @usableFromInline let isMapped: Bool
  /// For an object: whether its fields in the references section are being read.
  @usableFromInline var isInReferences = false
  @usableFromInline var programCase: Int32 = 0
  /// The index of the archive's next field, if the fields are in order.
  @usableFromInline var next: Int32 = 0
  /// The index of the first field of the class that is being read, among all fields of the object.
  @usableFromInline var base: Int32 = 0
  @usableFromInline let stepCount: Int32
  /// The index of the program's first field in the core's `located`, if the fields aren't in order or have keys.
  @usableFromInline var located: Int32 = -1
  /// How the fields are mapped. Retained by the reader's core.
  @usableFromInline let plan: Unmanaged<FieldPlan>?
  /// How each of the program's fields is read; nil if the fields have keys.
  @usableFromInline let steps: UnsafePointer<FieldPlan.Step>?
  /// The start of the value's fields, if an older version was saved and the value's hook has to be called.
  @usableFromInline var start: UnsafeRawPointer?

  /// Whether an older version was saved, so that the value is migrated after it is read.
  @inlinable public var isOlder: Bool { start != nil }

  /// The index of the program's case, for an enum.
  @inlinable public var caseIndex: Int { Int(programCase) }

  struct Position: BitwiseCopyable {
    /// -1 until the field is found.
    var node: Int32
    var start: UnsafeRawPointer
    var end: UnsafeRawPointer
  }

  /// The location of a field that the archive has.
  struct Location {
    let node: Int32
    let start: UnsafeRawPointer
    let end: UnsafeRawPointer
    /// Whether the field was skipped earlier, while fields before it in the program's order were read; false for the
    /// field that comes next.
    let isBehind: Bool
  }

  @inlinable init(exact caseIndex: Int) {
    isExact = true
    isMapped = false
    programCase = Int32(truncatingIfNeeded: caseIndex)
    plan = nil
    steps = nil
    stepCount = 0
  }

  /// Returns the archive's index of the field if the program's own type can read it in place, now or after skipping
  /// other fields; otherwise -1.
  @inlinable @inline(__always) func plainSource(_ index: Int) -> Int32 {
    let place = Int(base) &+ index
    guard let steps, place < Int(stepCount) else { return -1 }
    let step = steps + place
    return step.pointee.isPlain && step.pointee.source >= next && !isInReferences ? step.pointee.source : -1
  }

  /// Returns whether the archive certainly has no such field, as far as can be seen without searching.
  @inlinable @inline(__always) func isAbsent(_ index: Int) -> Bool {
    let place = Int(base) &+ index
    guard let steps, place < Int(stepCount) else { return false }
    return (steps + place).pointee.source < 0
  }

  init(plan: FieldPlan, isExact: Bool) {
    self.plan = Unmanaged.passUnretained(plan)
    steps = !plan.isKeyed && plan.stepMemory.count > 0 ? UnsafePointer(plan.stepMemory.baseAddress) : nil
    stepCount = Int32(truncatingIfNeeded: plan.stepMemory.count)
    self.isExact = isExact
    isMapped = true
  }
}

/// The state to which the reader returns after reading a field.
@usableFromInline struct ArchiveFieldReturn: BitwiseCopyable {
  let current: Int32
  let next: Int32
  let end: UnsafeRawPointer
  /// The position of the archive's next field, if the field that is read comes before it.
  let cursor: UnsafeRawPointer?
}
