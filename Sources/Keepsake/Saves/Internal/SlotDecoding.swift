import Foundation
import KeepsakeArchive
import KeepsakeReplication

/// Decodes the saves of a slot.
///
/// An archive doesn't know the slot that it is in. If it doesn't fit the type, most likely because the game uses one
/// name for two slots, the error has to name both types and the slot.
enum SlotDecoding {
  /// The errors of contents that don't fit the program's types.
  private static let misfits: Set<ArchiveError.Code> = [.mismatch, .missingField, .unknownCase, .unknownClass]

  /// - Parameter isCurrent: Whether the bytes are what the slot has now: the error then says how to give them up.
  static func decode<Value>(
    _ bytes: Data, in slot: Slot<Value>, context: Any?, isCurrent: Bool = false
  ) throws -> Value {
    do {
      return try slot.coding.decode(bytes, context: context)
    } catch let error as ArchiveError where misfits.contains(error.code) {
      let error = try named(error, bytes, slot)
      throw isCurrent && error.code == .mismatch ? withAdvice(error) : error
    }
  }

  /// Throws `mismatch` if the bytes are a save of another type. Reads no values.
  static func checkType<Value>(of bytes: Data, in slot: Slot<Value>) throws {
    if let error = try slot.coding.rootCheck()(bytes) { throw try named(error, bytes, slot) }
  }

  /// Returns a check for saves that the game hasn't loaded, which runs on the store's thread.
  static func typeCheck<Value>(in slot: Slot<Value>) throws -> SaveTypeCheck {
    let (check, wanted, name) = (try slot.coding.rootCheck(), slot.coding.typeName, slot.name)
    return SaveTypeCheck { bytes in
      do {
        return try check(bytes).map { withAdvice(try named($0, wanted, bytes, name)).message }
      } catch {
        return nil  // Not a readable archive: its type can't be known.
      }
    }
  }

  /// Adds what to do if the save of another type isn't wanted any more.
  private static func withAdvice(_ error: ArchiveError) -> ArchiveError {
    var error = error
    error.message += """
      . A save of the slot's type is kept beside it. To give the other one up, make such a save, and then pass \
      replacingUnreadable: true to saves.resolve(_:with:_:replacingUnreadable:), with what saves.conflict(_:) returns
      """
    return error
  }

  private static func named<Value>(
    _ error: ArchiveError, _ bytes: Data, _ slot: Slot<Value>
  ) throws -> ArchiveError {
    try named(error, slot.coding.typeName, bytes, slot.name)
  }

  private static func named(
    _ error: ArchiveError, _ wanted: String, _ bytes: Data, _ slot: String
  ) throws -> ArchiveError {
    let stored = try Archive.rootType(of: bytes)
    var error = error
    error.message = """
      A save of the type \(stored) can't be read from the slot "\(slot)" as \(wanted): \(error.message)
      """
    return error
  }
}
